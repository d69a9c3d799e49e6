"""kazoo's own test suite, as its package delivers it, on the embedded coordination server."""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from xml.etree import ElementTree

import pytest

SUITE_S_MAX = 1500
PASSED_MIN = 300
NOT_THERE = {
    "test_update_host_list",  # an ensemble of three
    "test_read_only",  # an ensemble, of which a member goes on alone
    "test_add_remove_observer",  # changes of an ensemble
    "test_bad_input",  # the same
    "test_no_super_auth",  # the same
    "test_create",  # TLS
}
"""Tests that need what one server for one machine doesn't have. Those of SASL, gevent and eventlet skip themselves."""


@pytest.mark.soak
@pytest.mark.timeout(SUITE_S_MAX + 60)
def test_on_the_embedded_server(tmp_path: Path) -> None:
    if find_spec("kazoo.tests") is None:
        pytest.skip("this kazoo comes without its tests")
    report = tmp_path / "report.xml"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "kazoo_servers", "-c", os.devnull]
    done = subprocess.run(
        [*command, f"--basetemp={tmp_path / 'own'}", f"--junitxml={report}", "--pyargs", "kazoo.tests"],
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path]),
            "ZOOKEEPER_VERSION": "3.9.3",  # whose features kazoo expects
            "ZOOKEEPER_CLUSTER_SIZE": "1",
        },
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=SUITE_S_MAX,
        check=False,
    )
    assert report.exists(), done.stdout[-5000:] + done.stderr[-5000:]
    cases = list(ElementTree.parse(report).iter("testcase"))
    outcomes = {case: {child.tag for child in case} for case in cases}
    failed = [case.get("name", "") for case, tags in outcomes.items() if tags & {"failure", "error"}]
    passed = [case for case, tags in outcomes.items() if not tags & {"failure", "error", "skipped"}]
    assert sorted(failed) == sorted(NOT_THERE), done.stdout[-5000:]
    assert len(passed) >= PASSED_MIN

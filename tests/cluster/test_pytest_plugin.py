"""The pytest plugin in another project: configuration, scopes, a cluster of its own, errors in one line."""

import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from odradek.base.errors import ConfigError
from odradek.client.cluster_client import ClusterClient
from odradek.local.cluster_processes import LocalCluster
from odradek.testing import OdradekCluster

_TESTS = """
import socket

def test_first(odradek_cluster):
    host, port = odradek_cluster.bootstrap_servers.split(":")
    socket.create_connection((host, int(port)), timeout=10).close()
    first.append(odradek_cluster.bootstrap_servers)

def test_second(odradek_cluster):
    odradek_cluster.create_topic("made", partitions=2)
    assert [odradek_cluster.bootstrap_servers] == first

first = []
"""


def _pytest(directory: Path, configuration: str, *more: str) -> subprocess.CompletedProcess[str]:
    (directory / "pytest.ini").write_text(f"[pytest]\n{configuration}\n")
    (directory / "test_orders.py").write_text(_TESTS)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "odradek.testing",
        "-p",
        "no:cacheprovider",
        "-q",
        str(directory),
        *more,
    ]
    return subprocess.run(command, capture_output=True, text=True, timeout=100, check=False, cwd=directory)


def test_a_project_chooses_brokers_settings_and_topics(tmp_path: Path) -> None:
    lists = "odradek_settings =\n    num.partitions=4\nodradek_topics =\n    orders:3\n    payments"
    done = _pytest(tmp_path, f"odradek_scope = module\nodradek_brokers = 1\n{lists}")
    assert done.returncode == 0, done.stdout


def test_errors_are_one_line(tmp_path: Path) -> None:
    done = _pytest(tmp_path, "odradek_settings =\n    num.partitions=none")
    assert done.returncode == 1
    assert "the Odradek cluster did not start: Invalid value none for configuration num.partitions" in done.stdout
    assert "Traceback" not in done.stdout
    assert "testing.py" not in done.stdout
    assert "During handling" not in done.stdout


@pytest.mark.parametrize(
    ("configuration", "told"),
    [
        ("odradek_scope = forever", "odradek_scope=forever is not valid; valid: session, package, module, class,"),
        ("odradek_brokers = two", "odradek_brokers=two is not a number of brokers"),
        ("odradek_brokers = 0", "odradek_brokers=0 is not a number of brokers"),
        ("odradek_settings =\n    num.partitions", "odradek_settings: 'num.partitions' is not KEY=VALUE"),
        ("odradek_topics =\n    orders:many", "odradek_topics: topic 'orders:many' is not NAME or NAME:PARTITIONS"),
    ],
)
def test_a_wrong_configuration_is_refused_before_tests_are_collected(
    configuration: str, told: str, tmp_path: Path
) -> None:
    done = _pytest(tmp_path, configuration)
    assert done.returncode == 4, "as pytest's own usage errors"
    assert done.stderr.startswith(f"ERROR: {told}")
    assert done.stderr.count("\n") <= 2


def test_a_start_that_fails_leaves_nothing_running_and_unknown_settings_are_told(tmp_path: Path) -> None:
    lists = "odradek_topics =\n    a/b\nodradek_settings =\n    nosuch.key=1"
    done = _pytest(tmp_path, lists, f"--basetemp={tmp_path / 'temporary'}")
    assert "the Odradek cluster did not start: topic 'a/b': Topic name is invalid" in done.stdout
    assert "During handling" not in done.stdout
    assert "unknown configuration key nosuch.key is ignored" in done.stdout
    [data] = (tmp_path / "temporary").glob("odradek0")
    assert not LocalCluster(data).running


def test_a_secure_cluster_that_does_not_start_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ODRADEK_COORDINATOR", "etcd")
    (tmp_path / "test_users.py").write_text("def test_users(odradek_secure_cluster): pass\n")
    done = _pytest(tmp_path, "", "-k", "users")
    assert "the Odradek cluster did not start: ODRADEK_COORDINATOR=etcd is not valid; valid: embedded, apache" in (
        done.stdout
    )
    assert "testing.py" not in done.stdout


def test_a_cluster_has_a_broker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with pytest.raises(ConfigError, match="a cluster has at least one broker, not 0"):
        OdradekCluster(brokers=0)
    assert not any(tmp_path.iterdir())


def test_a_cluster_of_ones_own_leaves_nothing_behind() -> None:
    settings = {"num.partitions": "2"}
    with OdradekCluster(brokers=3, settings=settings, topics=["orders:6", "a"], coordinator="embedded") as cluster:
        with ClusterClient(cluster.bootstrap_servers) as client:
            topics = client.topics()
        shapes = {name: {len(p.replicas) for p in state.partitions} for name, state in topics.items()}
        assert {name: len(state.partitions) for name, state in topics.items()} == {"orders": 6, "a": 2}
        assert shapes == {"orders": {3}, "a": {3}}, "as many replicas as there are brokers"
    assert not cluster.data_dir.exists()
    assert not LocalCluster(cluster.data_dir).running

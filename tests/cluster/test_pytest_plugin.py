"""The pytest plugin in another project: configuration, scopes, a cluster of its own, errors in one line."""

import subprocess
import sys
from pathlib import Path

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


def _pytest(directory: Path, configuration: str) -> subprocess.CompletedProcess[str]:
    (directory / "pytest.ini").write_text(f"[pytest]\n{configuration}\n")
    (directory / "test_orders.py").write_text(_TESTS)
    command = [sys.executable, "-m", "pytest", "-p", "odradek.testing", "-p", "no:cacheprovider", "-q", str(directory)]
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
    wrong = _pytest(tmp_path, "odradek_scope = forever")
    assert "odradek_scope=forever is not valid; valid: session, package, module, class, function" in wrong.stdout


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

"""Brokers on the embedded coordination server: Odradek's and Apache Kafka's in one cluster, and `odradek up`."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from apache_kafka import broker_command
from chaos.clients import await_condition
from chaos.story import Story
from odradek.apps.lab.cluster import ChaosCluster
from odradek.local.cluster_processes import LocalCluster
from odradek.local.coordinators import CoordinationProcess
from odradek.local.server_process import serves
from odradek.local.zookeeper_server import free_port

from ..test_mixed_cluster import ours

pytestmark = pytest.mark.timeout(300)


@pytest.mark.soak
def test_apache_kafka_and_odradek_in_one_cluster_while_the_server_crashes(tmp_path: Path, kafka_lib: Path) -> None:
    server = CoordinationProcess(tmp_path / "zookeeper")
    server.start()
    try:
        launch = {0: broker_command(kafka_lib)}
        settings = {"offsets.topic.replication.factor": "2", "zookeeper.session.timeout.ms": "6000"}
        chaos = ChaosCluster(tmp_path / "brokers", server.connect, launch=launch, first=(0, 1), settings=settings)
        with chaos as cluster:
            with Story(cluster, replication_factor=2) as story:
                story.let_it_work(100)
                server.kill()
                story.let_it_work(100)
                server.start()
                story.let_it_work(100)
                first = cluster.controller()
                assert first is not None
                cluster.brokers[first].kill()
                assert await_condition(lambda: cluster.controller() not in (None, first), 60)
                cluster.start(first)
                story.let_it_work(100)
            assert ours(story.verdict) == []
    finally:
        server.stop()


@pytest.fixture
def data(tmp_path: Path) -> Iterator[Path]:
    directory = tmp_path / "data"
    yield directory
    LocalCluster(directory).stop()


def _odradek(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "odradek", *arguments]
    variables = {**os.environ, **environment}
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, env=variables)


def test_up_takes_the_embedded_server_where_there_is_no_java_and_keeps_the_cluster(data: Path, tmp_path: Path) -> None:
    port = free_port()
    common = ("up", "--data", str(data), "--port", str(port), "--detach", "--no-console")
    kept = data / "zookeeper" / "coordinator"
    first = _odradek(*common, JAVA_HOME=str(tmp_path))
    assert first.returncode == 0, first.stderr
    assert kept.read_text() == "embedded\n"
    assert first.stderr.startswith("coordination server: embedded, for this machine only")
    assert isinstance(LocalCluster(data).zookeeper, CoordinationProcess)
    address = f"127.0.0.1:{port}"
    made = _odradek("topics", "create", "orders", "--bootstrap-server", address)
    assert made.returncode == 0, made.stderr

    other = _odradek(*common, "--coordinator", "apache")
    assert other.returncode == 1
    assert "is already running and is embedded, not apache" in other.stderr
    assert LocalCluster(data).zookeeper.kill()
    assert _odradek("start", "--data", str(data), "0", JAVA_HOME=str(tmp_path)).returncode == 0
    assert LocalCluster(data).zookeeper.pid is not None
    assert _odradek("down", "--data", str(data)).returncode == 0

    both = _odradek(*common, "--coordinator", "apache", "--zookeeper", "127.0.0.1:1")
    assert both.returncode == 2
    assert "--coordinator and --zookeeper exclude each other" in both.stderr
    java = _odradek(*common, "--coordinator", "apache")
    assert java.returncode == 0, java.stderr
    assert kept.read_text() == "apache\n"
    assert serves(("127.0.0.1", port))
    topics = _odradek("topics", "list", "--bootstrap-server", address, "--format", "json")
    assert "orders" in json.dumps(json.loads(topics.stdout)), "Apache ZooKeeper has what the embedded server had"

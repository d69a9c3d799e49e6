"""`odradek up --brokers 3` and the commands for a cluster of several brokers, as a person uses them."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from odradek.local.cluster_processes import LocalCluster
from odradek.local.zookeeper_server import free_port, port_is_taken
from waiting import eventually

from .own_broker import run_odradek, run_odradek_here

PATIENCE_S = 60


@pytest.fixture
def data(tmp_path: Path) -> Iterator[Path]:
    directory = tmp_path / "data"
    yield directory
    LocalCluster(directory).stop()


class Tool:
    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap

    def json(self, *arguments: object) -> Any:
        done = run_odradek_here(*arguments, "--bootstrap-server", self._bootstrap, "--format", "json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def partition(self) -> dict[str, Any]:
        (topic,) = self.json("topics", "describe", "--topic", "orders")
        (partition,) = topic["partitions"]
        assert isinstance(partition, dict)
        return partition


def test_a_cluster_is_started_moved_about_and_stopped(data: Path, tmp_path: Path) -> None:
    port = _three_ports()
    by_hand = ("--set", "auto.leader.rebalance.enable=false")
    up = run_odradek("up", "--brokers", 3, "--data", data, "--port", port, "--detach", "--no-console", *by_hand)
    assert up.stdout == f"bootstrap.servers={','.join(f'127.0.0.1:{port + i}' for i in range(3))}\n", up.stderr
    assert "offsets.topic.replication.factor=3\n" in (data / "broker-2" / "server.properties").read_text()
    tool = Tool(up.stdout.partition("=")[2].strip())
    tool.json("topics", "create", "--topic", "orders", "--replica-assignment", "0:1")

    brokers = tool.json("brokers")
    assert [(row["broker"], row["leaders"], row["replicas"]) for row in brokers] == [(0, 1, 1), (1, 0, 1), (2, 0, 0)]
    assert sum(row["controller"] for row in brokers) == 1

    plan = tmp_path / "plan.json"
    plan.write_text('{"version":1,"partitions":[{"topic":"orders","partition":0,"replicas":[2,1]}]}')
    assert [row["outcome"] for row in tool.json("reassign", "execute", "--reassignment-json-file", plan)] == ["begun"]
    eventually(lambda: tool.json("reassign", "list") == [], PATIENCE_S)
    assert [row["outcome"] for row in tool.json("reassign", "verify", "--reassignment-json-file", plan)] == [
        "completed"
    ]
    eventually(lambda: tool.partition()["replicas"] == [2, 1], PATIENCE_S)
    eventually(lambda: tool.partition()["leader"] == 2, PATIENCE_S)

    assert run_odradek("stop", "--data", data, 2).returncode == 0
    eventually(lambda: tool.partition()["leader"] == 1, PATIENCE_S)
    assert run_odradek("start", "--data", data, 2).returncode == 0
    eventually(lambda: sorted(tool.partition()["isr"]) == [1, 2], PATIENCE_S)
    assert [row["outcome"] for row in tool.json("elections", "--all-topic-partitions")] == ["elected"]
    eventually(lambda: tool.partition()["leader"] == 2, PATIENCE_S)

    again = run_odradek("up", "--brokers", 3, "--data", data, "--port", port, "--detach", "--no-console")
    assert again.returncode == 0, "what runs already is as it was asked for"
    assert run_odradek("down", "--data", data).returncode == 0
    assert not LocalCluster(data).running


def _three_ports() -> int:
    """The first of three consecutive ports that nobody uses now."""
    while True:
        first = free_port()
        if not any(port_is_taken(first + i) for i in (1, 2)):
            return first

"""A loaded cluster is rearranged while a broker and the command itself are killed: nothing is lost, nothing is left.

Kafka's own tools are the judges of what is left. Rows G3 and G2.
"""

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from kafka_tools import KafkaTools
from odradek.base.errors import ErrorCode
from odradek.client.broker_client import BrokerClient
from odradek.model.topology import ReplicaAssignment, TopicPartition
from waiting import eventually

from .own_broker import batch_of, produce_request, run_odradek_here
from .own_cluster import PATIENCE_S, OwnCluster, running_cluster
from .test_cluster import Writer, read_all

pytestmark = pytest.mark.timeout(400)

SLOW = "100KB"
"""With four megabytes in each partition, nothing is done before somebody dies."""


class Desk:
    """A directory and environment in which to type `odradek …`."""

    def __init__(self, bootstrap: str, directory: Path) -> None:
        self._environment = {
            **os.environ,
            "ODRADEK_BOOTSTRAP_SERVER": bootstrap,
            "ODRADEK_STATE_DIR": str(directory / "state"),
        }

    def begin(self, *arguments: object) -> "subprocess.Popen[str]":
        command = [sys.executable, "-m", "odradek", *map(str, arguments)]
        pipe = subprocess.PIPE
        return subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, env=self._environment)

    def run(self, *arguments: object, code: int = 0) -> str:
        process = self.begin(*arguments)
        printed, told = process.communicate(timeout=3 * PATIENCE_S)
        assert process.returncode == code, printed + told
        return printed + told


@contextmanager
def writing(writer: Writer) -> Iterator[None]:
    enough = threading.Event()
    thread = threading.Thread(target=writer.write_slowly_until, args=(enough,))
    thread.start()
    try:
        yield
    finally:
        enough.set()
        thread.join()


@pytest.mark.soak
def test_brokers_and_commands_die_in_the_middle(tmp_path: Path, zookeeper: str, kafka_tools: KafkaTools) -> None:
    plan_file, tools = tmp_path / "plan.json", kafka_tools
    with running_cluster(tmp_path, zookeeper) as cluster:
        desk = Desk(cluster.bootstrap, tmp_path)
        cluster.create_topic("orders", (0, 1), (1, 0), (0, 1))
        fill(cluster, "orders")
        writer = Writer(cluster, "numbers")
        cluster.create_topic("numbers", (0, 1))
        with writing(writer):
            desk.run("reassign", "plan", "--brokers", "0,1,2", "--topics", "orders", "--out", plan_file)
            wanted = planned(plan_file)
            assert any(2 in replicas for replicas in wanted.values())

            # the broker that gets the replicas dies
            run = desk.begin("reassign", "run", plan_file, "--throttle", SLOW, "--dead-broker-seconds", 1)
            await_moves(cluster)
            assert "throttled.rate" in throttles(tools, cluster)
            cluster.kill(2)
            printed, told = run.communicate(timeout=3 * PATIENCE_S)
            assert run.returncode == 1, printed + told
            assert "broker 2 is dead" in printed
            assert assignment(cluster)[TopicPartition("orders", 0)].adding == ()
            cluster.restart(2)
            eventually(lambda: len(cluster.store.brokers.load_brokers()) == 3, PATIENCE_S)
            desk.run("reassign", "status")
            assert_nothing_is_left(tools, cluster)

            # the command dies, and another one finishes its work
            run = desk.begin("reassign", "run", plan_file, "--throttle", SLOW)
            await_moves(cluster)
            run.send_signal(signal.SIGKILL)
            run.communicate()
            assert "still in progress" in desk.run("reassign", "status")
            assert "was interrupted" in desk.run("reassign", "run", plan_file, code=1)
            desk.run("reassign", "run", "--throttle", "none")
            assert_nothing_is_left(tools, cluster)
            verified = tools.run(
                "kafka-reassign-partitions",
                *("--bootstrap-server", cluster.brokers[0].bootstrap, "--verify", "--preserve-throttles"),
                *("--reassignment-json-file", plan_file),
            )
            assert verified.text.count("is completed") == len(wanted), verified

            # somebody thinks better of it: what Ctrl-C stops goes back, and so does what was done before
            run = desk.begin("reassign", "undo", "--throttle", SLOW)
            await_moves(cluster)
            run.send_signal(signal.SIGINT)
            run.communicate(timeout=3 * PATIENCE_S)
            assert run.returncode == 130
            assert_nothing_is_left(tools, cluster)
            eventually(lambda: {tp: assignment(cluster)[tp].replicas for tp in wanted} == wanted, PATIENCE_S)
        assert read_all(cluster, "numbers") == writer.acknowledged
        assert writer.refused == []


def test_replicas_that_a_plan_removes_are_told_with_bytes_and_risks(
    tmp_path: Path, zookeeper: str, kafka_tools: KafkaTools
) -> None:
    plan_file = tmp_path / "plan.json"
    with running_cluster(tmp_path, zookeeper) as cluster:
        desk = Desk(cluster.bootstrap, tmp_path)
        cluster.create_topic("orders", (0, 1, 2), (0, 1, 2), min_insync_replicas="2")
        fill(cluster, "orders")
        goal = ("reassign", "plan", "--topics", "orders", "--replication-factor", 2, "--out", plan_file)
        shown = desk.run(*goal)
        assert "2 partitions change, no replica is copied" in shown
        assert "2 replicas are removed, " in shown
        told = json.loads(desk.run(*goal, "--format", "json").partition("written to")[0])
        assert (told["copied_replicas"], told["copied_bytes"], told["removed_replicas"]) == (0, 0, 2)
        assert 11 << 20 < told["freed_bytes"] < 14 << 20  # twelve million bytes of records
        assert sum(broker["bytes_freed"] for broker in told["brokers"]) == told["freed_bytes"]
        assert sum(broker["replicas_removed"] for broker in told["brokers"]) == 2
        at_minimum = (
            "orders-0, orders-1: no more replicas than min.insync.replicas=2; while one of their brokers is down"
        )
        assert [risk["severity"] for risk in told["risks"]] == ["warning", "warning"]
        assert told["risks"][0]["text"].startswith(at_minimum)
        assert f"warning: {at_minimum}" in desk.run("reassign", "run", plan_file)
        bootstrap = ("--bootstrap-server", cluster.bootstrap)
        described = kafka_tools.run("kafka-topics", *bootstrap, "--describe", "--topic", "orders")
        assert described.text.count("ReplicationFactor: 2") == 1

        # the risk is real
        leader = cluster.leader("orders")
        cluster.kill(next(b for b in planned(plan_file)[TopicPartition("orders", 0)] if b != leader))
        with cluster.client(leader) as client:
            eventually(lambda: code_of_a_write(client, "orders") == ErrorCode.NOT_ENOUGH_REPLICAS, PATIENCE_S)


def code_of_a_write(client: BrokerClient, topic: str) -> int:
    """With acks=all. Before the leader has heard that the ISR shrank, it waits in vain for the follower."""
    request = produce_request(topic, batch_of(b"x"))
    request.timeout_ms = 500
    code: int = client.send(request).responses[0].partition_responses[0].error_code
    assert code != ErrorCode.NONE
    return code


def test_the_recorder_tells_why_the_leader_changed(tmp_path: Path, zookeeper: str) -> None:
    with running_cluster(tmp_path, zookeeper) as cluster:
        first = (cluster.controller() + 1) % 3
        second = (first + 1) % 3
        cluster.create_topic("orders", (first, second))
        cluster.await_isr("orders", (first, second))
        cluster.kill(first)
        cluster.await_leader_other_than(first, "orders")

        def recorder(*asked: object) -> Any:
            told = run_odradek_here("recorder", *asked, "--data", tmp_path, "--format", "json")
            assert told.returncode == 0, told.stderr
            return json.loads(told.stdout)

        eventually(lambda: len(recorder("why", "orders-0")) == 2, PATIENCE_S)
        begun, died = recorder("why", "orders-0")
        assert (begun["leader"], died["leader_before"], died["leader"]) == (first, first, second)
        assert died["cause"] == "BrokersChanged"
        assert any(f"went: [{first}]" in entry.get("text", "") for entry in died["chain"])
        assert {entry["what"] for entry in died["chain"] if entry["kind"] == "send"} >= {"LeaderAndIsr"}
        before = recorder("replay", "--at", died["time_ms"] - 1)
        after = recorder("replay")
        assert [p["leader"] for p in before["partitions"] if p["topic"] == "orders"] == [first]
        assert [p["leader"] for p in after["partitions"] if p["topic"] == "orders"] == [second]
        assert after["controller"] == cluster.controller()


def fill(cluster: OwnCluster, topic: str) -> None:
    command = ("perf", "produce", "--topic", topic, "--num-records", "3000", "--record-size", "4000")
    subprocess.run(
        [sys.executable, "-m", "odradek", *command, "--bootstrap-server", cluster.bootstrap],
        check=True,
        capture_output=True,
        timeout=PATIENCE_S,
    )


def planned(plan_file: Path) -> dict[TopicPartition, tuple[int, ...]]:
    entries = json.loads(plan_file.read_text())["partitions"]
    return {TopicPartition(e["topic"], e["partition"]): tuple(e["replicas"]) for e in entries}


def assignment(cluster: OwnCluster) -> dict[TopicPartition, ReplicaAssignment]:
    partitions = cluster.store.topics.load_topics()["orders"].partitions
    return {TopicPartition("orders", number): replicas for number, replicas in partitions.items()}


def await_moves(cluster: OwnCluster) -> None:
    eventually(lambda: any(replicas.is_reassigning for replicas in assignment(cluster).values()), PATIENCE_S)


def throttles(tools: KafkaTools, cluster: OwnCluster) -> str:
    """Return the throttles that Kafka's own tool finds on any broker, and on the topic."""
    bootstrap = ("--bootstrap-server", cluster.brokers[0].bootstrap)
    found = tools.run("kafka-configs", *bootstrap, "--describe", "--entity-type", "brokers").text
    return found + tools.run("kafka-configs", *bootstrap, "--describe", "--topic", "orders").text


def assert_nothing_is_left(tools: KafkaTools, cluster: OwnCluster) -> None:
    assert "throttled" not in throttles(tools, cluster)
    bootstrap = ("--bootstrap-server", cluster.brokers[0].bootstrap)
    assert "No partition reassignments found." in tools.run("kafka-reassign-partitions", *bootstrap, "--list").text

"""`odradek reassign` where brokers of both kinds are in one cluster, either kind as controller: plan, run, undo.

Clients write and read all the while, the judge has the last word about their records, Kafka's own tools about what is
left behind. Rows G1 and G3.
"""

from pathlib import Path

import pytest

from apache_kafka import broker_command
from chaos.clients import await_condition
from chaos.story import Story
from kafka_tools import KafkaTools
from odradek.apps.lab.cluster import ChaosCluster

from .test_mixed_cluster import NEWCOMER, ours
from .test_reassign_run import Desk

pytestmark = [pytest.mark.soak, pytest.mark.timeout(900)]


@pytest.mark.parametrize("controlled_by", ["kafka", "odradek"])
def test_a_plan_is_run_and_undone(
    controlled_by: str, tmp_path: Path, zookeeper: str, kafka_lib: Path, kafka_tools: KafkaTools
) -> None:
    kafka = broker_command(kafka_lib)
    launch = {0: kafka, 1: kafka} if controlled_by == "kafka" else {NEWCOMER: kafka}
    settings = {"offsets.topic.replication.factor": "2", "zookeeper.session.timeout.ms": "18000"}
    plan = tmp_path / "plan.json"
    place = ChaosCluster(
        tmp_path / f"plan-by-{controlled_by}", zookeeper, launch=launch, first=(0, 1), settings=settings
    )
    with place as cluster:
        desk = Desk(cluster.bootstrap, tmp_path)
        with Story(cluster, replication_factor=2) as story:
            story.let_it_work(200)
            cluster.start(NEWCOMER)
            before = {tp: story.replicas(tp) for tp in story.partitions}
            topic = story.partitions[0].topic

            desk.run("reassign", "plan", "--drain", 0, "--topics", topic, "--out", plan)
            desk.run("reassign", "run", plan, "--throttle", "10MB", "--at-once", 2)
            moved = {frozenset((1, NEWCOMER))}
            assert await_condition(lambda: {frozenset(story.replicas(tp)) for tp in story.partitions} == moved, 90)
            assert await_condition(lambda: {cluster.leader(tp) for tp in story.partitions} <= {1, NEWCOMER}, 90)
            assert_nothing_is_left(kafka_tools, cluster.bootstrap, topic)
            story.let_it_work(200)

            desk.run("reassign", "undo", "--throttle", "10MB")
            assert await_condition(lambda: {tp: story.replicas(tp) for tp in story.partitions} == before, 90)
            assert_nothing_is_left(kafka_tools, cluster.bootstrap, topic)
            story.await_isr(2)
            story.let_it_work(200)
        assert ours(story.verdict) == []


def assert_nothing_is_left(tools: KafkaTools, bootstrap: str, topic: str) -> None:
    server = ("--bootstrap-server", bootstrap)
    found = tools.run("kafka-configs", *server, "--describe", "--entity-type", "brokers").text
    found += tools.run("kafka-configs", *server, "--describe", "--topic", topic).text
    assert "throttled" not in found
    assert "No partition reassignments found." in tools.run("kafka-reassign-partitions", *server, "--list").text

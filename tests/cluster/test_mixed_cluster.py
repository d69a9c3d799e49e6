"""Apache Kafka 3.9 and Odradek in one cluster, either of them as controller (row G1, its first step).

The newcomer registers in the other's ZooKeeper, is given replicas, follows, joins the ISR, is elected, serves producers
and consumers with acks=all, and hands leadership back; clients run all the while, and the judge has the last word.
"""

from pathlib import Path

import pytest

from apache_kafka import broker_command
from chaos.clients import await_condition
from chaos.operations import elect_preferred, reassign, reassigning
from chaos.story import Story
from odradek.apps.lab.cluster import ChaosCluster

pytestmark = pytest.mark.timeout(600)
NEWCOMER = 2


@pytest.mark.parametrize("controlled_by", ["kafka", "odradek"])
def test_a_newcomer_follows_leads_and_hands_back(
    controlled_by: str, tmp_path: Path, zookeeper: str, kafka_lib: Path
) -> None:
    kafka = broker_command(kafka_lib)
    launch = {0: kafka, 1: kafka} if controlled_by == "kafka" else {NEWCOMER: kafka}
    settings = {"offsets.topic.replication.factor": "2", "zookeeper.session.timeout.ms": "18000"}
    with ChaosCluster(
        tmp_path / f"by-{controlled_by}", zookeeper, launch=launch, first=(0, 1), settings=settings
    ) as cluster:
        with Story(cluster, replication_factor=2) as story:
            story.let_it_work(200)
            assert cluster.controller() in (0, 1)

            cluster.start(NEWCOMER)
            assert cluster.controller() in (0, 1)
            reassign(cluster, dict.fromkeys(story.partitions, (NEWCOMER, 0, 1)))
            assert await_condition(lambda: reassigning(cluster) == 0, 90)
            story.await_isr(3)
            story.let_it_work(100)

            elect_preferred(cluster)
            assert await_condition(lambda: {cluster.leader(tp) for tp in story.partitions} == {NEWCOMER}, 90)
            story.let_it_work(300)

            reassign(cluster, dict.fromkeys(story.partitions, (0, 1)))
            assert await_condition(lambda: reassigning(cluster) == 0, 90)
            assert await_condition(lambda: {cluster.leader(tp) for tp in story.partitions} <= {0, 1}, 90)
            story.let_it_work(200)
        assert story.verdict == []

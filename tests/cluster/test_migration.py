"""`odradek migrate`: a running cluster of Apache Kafka becomes one of Odradek, and Apache Kafka again (row G1).

Clients write and read all the while; the judge has the last word about their records. The commands are those of
docs/migration.md.
"""

import json
from pathlib import Path

import pytest

from apache_kafka import broker_command
from chaos.clients import await_condition
from chaos.story import Story
from odradek.apps.lab.cluster import ChaosCluster

from .test_mixed_cluster import ours
from .test_reassign_run import Desk

pytestmark = pytest.mark.timeout(900)
SETTINGS = {"offsets.topic.replication.factor": "1", "min.insync.replicas": "1"}


def migrate(desk: Desk, cluster: ChaosCluster, leaving: list[int], coming: list[int]) -> None:
    """Plan, run, status; then the old brokers are stopped as `run` says, the controller last."""
    route = ("--from", ",".join(map(str, leaving)), "--to", ",".join(map(str, coming)))
    planned = json.loads(desk.run("migrate", "plan", *route, "--format", "json"))
    assert planned["successors"] == {str(old): new for old, new in zip(leaving, coming, strict=True)}
    assert not [check for check in planned["checks"] if check["severity"] == "problem"]
    assert planned["steps"]
    told = desk.run("migrate", "run", *route, "--throttle", "none")
    assert "all replicas are moved, and the successors lead them" in told
    assert "all replicas are moved; stop broker" in desk.run("migrate", "status", *route)
    controller = cluster.controller()
    for broker in sorted(leaving, key=lambda broker: broker == controller):
        cluster.brokers[broker].stop()
    assert await_condition(lambda: cluster.controller() in coming, 60)
    assert "the migration is complete" in desk.run("migrate", "status", *route)


def await_expiry(cluster: ChaosCluster, dead: int) -> None:
    """Until its session has ended: Apache Kafka doesn't start while its old registration is there."""

    def is_gone() -> bool:
        told = [metadata for broker in cluster.brokers if broker.pid and (metadata := broker.metadata()) is not None]
        return bool(told) and all(dead not in {node.node_id for node in metadata.brokers} for metadata in told)

    assert await_condition(is_gone, 60)


def test_in_and_out_again_under_load(tmp_path: Path, zookeeper: str, kafka_lib: Path) -> None:
    place = ChaosCluster(
        tmp_path / "one", zookeeper, brokers=2, launch={0: broker_command(kafka_lib)}, first=(0,), settings=SETTINGS
    )
    with place as cluster:
        desk = Desk(cluster.bootstrap, tmp_path)
        with Story(cluster, replication_factor=1) as story:
            story.let_it_work(200)
            absent = desk.run("migrate", "plan", "--from", "0", "--to", "1", code=1)
            assert "broker 1 is not in the cluster; start it first" in absent
            cluster.start(1)
            migrate(desk, cluster, [0], [1])
            story.let_it_work(200)
            cluster.start(0)
            migrate(desk, cluster, [1], [0])
            story.let_it_work(200)
        assert ours(story.verdict) == []


@pytest.mark.soak
def test_two_brokers_in_and_out_with_kills(tmp_path: Path, zookeeper: str, kafka_lib: Path) -> None:
    kafka = broker_command(kafka_lib)
    settings = {"offsets.topic.replication.factor": "2", "zookeeper.session.timeout.ms": "6000"}
    place = ChaosCluster(
        tmp_path / "two", zookeeper, brokers=4, launch={0: kafka, 1: kafka}, first=(0, 1), settings=settings
    )
    with place as cluster:
        desk = Desk(cluster.bootstrap, tmp_path)
        with Story(cluster, replication_factor=2) as story:
            for leaving, coming in (([0, 1], [2, 3]), ([2, 3], [0, 1])):
                story.let_it_work(500)
                cluster.start(*coming)
                for victim in (*leaving, *coming):
                    cluster.brokers[victim].kill()
                    await_expiry(cluster, victim)
                    cluster.start(victim)
                    story.await_isr(2)
                migrate(desk, cluster, leaving, coming)
        assert ours(story.verdict) == []

"""Apache Kafka 3.9 and Odradek in one cluster, either of them as controller (row G1, its first step).

The newcomer registers in the other's ZooKeeper, is given replicas, follows, joins the ISR, is elected, serves producers
and consumers with acks=all, and hands leadership back; clients run all the while, and the judge has the last word.
"""

from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from apache_kafka import broker_command
from chaos.clients import await_condition
from chaos.operations import elect_preferred, reassign, reassigning
from chaos.story import Story
from odradek.apps.lab.cluster import ChaosCluster
from odradek.model.topology import TopicPartition

pytestmark = pytest.mark.timeout(600)
NEWCOMER, PATIENCE_S = 2, 60


def ours(verdict: list[str]) -> list[str]:
    """Without what Apache Kafka's leaders do: they refuse a batch behind a refused one as out of order; librdkafka then
    numbers anew, and a record whose answer was lost is stored twice (docs/decisions/0016)."""
    return [anomaly for anomaly in verdict if not anomaly.startswith("DUPLICATE")]


@pytest.mark.parametrize("controlled_by", [pytest.param("kafka", marks=pytest.mark.soak), "odradek"])
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
        assert ours(story.verdict) == []


def test_transactions_have_coordinators_and_leaders_of_either_kind(
    tmp_path: Path, zookeeper: str, kafka_lib: Path
) -> None:
    """Verifications and markers go both ways, and each kind follows the other's markers."""
    settings = {
        "offsets.topic.replication.factor": "2",
        "transaction.state.log.replication.factor": "2",
        "transaction.state.log.num.partitions": "4",
        "transaction.state.log.min.isr": "1",
        "zookeeper.session.timeout.ms": "18000",
    }
    launch = {0: broker_command(kafka_lib)}
    with ChaosCluster(tmp_path / "mixed", zookeeper, brokers=2, launch=launch, settings=settings) as cluster:
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap, "log_level": 0})
        assignment = [[0, 1], [1, 0]]
        admin.create_topics([NewTopic("payments", 2, replica_assignment=assignment)])["payments"].result(60)
        assert await_condition(lambda: [cluster.leader(TopicPartition("payments", p)) for p in (0, 1)] == [0, 1], 60)
        for number in range(4):  # of four ids, and so of coordinators on both brokers
            _three_transactions(cluster.bootstrap, f"id-{number}")
        internal = [TopicPartition("__transaction_state", partition) for partition in range(4)]
        assert {cluster.leader(tp) for tp in internal} == {0, 1}
        assert sorted(_committed(cluster.bootstrap)) == sorted(
            f"id-{number} {kind} {partition}"
            for number in range(4)
            for kind in ("first", "last")
            for partition in (0, 1)
        )


def _three_transactions(bootstrap: str, name: str) -> None:
    """On both partitions; the one in the middle is aborted."""
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": name, "log_level": 0})
    producer.init_transactions(PATIENCE_S)
    for kind in ("first", "aborted", "last"):
        producer.begin_transaction()
        for partition in (0, 1):
            producer.produce("payments", f"{name} {kind} {partition}", partition=partition)
        assert producer.flush(PATIENCE_S) == 0
        if kind == "aborted":
            producer.abort_transaction(PATIENCE_S)
        else:
            producer.commit_transaction(PATIENCE_S)


def _committed(bootstrap: str) -> list[str]:
    settings = {"group.id": "judge", "isolation.level": "read_committed", "auto.offset.reset": "earliest"}
    consumer = Consumer({"bootstrap.servers": bootstrap, **settings})
    found: list[str] = []
    try:
        consumer.subscribe(["payments"])
        while len(found) < 16:
            record = consumer.poll(PATIENCE_S)
            assert record is not None, found
            value = record.value()
            assert isinstance(value, bytes), record.error()
            found.append(value.decode())
    finally:
        consumer.close()
    return found

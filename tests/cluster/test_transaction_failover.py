"""The broker of the transaction coordinator is killed in every state: the transaction ends, nothing of it is torn."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka import TopicPartition as Position

from odradek.model.topic_names import TRANSACTIONS_TOPIC
from waiting import eventually

from .conftest import unused_name
from .own_cluster import PATIENCE_S, OwnCluster, running_cluster

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory, zookeeper: str) -> Iterator[OwnCluster]:
    directory: Path = tmp_path_factory.mktemp("transactions")
    settings = {
        "transaction_state_log_num_partitions": "1",
        "transaction_state_log_replication_factor": "3",
        "transaction_state_log_min_isr": "1",
        "offsets_topic_num_partitions": "1",
        "transaction_abort_timed_out_transaction_cleanup_interval_ms": "500",
    }
    with running_cluster(directory, zookeeper, **settings) as running:
        yield running


def producer(cluster: OwnCluster, timeout_ms: int = 60_000) -> Producer:
    made = Producer(
        {
            "bootstrap.servers": cluster.bootstrap,
            "transactional.id": unused_name(),
            "transaction.timeout.ms": timeout_ms,
            "log_level": 0,
        }
    )
    made.init_transactions(PATIENCE_S)
    return made


def write(made: Producer, topic: str, *values: str) -> None:
    for value in values:
        made.produce(topic, value=value)
    assert made.flush(PATIENCE_S) == 0


def committed(cluster: OwnCluster, topic: str, until: str) -> list[str]:
    """The records that a reader of committed ones gets, up to and with `until`."""
    settings = {"bootstrap.servers": cluster.bootstrap, "group.id": unused_name()}
    consumer = Consumer({**settings, "isolation.level": "read_committed"})
    consumer.assign([Position(topic, 0, 0)])  # without a group: its topic may not be there yet
    found: list[str] = []

    def is_there() -> bool:
        record = consumer.poll(1)
        if record is not None and not record.error():
            value = record.value()
            assert isinstance(value, bytes)
            found.append(value.decode())
        return until in found

    try:
        eventually(is_there, PATIENCE_S)
        return found
    finally:
        consumer.close()


def coordinator(cluster: OwnCluster) -> int:
    return cluster.leader(TRANSACTIONS_TOPIC)


@pytest.mark.soak  # a minute each: librdkafka looks for its coordinator anew
@pytest.mark.parametrize("commit", [True, False])
def test_killed_while_a_transaction_is_open(cluster: OwnCluster, commit: bool) -> None:
    made, topic = producer(cluster), unused_name()
    killed = coordinator(cluster)
    cluster.create_topic(topic, tuple(broker for broker in (0, 1, 2) if broker != killed))
    made.begin_transaction()
    write(made, topic, "1", "2")
    cluster.kill(killed)
    try:
        (made.commit_transaction if commit else made.abort_transaction)(PATIENCE_S)
        made.begin_transaction()
        write(made, topic, "end")
        made.commit_transaction(PATIENCE_S)
        assert committed(cluster, topic, "end") == (["1", "2", "end"] if commit else ["end"])
    finally:
        cluster.restart(killed)
    cluster.await_isr(TRANSACTIONS_TOPIC, (0, 1, 2))


def test_killed_between_the_decision_and_the_markers(cluster: OwnCluster) -> None:
    """The only replica of the topic is away: the decision is in the log, the marker can't be written."""
    made, topic = producer(cluster), unused_name()
    killed = coordinator(cluster)
    away = next(broker for broker in (0, 1, 2) if broker != killed)
    cluster.create_topic(topic, (away,))
    made.begin_transaction()
    write(made, topic, "1", "2")
    cluster.kill(away)
    try:
        made.commit_transaction(PATIENCE_S)
        cluster.kill(killed)
        try:
            cluster.await_leader_other_than(killed, TRANSACTIONS_TOPIC)
        finally:
            cluster.restart(killed)
    finally:
        cluster.restart(away)
    assert committed(cluster, topic, "2") == ["1", "2"]
    made.begin_transaction()
    write(made, topic, "end")
    made.commit_transaction(PATIENCE_S)
    assert committed(cluster, topic, "end") == ["1", "2", "end"]
    cluster.await_isr(TRANSACTIONS_TOPIC, (0, 1, 2))


def test_a_producer_that_goes_away_holds_readers_up_no_longer_than_its_timeout(cluster: OwnCluster) -> None:
    gone, topic = producer(cluster, timeout_ms=1_000), unused_name()
    cluster.create_topic(topic, (0, 1, 2))
    gone.begin_transaction()
    write(gone, topic, "never")
    other = producer(cluster)
    other.begin_transaction()
    write(other, topic, "end")
    other.commit_transaction(PATIENCE_S)
    assert committed(cluster, topic, "end") == ["end"]

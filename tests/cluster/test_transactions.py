"""Transactions of librdkafka's producers: committed, aborted, with offsets of a group, fenced."""

import pytest
from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka import TopicPartition as Position

from odradek.base.errors import KafkaError
from odradek.client.cluster_client import ClusterClient
from odradek.client.group_admin import committed_offsets
from odradek.model.topology import TopicPartition

from .conftest import Run, TopicMaker, told, unused_name

PATIENCE_S = 60


def producer(bootstrap: str, name: str) -> Producer:
    made = Producer({"bootstrap.servers": bootstrap, "transactional.id": name, "log_level": 0})
    made.init_transactions(PATIENCE_S)
    return made


def write(made: Producer, topic: str, *values: str) -> None:
    for value in values:
        made.produce(topic, value=value)
    made.flush(PATIENCE_S)  # so that an abort has something to abort


def read(bootstrap: str, topic: str, count: int, isolation: str = "read_committed") -> list[str]:
    consumer = reader(bootstrap, unused_name(), isolation)
    try:
        consumer.subscribe([topic])
        return take(consumer, count)
    finally:
        consumer.close()


def reader(bootstrap: str, group: str, isolation: str = "read_committed") -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "isolation.level": isolation,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )


def take(consumer: Consumer, count: int) -> list[str]:
    taken: list[str] = []
    while len(taken) < count:
        for record in consumer.consume(count - len(taken), PATIENCE_S):
            value = record.value()
            assert isinstance(value, bytes), record.error()
            taken.append(value.decode())
    return taken


@pytest.fixture(scope="module")
def transactional(bootstrap: str) -> Producer:
    return producer(bootstrap, unused_name())


def test_readers_of_committed_records_see_no_others(
    transactional: Producer, bootstrap: str, new_topic: TopicMaker
) -> None:
    topic = new_topic()
    for number in range(4):
        transactional.begin_transaction()
        write(transactional, topic, f"{number} a", f"{number} b")
        if number % 2:
            transactional.abort_transaction(PATIENCE_S)
        else:
            transactional.commit_transaction(PATIENCE_S)
    assert read(bootstrap, topic, 4) == ["0 a", "0 b", "2 a", "2 b"]
    assert len(read(bootstrap, topic, 8, "read_uncommitted")) == 8


def test_offsets_are_committed_with_the_records(transactional: Producer, bootstrap: str, new_topic: TopicMaker) -> None:
    source, target = new_topic(), new_topic()
    transactional.begin_transaction()
    write(transactional, source, "1", "2", "3")
    transactional.commit_transaction(PATIENCE_S)
    consumer = reader(bootstrap, unused_name())
    consumer.subscribe([source])
    try:
        assert take(consumer, 3) == ["1", "2", "3"]
        here = [Position(source, 0)]
        for commit, expected in ((False, -1001), (True, 3)):
            transactional.begin_transaction()
            write(transactional, target, "6")
            transactional.send_offsets_to_transaction(
                [Position(source, 0, 3)], consumer.consumer_group_metadata(), PATIENCE_S
            )
            (transactional.commit_transaction if commit else transactional.abort_transaction)(PATIENCE_S)
            assert [each.offset for each in consumer.committed(here, PATIENCE_S)] == [expected]
    finally:
        consumer.close()
    assert read(bootstrap, target, 1) == ["6"]


def test_a_second_producer_of_the_same_name_fences_the_first_and_aborts_its_transaction(
    bootstrap: str, new_topic: TopicMaker
) -> None:
    topic, name = new_topic(), unused_name()
    first = producer(bootstrap, name)
    first.begin_transaction()
    write(first, topic, "of the first")
    second = producer(bootstrap, name)
    second.begin_transaction()
    write(second, topic, "of the second")
    second.commit_transaction(PATIENCE_S)
    with pytest.raises(KafkaException) as refused:
        first.commit_transaction(PATIENCE_S)
    assert refused.value.args[0].name() in ("_FENCED", "PRODUCER_FENCED", "INVALID_PRODUCER_EPOCH")
    assert read(bootstrap, topic, 1) == ["of the second"]


def test_the_command_line_shows_an_open_transaction_and_finds_none_that_hangs(
    odradek: Run, bootstrap: str, new_topic: TopicMaker
) -> None:
    topic, name = new_topic(), unused_name()
    made = producer(bootstrap, name)
    made.begin_transaction()
    write(made, topic, "1")
    listed = told(odradek("transactions", "list", "--state", "Ongoing", "--format", "json"))
    assert name in [row["transactional_id"] for row in listed]
    (described,) = told(odradek("transactions", "describe", name, "--format", "json"))
    assert (described["state"], described["partitions"]) == ("Ongoing", f"{topic}-0")
    words = ("--topic", topic, "--max-transaction-timeout", "0", "--format", "json")
    assert told(odradek("transactions", "find-hanging", *words)) == []
    made.commit_transaction(PATIENCE_S)
    refused = odradek("transactions", "abort", topic, "0", "--start-offset", "99")
    assert refused.returncode == 1
    assert "no open transaction" in refused.stderr


def test_lines_are_written_in_one_transaction(odradek: Run, bootstrap: str, new_topic: TopicMaker) -> None:
    topic, name = new_topic(partitions=2), unused_name()
    produce = ("produce", topic, "--transactional-id", name)
    refused = odradek(*produce, "--headers", stdin="n:v\tone\nno headers\n")
    assert refused.returncode == 1, "the second line has no headers: the first is aborted"
    assert odradek(*produce, "--batch-size", "1", stdin="two\nthree\n").returncode == 0
    assert sorted(read(bootstrap, topic, 2)) == ["three", "two"]
    assert told(odradek("transactions", "describe", name, "--format", "json"))[0]["state"].startswith("CompleteC")


def test_positions_in_doubt_are_waited_for(transactional: Producer, bootstrap: str, new_topic: TopicMaker) -> None:
    """Members of groups begin at stable positions, as Kafka's consumers do."""
    topic, group = new_topic(), unused_name()
    place = TopicPartition(topic, 0)
    member = reader(bootstrap, group)
    transactional.begin_transaction()
    transactional.send_offsets_to_transaction([Position(topic, 0, 1)], member.consumer_group_metadata(), PATIENCE_S)
    member.close()
    with ClusterClient(bootstrap, timeout_ms=1_000) as client:
        assert committed_offsets(client, group, [place]) == {}
        with pytest.raises(KafkaError, match="UNSTABLE_OFFSET_COMMIT"):
            committed_offsets(client, group, [place], stable=True)
    transactional.commit_transaction(PATIENCE_S)
    with ClusterClient(bootstrap) as client:
        assert committed_offsets(client, group, [place], stable=True) == {place: 1}

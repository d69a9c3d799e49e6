"""Ranges as a task reads them, and the driver of a stream between batches, without Spark around them."""

import time
from itertools import islice

import pytest
from confluent_kafka import Producer
from confluent_kafka import TopicPartition as ClientPartition
from confluent_kafka.admin import AdminClient, NewPartitions  # type: ignore[attr-defined]
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

from odradek.apps.pipeline.arrow_records import record_columns
from odradek.apps.pipeline.source import fetching, plain_fetching
from odradek.apps.pipeline.source.errors import DataLoss, ReadFailed
from odradek.apps.pipeline.source.fetching import RangeReader
from odradek.apps.pipeline.source.offsets import OffsetRange
from odradek.apps.pipeline.source.options import read_options
from odradek.apps.pipeline.source.plain_fetching import plain_records
from odradek.apps.pipeline.source.reader import RangePartition, TopicStreamReader
from odradek.apps.pipeline.source.schema import record_schema
from odradek.model.topology import TopicPartition

from .conftest import TopicFiller, TopicMaker

NO_HEADERS = record_schema(with_headers=False)


@pytest.fixture(scope="module")
def admin(bootstrap: str) -> AdminClient:
    return AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})


def offsets_of(bootstrap: str, topic: str, start: int, end: int, **options: str) -> list[int]:
    given = {"kafka.bootstrap.servers": bootstrap, "subscribe": topic, **options}
    reader = RangeReader(read_options(given, streaming=False), NO_HEADERS)
    batches = reader.read([OffsetRange(TopicPartition(topic, 0), start, end)])
    return [offset for batch in batches for offset in batch.column("offset").to_pylist()]


def test_plain_records_are_read_without_the_client(
    bootstrap: str, new_topic: TopicMaker, fill: TopicFiller, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = new_topic()
    for first in range(0, 60, 20):  # three batches, of which the ends are asked for in part
        fill(topic, [(b"k%d" % i, b"v%d" % i) for i in range(first, first + 20)])

    def no_client(_settings: object) -> None:
        raise AssertionError("librdkafka was asked")

    monkeypatch.setattr(fetching, "Consumer", no_client)
    assert offsets_of(bootstrap, topic, 7, 53) == list(range(7, 53))
    with pytest.raises(AssertionError, match="librdkafka was asked"):
        offsets_of(bootstrap, topic, 7, 53, **{"kafka.client.id": "somebody"})


def test_the_client_reads_on_where_plain_reading_ended(
    bootstrap: str, new_topic: TopicMaker, fill: TopicFiller, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = new_topic()
    for first in (0, 20):
        fill(topic, [(None, b"%d" % i) for i in range(first, first + 20)])
    monkeypatch.setattr(plain_fetching, "plain_records", lambda *given: islice(plain_records(*given), 1))
    monkeypatch.setattr(record_columns, "_CHUNK_RECORDS", 1)
    assert offsets_of(bootstrap, topic, 3, 40) == list(range(3, 40))


def stream(bootstrap: str, topic: str, **options: str) -> TopicStreamReader:
    given = {"kafka.bootstrap.servers": bootstrap, "subscribe": topic, "startingOffsets": "earliest", **options}
    return TopicStreamReader(read_options(given, streaming=True), NO_HEADERS)


def delete_before(admin: AdminClient, topic: str, offset: int) -> None:
    place = ClientPartition(topic, 0, offset)
    for future in admin.delete_records([place]).values():
        future.result(30)


def test_records_taken_by_retention_are_a_loss_or_passed_over(
    bootstrap: str, admin: AdminClient, new_topic: TopicMaker, fill: TopicFiller
) -> None:
    topic = new_topic()
    fill(topic, [(None, b"%d" % i) for i in range(20)])
    delete_before(admin, topic, 12)

    with pytest.raises(DataLoss, match="no longer has offset 5, of 5 to 15"):
        offsets_of(bootstrap, topic, 5, 15)
    assert offsets_of(bootstrap, topic, 5, 15, failOnDataLoss="false") == [12, 13, 14]
    assert offsets_of(bootstrap, topic, 5, 10, failOnDataLoss="false") == []
    assert offsets_of(bootstrap, topic, 100, 110, failOnDataLoss="false") == []


def test_a_topic_that_is_gone_is_a_loss_or_nothing(
    bootstrap: str, admin: AdminClient, new_topic: TopicMaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetching, "_POLL_S", 1.0)  # nothing comes, so it is waited out, twice
    topic = new_topic()
    admin.delete_topics([topic])[topic].result(30)

    with pytest.raises(DataLoss, match="is gone"):
        offsets_of(bootstrap, topic, 0, 5)
    assert offsets_of(bootstrap, topic, 0, 5, failOnDataLoss="false") == []


def test_gaps_of_compaction_are_no_loss(bootstrap: str, new_topic: TopicMaker, fill: TopicFiller) -> None:
    """Twenty records of two keys; the cleaner leaves the last of each, and what is in the active segment."""
    topic = new_topic(cleanup_policy="compact", segment_bytes="1024", min_cleanable_dirty_ratio="0.01")
    for i in range(40):
        fill(topic, [(b"a" if i % 2 else b"b", b"%d" % i * 60)])
    deadline = time.monotonic() + 90
    while len(found := offsets_of(bootstrap, topic, 0, 40)) == 40 and time.monotonic() < deadline:
        time.sleep(1)

    assert len(found) < 40, "the cleaner never came"
    assert found[-1] == 39
    gap = next(offset for offset in range(40) if offset not in found)
    assert offsets_of(bootstrap, topic, gap, gap + 1) == []


def test_nothing_new_is_waited_for_only_so_long(bootstrap: str, new_topic: TopicMaker, fill: TopicFiller) -> None:
    topic = new_topic()
    fill(topic, [(None, b"x")])
    with pytest.raises((ReadFailed, DataLoss)):
        offsets_of(bootstrap, topic, 0, 5, **{"kafkaConsumer.pollTimeoutMs": "2000"})


def test_new_partitions_are_read_from_their_beginning(
    bootstrap: str, admin: AdminClient, new_topic: TopicMaker, fill: TopicFiller
) -> None:
    topic = new_topic()
    fill(topic, [(None, b"%d" % i) for i in range(10)])
    reader = stream(bootstrap, topic)
    start = reader.initialOffset()
    assert start == {topic: {"0": 0}}
    assert reader.latestOffset(start, ReadMaxRows(4)) == {topic: {"0": 4}}

    admin.create_partitions([NewPartitions(topic, 2)])[topic].result(30)
    expected, deadline = {topic: {"0": 10, "1": 3}}, time.monotonic() + 60
    producer = Producer({"bootstrap.servers": bootstrap})  # the fixture's still knows one partition only
    while "1" not in reader.latestOffset(start, ReadAllAvailable())[topic] and time.monotonic() < deadline:
        time.sleep(0.2)
    for _ in range(3):
        producer.produce(topic, b"new", partition=1)
    assert producer.flush(60) == 0

    end = reader.latestOffset(start, ReadAllAvailable())

    assert end == expected
    tasks = [task.ranges[0] for task in reader.partitions(start, end) if isinstance(task, RangePartition)]
    assert [(task.partition.partition, task.start, task.end) for task in tasks] == [(0, 0, 10), (1, 0, 3)]


def test_what_went_away_fails_the_stream_unless_told_otherwise(bootstrap: str, new_topic: TopicMaker) -> None:
    topic = new_topic()
    before, now = {topic: {"0": 5, "7": 3}}, {topic: {"0": 2}}
    with pytest.raises(DataLoss, match=f"{topic}-7 is gone"):
        stream(bootstrap, topic).partitions(before, now)
    with pytest.raises(DataLoss, match="was changed from 5 to 2"):
        stream(bootstrap, topic).partitions({topic: {"0": 5}}, now)
    assert stream(bootstrap, topic, failOnDataLoss="false").partitions(before, now) == []


def test_available_now_does_not_look_further(bootstrap: str, new_topic: TopicMaker, fill: TopicFiller) -> None:
    topic = new_topic()
    fill(topic, [(None, b"1")])
    reader = stream(bootstrap, topic)
    reader.prepareForTriggerAvailableNow()
    fill(topic, [(None, b"2")])
    assert reader.latestOffset({topic: {"0": 0}}, ReadAllAvailable()) == {topic: {"0": 1}}
    least = stream(bootstrap, topic, minOffsetsPerTrigger="5", maxTriggerDelay="1h")
    assert least.latestOffset({topic: {"0": 0}}, ReadAllAvailable()) == {topic: {"0": 0}}

"""Work of a Spark task: reads ranges of offsets from the brokers, and passes them on as Arrow batches.

If a query needs only records, they are fetched as raw batches and decoded by compiled code (`plain_fetching`).
librdkafka does everything else: security, read_committed, settings of the client, and the rest of a range after
anything but plain records in order. It fetches and decodes in threads of its own; Python sees
some thousand records at a time and takes them apart column by column.

A worker holds only the queue and the present batch.

Offsets in the range may have no record: compaction, transaction markers and aborted transactions leave gaps. A range
is over when a record lies at or past its end, or when the partition is read up to there.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from time import monotonic
from typing import Final

import pyarrow as pa
from confluent_kafka import Consumer, KafkaError, KafkaException, Message
from confluent_kafka import TopicPartition as ClientPartition
from pyspark.sql.types import StructType

from odradek.apps.pipeline.arrow_records.record_columns import RecordColumns
from odradek.apps.pipeline.source.connection import Settings
from odradek.apps.pipeline.source.errors import DataLoss, ReadFailed
from odradek.apps.pipeline.source.offsets import OffsetRange
from odradek.apps.pipeline.source.options import ReadOptions
from odradek.apps.pipeline.source.schema import arrow_schema

_BATCH_RECORDS: Final = 10_000
_POLL_S: Final = 5.0
_ASK_S: Final = 10.0
_QUEUE_KB: Final = 16 * 1024
_GONE: Final = frozenset(
    {
        KafkaError.UNKNOWN_TOPIC_OR_PART,
        KafkaError._UNKNOWN_PARTITION,
        KafkaError._UNKNOWN_TOPIC,
        KafkaError.UNKNOWN_TOPIC_ID,
    }
)
_OUT_OF_RANGE: Final = frozenset({KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE})
_PASSING: Final = frozenset(
    {KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN, KafkaError._RESOLVE, KafkaError._TIMED_OUT}
)


@dataclass(frozen=True, slots=True)
class RangeReader:
    """Reads ranges with the query's options."""

    options: ReadOptions
    schema: StructType

    def read(self, ranges: Sequence[OffsetRange]) -> Iterator[pa.RecordBatch]:
        """Records of the ranges, each of another partition."""
        schema = arrow_schema(self.schema)
        columns = {wanted.partition: Columns(wanted, schema, self.options.include_headers) for wanted in ranges}
        at = {wanted.partition: wanted.start for wanted in ranges}
        if self.options.is_plain and ranges:
            from odradek.apps.pipeline.source.plain_fetching import plain_records  # with numpy, for tasks alone

            headers_type = columns[ranges[0].partition].headers_type
            for partition, records, next_offset in plain_records(self.options.bootstrap, ranges, headers_type):
                yield columns[partition].decoded(records)
                at[partition] = next_offset
        for wanted in ranges:
            if at[wanted.partition] < wanted.end:
                rest = replace(wanted, start=at[wanted.partition])
                yield from self._read_with_client(rest, columns[wanted.partition])

    def _read_with_client(self, wanted: OffsetRange, columns: "Columns") -> Iterator[pa.RecordBatch]:
        consumer = Consumer(consumer_settings(self.options.settings))
        try:
            for messages in self._messages(consumer, wanted):
                yield columns.batch(messages)
        finally:
            consumer.close()

    def _messages(self, consumer: Consumer, wanted: OffsetRange) -> Iterator[list[Message]]:
        """Records of the range, some at a time, never an empty list."""
        _assign(consumer, wanted, wanted.start)
        at, patience_s = wanted.start, self.options.poll_timeout_ms / 1000
        deadline = monotonic() + patience_s
        while at < wanted.end:
            messages = _next_messages(consumer, min(_BATCH_RECORDS, wanted.end - at))
            if not messages and _is_gone(consumer, wanted):
                at = self._after_deletion(wanted, at)
            events = list(filter(Message.error, messages))
            if events:
                messages = [message for message in messages if message.error() is None]
            if messages:
                deadline = monotonic() + patience_s
                at = _offset(messages[-1]) + 1
                if at > wanted.end:
                    messages = [message for message in messages if _offset(message) < wanted.end]
                if messages:
                    yield messages
            for event in events:
                at = max(at, self._after(event, consumer, wanted, at))
            if monotonic() > deadline:
                raise ReadFailed(
                    f"{wanted.partition}: no record at or after {at} came within {self.options.poll_timeout_ms} ms, "
                    f"of {wanted.end - at} that are to be read (kafkaConsumer.pollTimeoutMs)"
                )

    def _after(self, event: Message, consumer: Consumer, wanted: OffsetRange, at: int) -> int:
        """Return the next position after a message other than a record."""
        error = event.error()
        assert error is not None
        code = error.code()
        if code == KafkaError._PARTITION_EOF:
            return _offset(event)
        if code in _OUT_OF_RANGE:
            return self._after_loss(consumer, wanted, at)
        if code in _GONE:
            return self._after_deletion(wanted, at)
        if code in _PASSING:
            return at
        raise ReadFailed(f"{wanted.partition}: {error.str()}")

    def _after_deletion(self, wanted: OffsetRange, at: int) -> int:
        if self.options.fail_on_data_loss:
            raise DataLoss(f"{wanted.partition} is gone, of which offsets {at} to {wanted.end} are to be read")
        return wanted.end

    def _after_loss(self, consumer: Consumer, wanted: OffsetRange, at: int) -> int:
        if self.options.fail_on_data_loss:
            raise DataLoss(
                f"{wanted.partition} no longer has offset {at}, of {wanted.start} to {wanted.end} that are to be read"
            )
        try:
            earliest, latest = consumer.get_watermark_offsets(_client_partition(wanted), timeout=30)
        except KafkaException as error:
            if error.args[0].code() in _GONE:
                return wanted.end
            raise ReadFailed(f"{wanted.partition}: {error.args[0].str()}") from None
        if at >= latest or earliest >= wanted.end:
            return wanted.end
        _assign(consumer, wanted, max(at, earliest))
        return max(at, earliest)


class Columns:
    """Maker of record batches of one partition: constant columns are built once."""

    def __init__(self, wanted: OffsetRange, schema: pa.Schema, with_headers: bool) -> None:
        self._partition = wanted.partition
        self._schema = schema
        self.headers_type: pa.DataType | None = schema.field("headers").type if with_headers else None

    def batch(self, messages: list[Message]) -> pa.RecordBatch:
        kinds, times = zip(*map(Message.timestamp, messages), strict=True)
        headers_type = self.headers_type
        return self.decoded(
            RecordColumns(
                offset=pa.array(list(map(Message.offset, messages)), pa.int64()),
                timestamp=pa.array(times, pa.timestamp("ms", "UTC")).cast(pa.timestamp("us", "UTC")),
                # librdkafka counts from "not available", Java from -1
                timestamp_type=pa.array([kind - 1 for kind in kinds], pa.int32()),
                key=pa.array(list(map(Message.key, messages)), pa.binary()),
                value=pa.array(list(map(Message.value, messages)), pa.binary()),
                headers=None if headers_type is None else pa.array(list(map(_header_rows, messages)), headers_type),
            )
        )

    def decoded(self, records: RecordColumns) -> pa.RecordBatch:
        return pa.RecordBatch.from_arrays(records.of(self._partition), schema=self._schema)


def consumer_settings(settings: Settings) -> Settings:
    ours: Settings = {
        "group.id": "odradek-spark",  # librdkafka wants one; partitions are assigned, so no group is joined
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        "enable.partition.eof": True,
        "auto.offset.reset": "error",
        "queued.max.messages.kbytes": _QUEUE_KB,
        "fetch.error.backoff.ms": 50,
        # once the queue is full librdkafka pauses for a second, while the worker empties it and waits
        "fetch.queue.backoff.ms": 5,
    }
    return ours | settings


def _assign(consumer: Consumer, wanted: OffsetRange, offset: int) -> None:
    consumer.assign([ClientPartition(wanted.partition.topic, wanted.partition.partition, offset)])


def _next_messages(consumer: Consumer, most: int) -> list[Message]:
    """Return the messages that are there, or else the next one; `consume` with a timeout would wait for all of them."""
    if messages := consumer.consume(most, 0):
        return messages
    first = consumer.poll(_POLL_S)
    return [] if first is None else [first, *consumer.consume(most, 0)]


def _is_gone(consumer: Consumer, wanted: OffsetRange) -> bool:
    """Check that the topic is absent, made when no record comes: librdkafka reports it only after minutes."""
    try:
        topic = consumer.list_topics(wanted.partition.topic, timeout=_ASK_S).topics[wanted.partition.topic]
    except KafkaException:
        return False  # no broker answers: not a fault of the topic
    if topic.error is not None:
        return topic.error.code() in _GONE
    return wanted.partition.partition not in topic.partitions


def _client_partition(wanted: OffsetRange) -> ClientPartition:
    return ClientPartition(wanted.partition.topic, wanted.partition.partition)


def _offset(message: Message) -> int:
    offset = message.offset()
    assert offset is not None
    return offset


def _header_rows(message: Message) -> object:
    """Return the headers as rows; None without headers, as the connector has it."""
    return message.headers() or None

"""Rows to topics, in batch and streaming queries: at least once, as Spark's connector writes (or `exactly_once`).

The columns are `value` (string or binary, needed), and as wanted `key` (string or binary), `topic` (when the option
`topic` isn't given), `partition` (int) and `headers` (array of key and value). A task returns when every row of it is
acknowledged; the producer is idempotent, so a retry of the client writes nothing twice, but a retried task does.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa
from confluent_kafka import KafkaError, KafkaException, Message, Producer
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import ArrayType, BinaryType, DataType, IntegerType, StringType, StructType

from odradek.apps.pipeline.source.errors import OptionError, WriteFailed
from odradek.apps.pipeline.source.options import WriteOptions

_ANY_PARTITION: Final = -1
_POLL_EACH: Final = 1000
_BYTES_LIKE: Final = (StringType, BinaryType)
_COLUMN_TYPES: Final[dict[str, tuple[type[DataType], ...]]] = {
    "key": _BYTES_LIKE,
    "value": _BYTES_LIKE,
    "topic": (StringType,),
    "partition": (IntegerType,),
    "headers": (ArrayType,),
}


@dataclass
class RowsWritten(WriterCommitMessage):
    rows: int


@dataclass(slots=True)
class RowProducer:
    """Writes the batches of one task."""

    options: WriteOptions
    _failure: KafkaError | None = field(default=None, init=False)

    def write(self, batches: Iterator[pa.RecordBatch]) -> RowsWritten:
        producer = Producer(self.options.settings)
        rows = 0
        for batch in batches:
            self._produce(producer, batch)
            rows += batch.num_rows
        while self._failure is None and producer.flush(1.0):
            pass
        self._raise_failure(producer)
        return RowsWritten(rows)

    def _produce(self, producer: Producer, batch: pa.RecordBatch) -> None:
        count, columns = batch.num_rows, {name: batch.column(name) for name in batch.schema.names}
        values = _python_values(columns["value"])
        keys = _python_values(columns["key"]) if "key" in columns else [None] * count
        partitions = columns["partition"].to_pylist() if "partition" in columns else [None] * count
        headers = columns["headers"].to_pylist() if "headers" in columns else [None] * count
        topics = [self.options.topic] * count if self.options.topic else columns["topic"].to_pylist()
        for at, (topic, key, value, partition, header) in enumerate(
            zip(topics, keys, values, partitions, headers, strict=True)
        ):
            if topic is None:
                raise WriteFailed(
                    "A row has a null topic and no default: give the topic column a value, or set the option topic"
                )
            fields: dict[str, Any] = {"headers": [(h["key"], h["value"]) for h in header]} if header else {}
            place = _ANY_PARTITION if partition is None else partition
            self._enqueue(producer, topic, value, key, place, fields)
            if at % _POLL_EACH == 0:
                producer.poll(0)
                self._raise_failure(producer)

    def _enqueue(
        self, producer: Producer, topic: str, value: Any, key: Any, partition: int, fields: dict[str, Any]
    ) -> None:
        while True:
            try:
                producer.produce(topic, value, key, partition, on_delivery=self._delivered, **fields)
                return
            except BufferError:
                # librdkafka's queue is full: wait for acknowledgements, so that a worker's memory is bounded
                producer.poll(1.0)
                self._raise_failure(producer)
            except KafkaException as error:
                raise WriteFailed(f"A row can't be written to {topic}: {error.args[0].str()}") from None

    def _delivered(self, error: KafkaError | None, _: Message) -> None:
        if error is not None and self._failure is None:
            self._failure = error

    def _raise_failure(self, producer: Producer) -> None:
        if self._failure is not None:
            producer.purge()
            raise WriteFailed(f"A row was not acknowledged: {self._failure.str()}")


class TopicBatchWriter(DataSourceArrowWriter):
    def __init__(self, options: WriteOptions, schema: StructType, *, overwrite: bool) -> None:
        if overwrite:
            raise OptionError('A topic is only appended to: write with mode("append")')
        if options.exactly_once:
            raise OptionError("exactlyOnce is for streaming queries: a batch query has no batch to know again")
        check_columns(schema, options)
        self._options = options

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        return RowProducer(self._options).write(iterator)


class TopicStreamWriter(DataSourceStreamArrowWriter):
    def __init__(self, options: WriteOptions, schema: StructType) -> None:
        check_columns(schema, options)
        self._options = options

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        return RowProducer(self._options).write(iterator)


def check_columns(schema: StructType, options: WriteOptions) -> None:
    """Refuse rows that can't become records, before the first one is written."""
    columns = {column.name: column.dataType for column in schema.fields}
    if "value" not in columns:
        raise OptionError(f"There is no column value to write; the columns are {', '.join(columns) or 'none'}")
    if "topic" not in columns and options.topic is None:
        raise OptionError('Which topic? Set the option "topic", or give the rows a column topic')
    for name, kind in columns.items():
        allowed = _COLUMN_TYPES.get(name)
        if allowed is not None and not isinstance(kind, allowed):
            wanted = " or ".join(each.typeName() for each in allowed)
            raise OptionError(f"The column {name} must be {wanted}, not {kind.simpleString()}")


def _python_values(column: pa.Array) -> list[Any]:
    """Strings as the bytes that they are, without going through Python's str."""
    if pa.types.is_string(column.type):
        column = column.cast(pa.binary())
    elif pa.types.is_large_string(column.type):
        column = column.cast(pa.large_binary())
    values: list[Any] = column.to_pylist()
    return values

"""Batches into a topic, each record once, as far as a topic without transactions allows it.

Before a batch is written, its number and the topic's end offsets are kept (the intent). If the driver dies and Spark
gives the batch again, records behind those offsets with the batch's name in a header are already there, and only the
others are written. So the topic has each record once if the repeated batch is equal. It may differ: a transform may use
random numbers, the clock, or a dimension that has changed meanwhile. Then a record may be there in both forms. So the
guarantee is at least once.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from odradek.apps.pipeline.checkpoint import write_durably
from odradek.apps.pipeline.quality import KEY_BYTES_MAX, VALUE_BYTES_MAX, fitting, header
from odradek.apps.pipeline.source.options import WriteOptions, write_options
from odradek.apps.pipeline.spec import TopicSink
from odradek.client.cluster_client import ClusterClient
from odradek.client.partition_offsets import list_offsets
from odradek.model.topology import TopicPartition
from odradek.protocol.messages.list_offsets import LATEST

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame

BATCH_HEADER = "odradek.batch"
RECORDS_PER_TASK = 20_000
_COLUMNS = ("topic", "key", "value", "headers")


@dataclass(frozen=True, slots=True)
class TopicOutput:
    """Writer that Spark calls with each batch: rows with topic (one of `topics`), key, value and headers."""

    bootstrap: str
    topics: tuple[str, ...]
    name: str  # PIPELINE/QUERY/gN: with the batch's number it names the batch everywhere
    intent: Path

    def __call__(self, batch: "DataFrame", number: int, count: int) -> None:
        """`count` is the number of rows."""
        from pyspark.sql import functions as F

        if not count:
            return
        tag = f"{self.name}/{number}"
        named = F.struct(F.lit(BATCH_HEADER).alias("key"), F.lit(tag.encode()).alias("value"))
        tagged = F.concat(F.col("headers"), F.array(named)).alias("headers")
        records = batch.select("topic", "key", "value", tagged)
        begun = self._begun(number)
        if begun is None:
            write_durably(self.intent, {"batch": number, "ends": self._ends()})
        else:
            records = records.exceptAll(self._written(batch, begun, tag))
        write_records(records, write_options(self._connection), count)

    def _begun(self, number: int) -> dict[str, dict[str, int]] | None:
        """Return the topics' ends before the batch was first written; None if its writing never began."""
        try:
            intent: dict[str, Any] = json.loads(self.intent.read_text())
        except FileNotFoundError:
            return None
        return dict(intent["ends"]) if intent["batch"] == number else None

    def _ends(self) -> dict[str, dict[str, int]]:
        ends: dict[str, dict[str, int]] = {topic: {} for topic in self.topics}
        with ClusterClient(self.bootstrap, client_id=self.name) as client:
            partitions = [TopicPartition(topic, p.partition) for topic in ends for p in client.topic(topic).partitions]
            for tp, at in list_offsets(client, dict.fromkeys(partitions, LATEST)).items():
                ends[tp.topic][str(tp.partition)] = at.offset or 0
        return ends

    def _written(self, batch: "DataFrame", begun: dict[str, dict[str, int]], tag: str) -> "DataFrame":
        from pyspark.sql import functions as F

        # a new partition is read from its beginning
        starts = {
            topic: {partition: begun.get(topic, {}).get(partition, 0) for partition in ends}
            for topic, ends in self._ends().items()
        }
        options = {
            **self._connection,
            "subscribe": ",".join(self.topics),
            "includeHeaders": "true",
            "startingOffsets": json.dumps(starts),
        }
        reader = batch.sparkSession.read.format("odradek").options(**options)
        is_ours = F.exists("headers", lambda h: (h["key"] == BATCH_HEADER) & (h["value"] == F.lit(tag.encode())))
        return reader.load().where(is_ours).select(*_COLUMNS)

    @property
    def _connection(self) -> dict[str, str]:
        return {"kafka.bootstrap.servers": self.bootstrap}


def write_records(records: "DataFrame", options: WriteOptions, count: int) -> None:
    """Write rows with topic, key, value and headers; returns when all are acknowledged.

    By a function over Arrow batches, not by `format("odradek")`: Spark plans and commits a Python data source in Python
    processes that it starts for that alone, three for each batch.
    """

    def write(batches: "Iterator[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
        import pyarrow

        from odradek.apps.pipeline.source.writer import RowProducer

        yield pyarrow.record_batch({"rows": [RowProducer(options).write(batches).rows]})

    records.coalesce(1 + count // RECORDS_PER_TASK).mapInArrow(write, "rows LONG").collect()


def as_records(frame: "DataFrame", sink: TopicSink, dead_letters: str) -> "DataFrame":
    """Return rows as records: the value is a JSON object of the columns, the key the declared columns joined by '|'.

    A row that is too large for the topic's default becomes a dead letter, and doesn't stop the query.
    """
    from pyspark.sql import functions as F

    value = record_value(record_names(sink, frame.columns))
    rows = frame.select(record_key(sink).alias("key"), value.alias("value"))
    return rows.select(*record_columns(sink, dead_letters, F.col("key"), F.col("value")))


def record_names(sink: TopicSink, columns: Sequence[str]) -> tuple[str, ...]:
    """Columns of a view that are part of a record's value."""
    return sink.columns or tuple(name for name in columns if name != "_record")


def record_value(names: Sequence[str], prefix: str = "") -> "Column":
    """The value of a row; `prefix` leads to its columns."""
    from pyspark.sql import functions as F

    columns = F.struct(*(F.col(f"{prefix}`{name}`").alias(name) for name in names))
    return F.to_json(columns, {"ignoreNullFields": "false"}).cast("binary")


def record_key(sink: TopicSink, prefix: str = "") -> "Column":
    from pyspark.sql import functions as F

    if not sink.key:
        return F.lit(None).cast("binary")
    columns = [F.col(f"{prefix}`{name}`").cast("string") for name in sink.key]
    return F.concat_ws("|", *(F.coalesce(column, F.lit("")) for column in columns)).cast("binary")


def record_columns(sink: TopicSink, dead_letters: str, key: "Column", value: "Column") -> "list[Column]":
    """Topic, key, value and headers of a record with this key and value."""
    from pyspark.sql import functions as F

    is_large = (F.length(value) > VALUE_BYTES_MAX) | (F.coalesce(F.length(key), F.lit(0)) > KEY_BYTES_MAX)
    limits = f"more than {VALUE_BYTES_MAX:,} bytes, or {KEY_BYTES_MAX:,} of key"
    reason = F.lit(f"too large for topic {sink.topic}: {limits}")
    dead_letter_headers = F.array(header("odradek.reason", reason), header("odradek.sink", F.lit(sink.name)))
    nothing = F.array().cast("array<struct<key:string,value:binary>>")
    return [
        F.when(is_large, dead_letters).otherwise(sink.topic).alias("topic"),
        *fitting(key, value),
        F.when(is_large, dead_letter_headers).otherwise(nothing).alias("headers"),
    ]

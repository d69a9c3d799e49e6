"""Batches into a topic, each record once, as far as a topic without transactions allows it.

Before a batch is written, its number and the topic's end offsets are kept (the intent). If the driver dies and Spark
gives the batch again, what lies behind those offsets and carries the batch's name in its header is already there, and
only the rest is written. So the topic has each record once when the batch comes out the same as before. It need not:
a transform may use chance, the clock, or a dimension that has changed meanwhile. Then a record may be there in both
forms. That is why the promise is at least once.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from odradek.client.cluster_client import ClusterClient
from odradek.client.partition_offsets import LATEST, list_offsets
from odradek.model.topology import TopicPartition
from odradek.pipeline.checkpoint import write_durably

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

BATCH_HEADER = "odradek.batch"
_COLUMNS = ("key", "value", "headers")


@dataclass(frozen=True, slots=True)
class TopicOutput:
    """Called by Spark with each batch: rows with key, value and headers, as the data source takes them."""

    bootstrap: str
    topic: str
    name: str  # PIPELINE/QUERY/gN: with the batch's number it names the batch everywhere
    intent: Path

    def __call__(self, batch: "DataFrame", number: int) -> None:
        from pyspark.sql import functions as F

        tag = f"{self.name}/{number}"
        named = F.struct(F.lit(BATCH_HEADER).alias("key"), F.lit(tag.encode()).alias("value"))
        records = batch.select("key", "value", F.concat(F.col("headers"), F.array(named)).alias("headers"))
        begun = self._begun(number)
        if begun is None:
            write_durably(self.intent, {"batch": number, "ends": self._ends()})
        else:
            records = records.exceptAll(self._written(batch, begun, tag))
        options = {**self._connection, "topic": self.topic, "includeHeaders": "true"}
        records.write.format("odradek").options(**options).mode("append").save()

    def _begun(self, number: int) -> dict[str, int] | None:
        """The topic's ends before the batch was first written; None if nobody began to."""
        try:
            intent: dict[str, Any] = json.loads(self.intent.read_text())
        except FileNotFoundError:
            return None
        return dict(intent["ends"]) if intent["batch"] == number else None

    def _ends(self) -> dict[str, int]:
        with ClusterClient(self.bootstrap, client_id=self.name) as client:
            partitions = [TopicPartition(self.topic, p.partition) for p in client.topic(self.topic).partitions]
            found = list_offsets(client, dict.fromkeys(partitions, LATEST))
        return {str(tp.partition): at.offset or 0 for tp, at in found.items()}

    def _written(self, batch: "DataFrame", begun: dict[str, int], tag: str) -> "DataFrame":
        from pyspark.sql import functions as F

        # a partition that has come since is read from its beginning
        starts = {partition: begun.get(partition, 0) for partition in self._ends()}
        options = {
            **self._connection,
            "subscribe": self.topic,
            "includeHeaders": "true",
            "startingOffsets": json.dumps({self.topic: starts}),
        }
        reader = batch.sparkSession.read.format("odradek").options(**options)
        is_ours = F.exists("headers", lambda h: (h["key"] == BATCH_HEADER) & (h["value"] == F.lit(tag.encode())))
        return reader.load().where(is_ours).select(*_COLUMNS)

    @property
    def _connection(self) -> dict[str, str]:
        return {"kafka.bootstrap.servers": self.bootstrap}


def as_records(frame: "DataFrame", key: tuple[str, ...], columns: tuple[str, ...]) -> "DataFrame":
    """Rows as records: the value is a JSON object of the columns, the key what is declared, columns joined by '|'."""
    from pyspark.sql import functions as F

    names = [name for name in frame.columns if name != "_record"]
    chosen = columns or tuple(names)
    value = F.to_json(F.struct(*(F.col(f"`{name}`") for name in chosen)), {"ignoreNullFields": "false"})
    return frame.select(
        _key(key).cast("binary").alias("key"),
        value.cast("binary").alias("value"),
        F.array().cast("array<struct<key:string,value:binary>>").alias("headers"),
    )


def _key(columns: tuple[str, ...]) -> "Column":
    from pyspark.sql import functions as F

    if not columns:
        return F.lit(None).cast("string")
    return F.concat_ws("|", *(F.coalesce(F.col(f"`{name}`").cast("string"), F.lit("")) for name in columns))

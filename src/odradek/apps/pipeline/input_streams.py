"""Streams of a pipeline's topics, made in a thread while the rest of the queries is planned.

For each stream Spark starts Python processes, one after the other, and waits for their answers; another one looks for
data sources when the first is registered.
"""

import json
from collections.abc import Mapping
from concurrent.futures import Future
from threading import Thread
from typing import TYPE_CHECKING

from odradek.apps.pipeline.spec import Pipeline

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

OffsetsByTopic = Mapping[str, Mapping[str, int]]
# A partition with most of the keys is read by several tasks, not by one while the other cores wait.
_RANGES_PER_BATCH = 4
_RANGE_RECORDS_MIN = 10_000
# Partitions with few records each are read by one task: a task costs more than some hundred records.
_TASK_RECORDS_MIN = 2_500
# The driver writes the first batch of a backlog, so that the table has rows while the JVM still compiles.
_FIRST_BATCH_RECORDS = 2_000
_NEVER_MS = 253_402_300_799_000  # the end of 9999


class InputStreams:
    """Records of each source and each dimension by its name. An error is raised where the stream is asked for."""

    def __init__(self, spark: "SparkSession", pipeline: Pipeline, starting: OffsetsByTopic) -> None:
        self._spark = spark
        self._pipeline = pipeline
        self._starting = starting
        self._made: dict[str, Future[DataFrame]] = {
            name: Future() for name in (*pipeline.sources, *pipeline.dimensions)
        }
        Thread(target=self._make, name="input streams", daemon=True).start()

    def of(self, name: str) -> "DataFrame":
        return self._made[name].result()

    def _make(self) -> None:
        is_registered = False
        for name, future in self._made.items():
            try:
                if not is_registered:
                    _register(self._spark)
                    is_registered = True
                future.set_result(self._source(name) if name in self._pipeline.sources else self._dimension(name))
            except BaseException as error:  # for the thread that asks
                future.set_exception(error)

    def read_nothing(self) -> None:
        """Plan and run a batch without a record: Python workers that plan and read are there when the query starts."""
        for name in self._made:
            self.of(name)
        topic = next(iter(self._pipeline.input_topics))
        never = {"startingTimestamp": str(_NEVER_MS), "startingOffsetsByTimestampStrategy": "latest"}
        reader = self._spark.read.format("odradek").options(subscribe=topic, **never)
        rows = reader.option("kafka.bootstrap.servers", self._pipeline.bootstrap).load()
        rows.repartition("partition").groupBy("partition").count().toArrow()

    def _source(self, name: str) -> "DataFrame":
        source = self._pipeline.sources[name]
        return self._stream(source.topics, source.start, fail_on_data_loss=source.fail_on_data_loss)

    def _dimension(self, name: str) -> "DataFrame":
        return self._stream((self._pipeline.dimensions[name].topic,), "earliest")

    def _stream(self, topics: tuple[str, ...], start: str, *, fail_on_data_loss: bool = True) -> "DataFrame":
        given = {topic: dict(self._starting[topic]) for topic in topics if topic in self._starting}
        batch = self._pipeline.records_per_batch_max
        options = {
            "kafka.bootstrap.servers": self._pipeline.bootstrap,
            "subscribe": ",".join(topics),
            "startingOffsets": json.dumps(given) if given else start,
            "maxOffsetsPerTrigger": str(batch),
            "maxOffsetsOfFirstTrigger": str(_FIRST_BATCH_RECORDS),
            "maxRecordsPerPartition": str(max(_RANGE_RECORDS_MIN, batch // _RANGES_PER_BATCH)),
            "minRecordsPerPartition": str(_TASK_RECORDS_MIN),
            "failOnDataLoss": str(fail_on_data_loss).lower(),
        }
        return self._spark.readStream.format("odradek").options(**options).load()


def _register(session: "SparkSession") -> None:
    """Register the data source, which Spark would find by itself, so that its tasks run in the workers of functions.

    A source that Spark has found has another environment: a second daemon, and twice as many Python workers. A Spark
    Connect server finds it by itself.
    """
    from odradek.apps.pipeline.source.data_source import TopicDataSource

    if getattr(session, "_sc", None) is not None:
        session.dataSource.register(TopicDataSource)

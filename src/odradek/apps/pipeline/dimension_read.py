"""A topic as rows that every batch reads anew, from its beginning to its end at that moment.

Spark plans a Python data source in a Python process that it starts each time, half a second of CPU for a batch that may
take less. Here the tasks themselves ask for the offsets, in the Python workers that are there anyway.
"""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from odradek.apps.pipeline.source.offsets import OffsetRange
from odradek.apps.pipeline.source.options import read_options

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from odradek.apps.pipeline.source.cluster import Cluster

TASKS = 2


def topic_rows(spark: "SparkSession", connection: Mapping[str, str], topic: str) -> "DataFrame":
    """Rows as `format("odradek")` has them."""
    from odradek.apps.pipeline.source.cluster import Cluster
    from odradek.apps.pipeline.source.fetching import RangeReader
    from odradek.apps.pipeline.source.schema import record_schema

    options = read_options({**connection, "subscribe": topic}, streaming=False)
    schema = record_schema(with_headers=False)
    reader = RangeReader(options, schema)

    def read(tasks: "Iterator[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
        for task in tasks:
            for number in task.column(0).to_pylist():
                for wanted in _ranges(Cluster(options), number):
                    yield from reader.read(wanted)

    return spark.range(0, TASKS, 1, TASKS).mapInArrow(read, schema)


def _ranges(cluster: "Cluster", task: int) -> list[OffsetRange]:
    partitions = [partition for partition in cluster.partitions() if partition.partition % TASKS == task]
    start, end = cluster.earliest(partitions), cluster.latest(partitions)
    return [OffsetRange(partition, start[partition], end[partition]) for partition in partitions]

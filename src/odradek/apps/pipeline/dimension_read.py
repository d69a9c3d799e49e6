"""A topic as rows that every batch reads anew, from its beginning to its end at that moment.

For the plan of a Python data source, Spark starts a Python process each time: half a second of CPU for a batch that may
take less. Here the tasks themselves ask for the offsets, in Python workers that exist anyway.
"""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from odradek.apps.pipeline.source.offsets import OffsetRange
from odradek.apps.pipeline.source.options import read_options

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from odradek.apps.pipeline.source.cluster import Cluster
    from odradek.apps.pipeline.source.options import ReadOptions

_TASKS = 2
# A topic with fewer records is read by one task, so that Spark need not group its rows by key.
_RECORDS_OF_TASK = 50_000
_clusters: dict[str, "Cluster"] = {}


def topic_rows(spark: "SparkSession", connection: Mapping[str, str], topic: str, count: int) -> "DataFrame":
    """Rows as `format("odradek")` has them, read by `count` tasks."""
    from odradek.apps.pipeline.source.fetching import RangeReader
    from odradek.apps.pipeline.source.schema import record_schema

    options = read_options({**connection, "subscribe": topic}, streaming=False)
    schema = record_schema(with_headers=False)
    reader = RangeReader(options, schema)

    def read(tasks: "Iterator[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
        for task in tasks:
            for number in task.column(0).to_pylist():
                yield from reader.read(_ranges(_cluster(options), number, count))

    return spark.range(0, count, 1, count).mapInArrow(read, schema)


def _cluster(options: "ReadOptions") -> "Cluster":
    """The connection of this process: a worker keeps it for the batches to come."""
    from odradek.apps.pipeline.source.cluster import Cluster

    return _clusters.setdefault(repr((sorted(options.settings.items()), options.subscription)), Cluster(options))


def tasks_of(ends: Mapping[str, int] | None) -> int:
    """Tasks that read a topic, by the end offsets of its partitions; None: they are unknown."""
    return 1 if ends is not None and sum(ends.values()) <= _RECORDS_OF_TASK else _TASKS


def _ranges(cluster: "Cluster", task: int, tasks: int) -> list[OffsetRange]:
    """Ranges of one of the tasks that read the topic."""
    partitions = [partition for partition in cluster.partitions() if partition.partition % tasks == task]
    start, end = cluster.earliest(partitions), cluster.latest(partitions)
    ranges = [OffsetRange(partition, start[partition], end[partition]) for partition in partitions]
    return [wanted for wanted in ranges if wanted.size > 0]

"""The batch reader and the stream reader: they choose the ranges to read, on the driver."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from time import monotonic
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from odradek.apps.pipeline.source.cluster import Cluster
from odradek.apps.pipeline.source.errors import DataLoss
from odradek.apps.pipeline.source.fetching import RangeReader
from odradek.apps.pipeline.source.offsets import (
    OffsetRange,
    Offsets,
    from_json,
    limited,
    packed_ranges,
    records_of_first_batch,
    split_ranges,
    to_json,
)
from odradek.apps.pipeline.source.options import ReadOptions
from odradek.apps.pipeline.source.read_limits import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from odradek.model.topology import TopicPartition


@dataclass
class RangePartition(InputPartition):
    """Ranges of one Spark task, each of another partition."""

    ranges: tuple[OffsetRange, ...]


def _tasks(ranges: list[OffsetRange], options: ReadOptions) -> list[RangePartition]:
    pieces = split_ranges(ranges, options.min_partitions, options.max_records_per_partition)
    return [RangePartition(task) for task in packed_ranges(pieces, options.min_records_per_partition)]


class TopicBatchReader(DataSourceReader):
    def __init__(self, options: ReadOptions, schema: StructType) -> None:
        self._options = options
        self._ranges = RangeReader(options, schema)

    def partitions(self) -> Sequence[InputPartition]:
        cluster = Cluster(self._options)
        partitions = cluster.partitions()
        start = cluster.resolve(self._options.start, partitions, start=True)
        end = cluster.resolve(self._options.end, partitions, start=False)
        ranges = [OffsetRange(p, start[p], end[p]) for p in partitions]
        return _tasks(ranges, self._options)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        # Without input Spark still starts one task, whose partition is not ours.
        return self._ranges.read(partition.ranges) if isinstance(partition, RangePartition) else iter(())


class TopicStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Offsets are `{"topic": {"partition": next offset}}`, as in the connector's checkpoints and progress."""

    def __init__(self, options: ReadOptions, schema: StructType) -> None:
        self._options = options
        self._ranges = RangeReader(options, schema)
        self._cluster = Cluster(options)
        self._available_now: Offsets | None = None
        self._last_batch_at = monotonic()
        self._latest_seen: Offsets = {}
        self._has_read = False

    def initialOffset(self) -> dict[str, Any]:
        return to_json(self._cluster.resolve(self._options.start, self._cluster.partitions(), start=True))

    def getDefaultReadLimit(self) -> ReadLimit:
        limit = self._options.max_offsets_per_trigger
        return ReadAllAvailable() if limit is None else ReadMaxRows(limit)

    def prepareForTriggerAvailableNow(self) -> None:
        self._available_now = self._cluster.latest(self._cluster.partitions())

    def latestOffset(self, start: dict[str, Any] | None = None, limit: ReadLimit | None = None) -> dict[str, Any]:
        """Return the end of the next batch. Spark 4.1 passes neither start nor limit; without a start the limit can't
        be applied."""
        begin = from_json(start or {})
        latest = self._available_now
        if latest is None:
            latest = self._latest_seen = self._cluster.latest(self._cluster.partitions())
            if start is not None and self._waits_for_more(begin, latest):
                return start
        self._last_batch_at = monotonic()
        if isinstance(limit, ReadMaxRows):
            new = [p for p in latest if p not in begin]
            latest = self._limited(begin | self._cluster.earliest(new), latest, limit.max_rows)
        return to_json(latest)

    def _limited(self, begin: Offsets, latest: Offsets, most: int) -> Offsets:
        if not self._has_read:
            most = records_of_first_batch(begin, latest, most, self._options.max_offsets_of_first_trigger)
        end = limited(begin, latest, most)
        self._has_read = self._has_read or end != begin
        return end

    def reportLatestOffset(self) -> dict[str, Any] | None:
        return to_json(self._latest_seen) if self._latest_seen else None

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        begin, finish = from_json(start), from_json(end)
        if gone := sorted(set(begin) - set(finish)):
            self._report_loss(f"{', '.join(map(str, gone))} {'is' if len(gone) == 1 else 'are'} gone")
        new = self._new_partitions([p for p in finish if p not in begin])
        ranges = [OffsetRange(p, (begin | new)[p], offset) for p, offset in finish.items() if p in begin or p in new]
        for r in ranges:
            if r.size < 0:
                self._report_loss(f"{r.partition}'s offset was changed from {r.start} to {r.end}")
        return _tasks(ranges, self._options)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, RangePartition)
        return self._ranges.read(partition.ranges)

    def _new_partitions(self, partitions: list[TopicPartition]) -> Offsets:
        """Return the starts of new partitions: they are read from their first offset, which should be 0."""
        found = self._cluster.earliest(partitions)
        for partition, offset in found.items():
            if offset != 0:
                self._report_loss(f"the new partition {partition} starts at {offset} instead of 0")
        return found

    def _waits_for_more(self, begin: Offsets, latest: Offsets) -> bool:
        least = self._options.min_offsets_per_trigger
        if least is None or (monotonic() - self._last_batch_at) * 1000 >= self._options.max_trigger_delay_ms:
            return False
        return sum(max(0, offset - begin.get(p, 0)) for p, offset in latest.items()) < least

    def _report_loss(self, what: str) -> None:
        if self._options.fail_on_data_loss:
            raise DataLoss(what)

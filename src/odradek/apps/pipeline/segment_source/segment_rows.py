"""Rows of `odradek-log`: records or batches of segment files. A task reads one large file, or many small ones.

Options: `path` (log directories, separated by commas; or the argument of `load`), `topics` (all of them unless named),
`rows` (`records` or `batches`), `includeHeaders`, `mode` (FAILFAST: a broken batch fails the query; DROPMALFORMED:
its records are left out), `isolationLevel` (`read_uncommitted`, or `read_committed`: without records of open and
aborted transactions, and below the checkpointed high watermark). Control records are left out.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from odradek.apps.pipeline.arrow_records.record_columns import (
    MAX_DECOMPRESSED,
    MalformedRecords,
    PlainBatch,
    RecordColumns,
    chunked,
    decode_records,
)
from odradek.apps.pipeline.segment_source.committed import NO_END, base_offset, committed_part
from odradek.apps.pipeline.segment_source.log_directories import ReplicaDirectory, replicas
from odradek.apps.pipeline.segment_source.segment_file import StoredBatch, stored_batches
from odradek.apps.pipeline.source.errors import OptionError, ReadFailed
from odradek.apps.pipeline.source.options import includes_headers
from odradek.apps.pipeline.source.schema import arrow_schema
from odradek.base.errors import KafkaError
from odradek.model.topology import TopicPartition
from odradek.protocol.aborted_batches import AbortedBatches
from odradek.protocol.record_batch import HEADER_SIZE
from odradek.protocol.records import plain_payload

_CHUNK_BATCHES: Final = 5_000
_TASK_BYTES: Final = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class LogOptions:
    paths: tuple[str, ...]
    topics: frozenset[str]
    rows: str
    with_headers: bool
    drop_malformed: bool
    read_committed: bool = False


@dataclass(frozen=True, slots=True)
class Segment:
    broker: int
    partition: TopicPartition
    path: str
    end: int = NO_END
    """Records from this offset on are not read."""
    aborted: tuple[tuple[int, int], ...] = ()
    """Producer id and first offset of the transactions whose records are not read."""


@dataclass
class SegmentsPartition(InputPartition):
    """Range of one Spark task."""

    segments: tuple[Segment, ...]


class SegmentReader(DataSourceReader):
    def __init__(self, options: LogOptions, schema: StructType) -> None:
        self._options = options
        self._schema = schema

    def partitions(self) -> Sequence[InputPartition]:
        segments = [
            (Path(segment.path).stat().st_size, segment)
            for replica in replicas(self._options.paths, self._options.topics)
            for segment in self._segments(replica)
        ]
        return [SegmentsPartition(tuple(task)) for task in tasks_of(segments)]

    def _segments(self, replica: ReplicaDirectory) -> list[Segment]:
        paths = replica.segments()
        if not self._options.read_committed:
            return [Segment(replica.broker, replica.partition, str(path)) for path in paths]
        committed = committed_part(replica.path, paths, replica.high_watermark)
        bases = [*map(base_offset, paths), NO_END]
        return [
            Segment(replica.broker, replica.partition, str(path), committed.end, committed.of_segment(base, next_base))
            for path, base, next_base in zip(paths, bases, bases[1:], strict=False)
        ]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if isinstance(partition, SegmentsPartition):  # without input, Spark starts a task without one of our partitions
            schema = arrow_schema(self._schema)
            for segment in partition.segments:
                yield from self.rows(segment, schema)

    def rows(self, segment: Segment, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        raise NotImplementedError


class RecordRows(SegmentReader):
    def rows(self, segment: Segment, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        headers_type = schema.field("headers").type if self._options.with_headers else None
        for chunk in chunked(self._batches(segment)):
            try:
                yield _record_batch(segment, decode_records(chunk, headers_type), schema)
            except MalformedRecords as error:
                self._refuse(segment, str(error))
                for batch in chunk:
                    with suppress(MalformedRecords):
                        yield _record_batch(segment, decode_records([batch], headers_type), schema)

    def _refuse(self, segment: Segment, what: str) -> None:
        if not self._options.drop_malformed:
            raise ReadFailed(f"{segment.path}: {what}. With the option mode=DROPMALFORMED its records are left out")

    def _batches(self, segment: Segment) -> Iterator[PlainBatch]:
        skipped = AbortedBatches(segment.aborted)
        for batch in stored_batches(Path(segment.path)):
            if batch.header.base_offset >= segment.end:
                return
            if batch.problem is not None:
                self._refuse(segment, f"the batch at byte {batch.position} is broken: {batch.problem}")
                continue
            if skipped.is_aborted(batch.view, 0, batch.header):
                continue
            if batch.header.is_control or not batch.header.record_count:
                continue
            try:
                yield batch.header, _payload(batch)
            except KafkaError as error:
                self._refuse(segment, f"the batch at byte {batch.position} can't be decompressed: {error.message}")


class BatchRows(SegmentReader):
    def rows(self, segment: Segment, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        found: list[tuple[Any, ...]] = []
        for batch in stored_batches(Path(segment.path)):
            found.append(_batch_row(segment, batch))
            if len(found) == _CHUNK_BATCHES:
                yield _rows_to_arrow(found, schema)
                found = []
        if found:
            yield _rows_to_arrow(found, schema)


def tasks_of(segments: Iterable[tuple[int, Segment]]) -> list[list[Segment]]:
    """Make the tasks: the largest first, so that no long task runs alone at the end; small ranges share tasks."""
    tasks: list[list[Segment]] = []
    room = 0
    for size, segment in sorted(segments, key=lambda each: (-each[0], each[1].path)):
        if not size:
            continue
        if room < size:
            tasks.append([])
            room = _TASK_BYTES
        tasks[-1].append(segment)
        room -= size
    return tasks


def log_options(options: Mapping[str, str]) -> LogOptions:
    paths = tuple(path.strip() for path in options.get("path", "").split(",") if path.strip())
    if not paths:
        raise OptionError("Which log directories? Give them to load(), separated by commas")
    rows, mode = options.get("rows", "records").lower(), options.get("mode", "FAILFAST").upper()
    if rows not in ("records", "batches"):
        raise OptionError(f'rows is "records" or "batches", not {rows!r}')
    if mode not in ("FAILFAST", "DROPMALFORMED"):
        raise OptionError(f"mode is FAILFAST or DROPMALFORMED, not {mode!r}")
    isolation = options.get("isolationLevel", "read_uncommitted").lower()
    if isolation not in ("read_uncommitted", "read_committed"):
        raise OptionError(f"isolationLevel is read_uncommitted or read_committed, not {isolation!r}")
    if rows == "batches" and isolation == "read_committed":
        raise OptionError("isolationLevel is for records: rows of batches show all that is in the files")
    topics = frozenset(topic.strip() for topic in options.get("topics", "").split(",") if topic.strip())
    is_committed = isolation == "read_committed"
    return LogOptions(paths, topics, rows, includes_headers(options), mode == "DROPMALFORMED", is_committed)


def _payload(batch: StoredBatch) -> bytes | memoryview:
    if batch.header.is_compressed:
        return plain_payload(batch.view, 0, batch.header, max_decompressed=MAX_DECOMPRESSED)
    return bytes(batch.view[HEADER_SIZE:])  # the file's pages may go while the chunk is made


def _record_batch(segment: Segment, found: RecordColumns, schema: pa.Schema) -> pa.RecordBatch:
    broker = pa.repeat(pa.scalar(segment.broker, pa.int32()), len(found.offset))
    return pa.RecordBatch.from_arrays([*found.of(segment.partition), broker], schema=schema)


def _batch_row(segment: Segment, batch: StoredBatch) -> tuple[Any, ...]:
    header = batch.header
    codec = "none" if batch.problem is not None else header.compression.name.lower()
    return (
        segment.broker,
        *segment.partition,
        segment.path,
        batch.position,
        header.base_offset,
        header.last_offset,
        header.record_count,
        len(batch.view),
        header.leader_epoch,
        codec,
        header.max_timestamp,
        header.producer_id,
        header.producer_epoch,
        header.base_sequence,
        header.is_transactional,
        header.is_control,
        header.crc,
        batch.problem,
        batch.digest(),
    )


def _rows_to_arrow(rows: list[tuple[Any, ...]], schema: pa.Schema) -> pa.RecordBatch:
    arrays = [pa.array(column, field.type) for column, field in zip(zip(*rows, strict=True), schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)

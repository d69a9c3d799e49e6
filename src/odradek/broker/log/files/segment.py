"""One segment of a log: a file of batches and its indexes, all named by the offset of the first record.

    NNNNNNNNNNNNNNNNNNNN.log .index .timeindex .txnindex

The last segment of a log is active: it is appended to and keeps its file open. The others open theirs when read and
share a bounded number of descriptors. A file is never closed under a reader: a slice on its way to a socket keeps it
open.

One writer at a time. Readers need no lock: `size` and the marks of the last batches are published after the bytes are
in the file, and an offset's position and the end that goes with an upper bound come from the same marks.
"""

import os
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from os import pwrite
from pathlib import Path
from typing import NamedTuple

from odradek.base.file_slice import FileSlice
from odradek.broker.log.core.batch_info import BatchInfo
from odradek.broker.log.core.config import LogConfig
from odradek.broker.log.files.index import OffsetIndex, TimeIndex
from odradek.broker.log.files.open_files import OPEN_FILES, SegmentFile
from odradek.broker.log.files.scan import headers
from odradek.broker.log.files.transaction_index import TransactionIndex
from odradek.format.segment_files import (
    DELETED_SUFFIX,
    INDEX_SUFFIX,
    LOG_SUFFIX,
    TIME_INDEX_SUFFIX,
    TXN_INDEX_SUFFIX,
    file_name,
)
from odradek.protocol.record_batch import NO_TIMESTAMP, BatchHeader, Buffer

_MARKS_MIN, _MARKS_MAX = 256, 512


class TimestampOffset(NamedTuple):
    offset: int
    timestamp: int


class Segment:
    __slots__ = (
        "__weakref__",
        "_active",
        "_bytes_since_index",
        "_file",
        "_marks",
        "_max",
        "base_offset",
        "created_ms",
        "index",
        "index_room",
        "jitter_ms",
        "known_first_timestamp",
        "path",
        "size",
        "time_index",
        "transactions",
    )

    def __init__(
        self,
        directory: Path,
        base_offset: int,
        *,
        size: int,
        end_offset: int,
        created_ms: int = 0,
        jitter_ms: int = 0,
        suffix: str = "",
    ) -> None:
        """A segment that lies on disk. `end_offset` is past its last record (at most the next segment's base).

        The suffix comes after the files' usual names, as compaction wants it.
        """
        self.base_offset = base_offset
        self.path = directory / file_name(base_offset, LOG_SUFFIX + suffix)
        self.index = OffsetIndex(directory / file_name(base_offset, INDEX_SUFFIX + suffix), base_offset)
        self.time_index = TimeIndex(directory / file_name(base_offset, TIME_INDEX_SUFFIX + suffix), base_offset)
        self.transactions = TransactionIndex(directory / file_name(base_offset, TXN_INDEX_SUFFIX + suffix))
        self.size = size
        self.created_ms = created_ms
        self.jitter_ms = jitter_ms
        self._file: SegmentFile | None = None
        self._active = False
        self._bytes_since_index = 0
        self.known_first_timestamp: int | None = None  # of the first batch, where it is known
        self.index_room = 0  # entries that both indexes can take still; a full index ends the segment
        self._max: TimestampOffset | None = None
        # (offset, position) pairs: where the last batches begin, and as the last pair where the segment ends.
        self._marks = (array("q", (end_offset,)), array("q", (size,)))

    @classmethod
    def create(
        cls,
        directory: Path,
        base_offset: int,
        config: LogConfig,
        now_ms: int,
        jitter_ms: int = 0,
        suffix: str = "",
    ) -> "Segment":
        segment = cls(
            directory,
            base_offset,
            size=0,
            end_offset=base_offset,
            created_ms=now_ms,
            jitter_ms=jitter_ms,
            suffix=suffix,
        )
        segment.index.reset()
        segment.time_index.reset()
        segment.transactions.reset()
        file = SegmentFile(segment.path, "wb+")
        if config.preallocate:
            os.posix_fallocate(file.fileno(), 0, config.segment_bytes)
        segment._file = file
        segment._active = True
        segment._max = TimestampOffset(base_offset, NO_TIMESTAMP)
        segment.limit_indexes(config.segment_index_bytes)
        return segment

    # -- writing ------------------------------------------------------------------------------------------------

    def activate(self, config: LogConfig) -> None:
        """Become the segment that is appended to."""
        self._active = True
        OPEN_FILES.discard(self)
        self._file = None  # an unused partition needs no descriptor
        self.limit_indexes(config.segment_index_bytes)

    def limit_indexes(self, max_bytes: int) -> None:
        self.index_room = min(self.index.room(max_bytes), self.time_index.room(max_bytes))

    def deactivate(self) -> None:
        """Become read-only: last time entry, files at their exact size."""
        self.finish_indexes()
        os.ftruncate(self.file.fileno(), self.size)
        offsets, positions = self._marks
        self._marks = (offsets[-1:], positions[-1:])
        self._active = False
        OPEN_FILES.touch(self)

    def append(self, data: Buffer, batches: Sequence[BatchInfo], index_interval: int) -> None:
        """Write the batches that fill `data` with one call, and mark and index them."""
        position, file = self.size, self._file
        fd = (self.file if file is None else file).fileno()
        if (written := pwrite(fd, data, position)) < len(data):
            write_all(fd, memoryview(data)[written:], position + written)
        offsets, positions = self._marks
        since_index = self._bytes_since_index
        newest = self._max or self.max_timestamp
        if not position:
            self.known_first_timestamp = max([batch.max_timestamp for batch in batches])
        for batch in batches:
            last_offset, timestamp, size = batch.last_offset, batch.max_timestamp, batch.size
            if timestamp > newest.timestamp:
                # Past the Python-level constructor of NamedTuple, once per batch.
                newest = self._max = tuple.__new__(TimestampOffset, (last_offset, timestamp))
            if since_index > index_interval:
                self.index.append(last_offset, position)
                self.time_index.maybe_append(newest.timestamp, newest.offset)
                self.index_room -= 1
                since_index = 0
            since_index += size
            position += size
            positions.append(position)
            offsets.append(last_offset + 1)
        self._bytes_since_index = since_index
        if len(offsets) > _MARKS_MAX:
            self._marks = (offsets[-_MARKS_MIN:], positions[-_MARKS_MIN:])
        self.size = position

    def cut_back(self, size: int, end_offset: int) -> None:
        """Undo an append that failed half-way."""
        self.set_end(size, end_offset)
        os.ftruncate(self.file.fileno(), size)

    def undo_append(self, size: int, end_offset: int) -> None:
        """Cut back to the state before an append that failed, with the indexes."""
        self.cut_back(size, end_offset)
        self.index.truncate_to(end_offset)
        self.time_index.truncate_to(end_offset)
        self.transactions.truncate_to(end_offset)

    def truncate_to(self, offset: int) -> int:
        """Drop the batch with the offset and everything after it; return the number of removed bytes."""
        found = self.locate(offset)
        position = found[0] if found else self.size
        removed = self.size - position
        self.index.truncate_to(offset)
        self.time_index.truncate_to(offset)
        self.transactions.truncate_to(offset)
        self.set_end(position, offset)
        os.ftruncate(self.file.fileno(), position)
        self._bytes_since_index = 0
        self._max = self._newest_after_last_time_entry()
        if not position:
            self.known_first_timestamp = None
        return removed

    def finish_indexes(self) -> None:
        newest = self.max_timestamp
        self.time_index.maybe_append(newest.timestamp, newest.offset)
        self.index.flush()
        self.time_index.flush()

    def sync(self) -> None:
        """Flush the segment's bytes, and its aborted transactions, whose loss would not be noticed. In an inactive
        segment the other indexes too, because they are not checked again.
        """
        os.fsync(self.file.fileno())
        self.transactions.sync()
        if not self._active:
            self.index.flush(sync=True)
            self.time_index.flush(sync=True)

    def note_newest(self, newest: TimestampOffset) -> None:
        """Take over the results of a scan of the segment."""
        self._max = newest

    # -- reading ------------------------------------------------------------------------------------------------

    @property
    def file(self) -> SegmentFile:
        file = self._file
        if file is None:
            try:
                file = SegmentFile(self.path, "rb+")
            except FileNotFoundError:
                if self._file is None:
                    raise
            # Where another thread has opened it meanwhile, as `retire` does, that file counts: the name may be
            # another one's by now.
            file = self._file = self._file or file
            assert file is not None
        if not self._active:
            OPEN_FILES.touch(self)
        return file

    def forget_file(self) -> None:
        self._file = None

    def read(self, offset: int, max_bytes: int, upper_bound: int, *, min_one_batch: bool) -> FileSlice | None:
        """Slice from the batch that has the offset up to the upper bound. None if the offset is past the last batch."""
        found = self.locate(offset)
        if found is None:
            return None
        position, first_size = found
        size = self.end_position(upper_bound) - position
        if max_bytes < first_size:
            size = min(size, first_size) if min_one_batch else 0
        elif size > max_bytes:
            size = max_bytes
        return FileSlice(self.file, position, max(size, 0))

    def locate(self, offset: int) -> tuple[int, int] | None:
        """Position and size of the first batch that reaches the offset."""
        offsets, positions = self._marks
        slot = bisect_right(offsets, offset) - 1
        if slot >= 0:
            try:
                return positions[slot], positions[slot + 1] - positions[slot]
            except IndexError:
                return None
        for position, header in self.headers(self.index.position_for(offset)):
            if header.base_offset + header.last_offset_delta >= offset:
                return position, header.size
        return None

    def end_position(self, upper_bound: int) -> int:
        """Return the position of the batch that has the upper bound: readers stop there."""
        offsets, positions = self._marks
        slot = bisect_right(offsets, upper_bound) - 1
        if slot >= 0:
            return positions[slot]
        found = self.locate(upper_bound)
        return found[0] if found else positions[0]

    def offset_bound(self, position: int) -> int:
        """An upper bound for the offsets of all batches before the position, not far above them."""
        offsets, positions = self._marks
        if position >= positions[0]:
            return offsets[min(bisect_left(positions, position), len(offsets) - 1)]
        return min(self.index.bound_from(position, offsets[0]), offsets[0])

    def headers(self, position: int = 0) -> Iterator[tuple[int, BatchHeader]]:
        return headers(self.file.fileno(), position, self.size)

    @property
    def end_offset(self) -> int:
        return self._marks[0][-1]

    @property
    def max_timestamp(self) -> TimestampOffset:
        """The largest timestamp here, with the last offset of the batch that has it."""
        newest = self._max
        if newest is None:
            last = self.time_index.last()
            newest = TimestampOffset(last[1], last[0]) if last else TimestampOffset(self.base_offset, NO_TIMESTAMP)
            self._max = newest
        return newest

    @property
    def age_timestamp(self) -> int:
        """Timestamp for retention: the largest one, or the file's own where records have none."""
        timestamp = self.max_timestamp.timestamp
        return timestamp if timestamp >= 0 else self.modified_ms

    @property
    def modified_ms(self) -> int:
        return os.stat(self.path).st_mtime_ns // 1_000_000

    @property
    def first_timestamp(self) -> int:
        """Timestamp of the first batch, from which a roll by time counts. -1 when it has none."""
        timestamp = self.known_first_timestamp
        if timestamp is None:
            first = next(self.headers(), None)
            if first is None:
                return NO_TIMESTAMP
            timestamp = self.known_first_timestamp = first[1].max_timestamp
        return timestamp

    # -- files --------------------------------------------------------------------------------------------------

    def paths(self) -> tuple[Path, ...]:
        return (self.path, self.index.path, self.time_index.path, self.transactions.path)

    def mark_deleted(self) -> list[Path]:
        """Rename the files so that a restart doesn't load them; return their new names. Slices stay readable."""
        renamed = []
        for path in self.paths():
            target = path.with_name(path.name + DELETED_SUFFIX)
            try:
                os.rename(path, target)
            except FileNotFoundError:
                continue
            renamed.append(target)
        OPEN_FILES.discard(self)
        return renamed

    def retire(self) -> list[Path]:
        """Mark as deleted a segment whose names another one takes: its readers keep its own files."""
        kept = self.file
        OPEN_FILES.discard(self)
        self._active = True  # keeps its descriptor for as long as it is needed
        self._file = kept
        renamed = self.mark_deleted()
        self.path, self.index.path, self.time_index.path, self.transactions.path = (
            path.with_name(path.name + DELETED_SUFFIX) for path in self.paths()
        )
        return renamed

    def move_to(self, directory: Path) -> None:
        """Use the new path of a renamed directory."""
        self.path = directory / self.path.name
        self.index.path = directory / self.index.path.name
        self.time_index.path = directory / self.time_index.path.name
        self.transactions.path = directory / self.transactions.path.name

    def close(self) -> None:
        OPEN_FILES.discard(self)
        self._file = None

    def set_end(self, size: int, end_offset: int) -> None:
        """Set the end for readers."""
        self._marks = (array("q", (end_offset,)), array("q", (size,)))
        self.size = size

    def _newest_after_last_time_entry(self) -> TimestampOffset:
        last = self.time_index.last()
        newest = TimestampOffset(last[1], last[0]) if last else TimestampOffset(self.base_offset, NO_TIMESTAMP)
        for _, header in self.headers(self.index.position_for(newest.offset)):
            if header.max_timestamp > newest.timestamp:
                newest = TimestampOffset(header.last_offset, header.max_timestamp)
        return newest


def write_all(fd: int, rest: memoryview, position: int) -> None:
    while rest:
        written = pwrite(fd, rest, position)
        rest = rest[written:]
        position += written

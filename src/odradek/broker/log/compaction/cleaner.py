"""Compaction of one log: keeps the last record of each key, at its offset.

First the dirty part is read into the key map, until the map is full. Then the log is copied from its first segment to
the end of the mapped part, batch by batch, without the records that a later one replaces; adjacent small segments are
merged. Each copy is put in place as soon as it is complete (`swap`), under the lock of the log's writer, and only if
the log was not truncated, moved or deleted meanwhile: these don't wait for a cleaning: it is aborted. Readers continue
all the time.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any, Protocol

from odradek.base.errors import ErrorCode, KafkaError
from odradek.base.logs import get_logger
from odradek.base.value_classes import dataclass
from odradek.broker.log.compaction.swap import remove_cleaned
from odradek.broker.log.core.batch_filter import BatchFilter, control_type, spans
from odradek.broker.log.core.batch_info import BatchInfo, batch_info
from odradek.broker.log.core.cleaned_transactions import CleanedTransactions
from odradek.broker.log.core.dirtiness import Dirtiness, group_segments
from odradek.broker.log.core.key_map import KeyMap
from odradek.broker.log.files.partition_log import PartitionLog
from odradek.broker.log.files.scan import header_at
from odradek.broker.log.files.segment import Segment
from odradek.format.segment_files import CLEANED_SUFFIX
from odradek.protocol.record_batch import HEADER_SIZE, LENGTH_AT, LOG_OVERHEAD, MAGIC, BatchHeader, Buffer
from odradek.protocol.records import DEFAULT_MAX_DECOMPRESSED, plain_payload

log = get_logger(__name__)


class CleanableLog(Protocol):
    """Owner of a log: a partition. Its lock is its writer's."""

    @property
    def log(self) -> PartitionLog: ...

    @property
    def lock(self) -> AbstractContextManager[Any]: ...

    @property
    def high_watermark(self) -> int: ...

    def last_stable_offset(self, watermark: int) -> int: ...


class CleaningAborted(Exception):
    """The log has changed since the cleaning began, or the cleaning was cancelled."""


@dataclass(slots=True)
class CleaningStats:
    end_offset: int = 0
    """The log is clean up to here."""
    keys: int = 0
    buffer_utilisation: float = 0.0
    bytes_read: int = 0
    bytes_written: int = 0
    records_read: int = 0
    records_kept: int = 0
    keyless: int = 0
    old_formats: int = 0
    took_ms: int = 0


class Cleaner:
    """Cleaner of one thread. Its memory: the key map, and one buffer, or one batch if that is larger."""

    def __init__(self, keys: KeyMap, buffer_bytes: int, used_io: Callable[[int], None]) -> None:
        self._keys = keys
        self._buffer_bytes = max(buffer_bytes, HEADER_SIZE)
        self._used_io = used_io

    def clean(self, host: CleanableLog, dirtiness: Dirtiness, now_ms: int, go_on: Callable[[], bool]) -> CleaningStats:
        """CleaningAborted when the log changes or `go_on` returns False; KafkaError when the log is corrupt."""
        try:
            return self._clean(_Run(host, host.log, now_ms, go_on), dirtiness)
        finally:
            self._keys.clear(most_keys=0)  # memory that is used for minutes is not kept for days

    def _clean(self, run: "_Run", dirtiness: Dirtiness) -> CleaningStats:
        stats = CleaningStats()
        aborted = run.log.aborted_transactions(run.log.segments[0].base_offset, dirtiness.first_uncleanable)
        dirty = [transaction for transaction in aborted if transaction.last_offset >= dirtiness.first_dirty]
        self._map_keys(run, dirtiness, CleanedTransactions(dirty), stats)
        end_offset = self._keys.latest_offset + 1
        transactions = CleanedTransactions(aborted)
        records = BatchFilter(
            self._keys, transactions, now_ms=run.now_ms, delete_retention_ms=run.log.config.delete_retention_ms
        )
        segments = [segment for segment in run.log.segments[:-1] if segment.base_offset < end_offset]
        for group in group_segments(segments, run.log.config, dirtiness.first_uncleanable):
            self._clean_group(run, group, records, transactions, stats)
        stats.end_offset = end_offset
        stats.keys, stats.buffer_utilisation = self._keys.size, self._keys.utilisation
        counts = records.counts
        stats.records_read, stats.records_kept = counts.read, counts.kept
        stats.keyless, stats.old_formats = counts.keyless, counts.old_formats
        return stats

    # -- the keys of the dirty part -----------------------------------------------------------------------------

    def _map_keys(
        self, run: "_Run", dirtiness: Dirtiness, transactions: CleanedTransactions, stats: CleaningStats
    ) -> None:
        start, end = dirtiness.first_dirty, dirtiness.first_uncleanable
        self._keys.clear(most_keys=end - start)
        inactive = run.log.segments[:-1]
        dirty = [segment for segment in inactive if segment.end_offset > start and segment.base_offset < end]
        for slot, segment in enumerate(dirty):
            if not self._map_segment(run, segment, start, transactions, stats):
                return
            next_base = dirty[slot + 1].base_offset if slot + 1 < len(dirty) else end
            self._keys.latest_offset = next_base - 1

    def _map_segment(
        self, run: "_Run", segment: Segment, start: int, transactions: CleanedTransactions, stats: CleaningStats
    ) -> bool:
        """Add the keys of a segment to the map. False: the map is full before the segment's end."""
        for chunk, at, header in self._batches(run, segment, segment.index.position_for(start)):
            if header.last_offset < start:
                continue
            if header.magic == MAGIC:
                if header.is_control:
                    kind = control_type(chunk, at, header)
                    transactions.may_drop_marker(header, kind, is_empty=not header.record_count)
                elif not transactions.may_drop_data(header) and not self._map_batch(chunk, at, header, start):
                    return False
            self._keys.latest_offset = header.last_offset
        return True

    def _map_batch(self, chunk: Buffer, at: int, header: BatchHeader, start: int) -> bool:
        keys, base_offset = self._keys, header.base_offset
        data = plain_payload(chunk, at, header, max_decompressed=DEFAULT_MAX_DECOMPRESSED)
        for _, _, _, _, delta, key, _ in spans(data, header.record_count):
            offset = base_offset + delta
            if key is not None and offset >= start:
                if keys.is_full:
                    return False
                keys.put(key, offset)
        return True

    # -- copying ------------------------------------------------------------------------------------------------

    def _clean_group(
        self,
        run: "_Run",
        group: tuple[Segment, ...],
        records: BatchFilter,
        transactions: CleanedTransactions,
        stats: CleaningStats,
    ) -> None:
        directory, base_offset = run.log.directory, group[0].base_offset
        records.producers = run.log.producers.entries.copy()
        try:
            cleaned = Segment.create(directory, base_offset, run.log.config, run.now_ms, suffix=CLEANED_SUFFIX)
            for segment in group:
                self._copy(run, segment, cleaned, records, stats)
                for transaction in transactions.kept:
                    cleaned.transactions.append(transaction)
                transactions.kept.clear()
            cleaned.deactivate()
            cleaned.sync()
            modified = os.stat(group[-1].path)
            os.utime(cleaned.path, ns=(modified.st_atime_ns, modified.st_mtime_ns))
            cleaned.close()
            with run.host.lock:
                run.check()
                if not run.log.replace_segments(group, cleaned.size, truncations=run.truncations):
                    raise CleaningAborted("segments have gone")
        except FileNotFoundError as error:  # a deletion doesn't wait
            raise CleaningAborted(f"{error.filename} is gone") from error
        finally:
            remove_cleaned(directory, base_offset)

    def _copy(
        self, run: "_Run", segment: Segment, cleaned: Segment, records: BatchFilter, stats: CleaningStats
    ) -> None:
        interval = run.log.config.index_interval_bytes
        pending = bytearray()
        infos: list[BatchInfo] = []

        def write() -> None:
            if infos:
                cleaned.append(pending, infos, interval)
                self._used_io(len(pending))
                stats.bytes_written += len(pending)
                pending.clear()
                infos.clear()

        for chunk, at, header in self._batches(run, segment, 0):
            data, max_timestamp, _ = records.filter(chunk, at, header)
            stats.bytes_read += header.size
            if data is None:
                continue
            info = batch_info(header, header.base_offset, len(pending))
            infos.append(info._replace(size=len(data), max_timestamp=max_timestamp))
            pending += data
            if len(pending) >= self._buffer_bytes:
                write()
        write()

    def _batches(self, run: "_Run", segment: Segment, position: int) -> Iterator[tuple[memoryview, int, BatchHeader]]:
        """Yield each batch from the position to the end of the segment: its place in the buffer, and its header."""
        try:
            file, end = segment.file, segment.size
        except FileNotFoundError as error:
            raise CleaningAborted(f"{error.filename} is gone") from error
        while position < end:
            run.check()
            chunk = _read(file.fileno(), position, min(self._buffer_bytes, end - position))
            size = _first_size(chunk)
            if size > len(chunk) and position + size <= end:
                chunk = _read(file.fileno(), position, size)
            self._used_io(len(chunk))
            at = 0
            while len(chunk) - at >= LOG_OVERHEAD and (size := _first_size(chunk[at:])) <= len(chunk) - at:
                yield chunk, at, header_at(chunk, at)
                at += size
            if not at:
                raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"{segment.path} has no whole batch at byte {position}")
            position += at


class _Run:
    """One cleaning of one log, and whether it still makes sense."""

    __slots__ = ("_go_on", "host", "log", "now_ms", "truncations")

    def __init__(self, host: CleanableLog, opened: PartitionLog, now_ms: int, go_on: Callable[[], bool]) -> None:
        self.host = host
        self.log = opened
        self.now_ms = now_ms
        self.truncations = opened.flushed.truncations
        self._go_on = go_on

    def check(self) -> None:
        if self.host.log is not self.log or self.log.flushed.truncations != self.truncations:
            raise CleaningAborted("the log was cut, moved or deleted")
        if not self.log.config.compacts or not self._go_on():
            raise CleaningAborted("it isn't to be cleaned any more")


def _read(fd: int, position: int, size: int) -> memoryview:
    return memoryview(os.pread(fd, size, position))


def _first_size(chunk: memoryview) -> int:
    """Size of the batch that begins the chunk, header included; more than the chunk if the length field is
    incomplete."""
    if len(chunk) < LOG_OVERHEAD:
        return len(chunk) + 1
    return LOG_OVERHEAD + int.from_bytes(chunk[LENGTH_AT:LOG_OVERHEAD], "big", signed=True)

"""The log of one partition: its segments in order, and what is known about their batches.

The partition that owns the log serialises its writers (everything that changes the log). Readers hold no lock and may
run beside one writer: they see an immutable tuple of segments, and offsets that are published after the bytes.

    log_start_offset ≤ recovery_point ≤ log_end_offset   (the recovery point is what fsync has confirmed)
"""

import os
import random
import threading
from bisect import bisect_right
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from odradek.base.clock import SYSTEM_CLOCK, Clock
from odradek.base.errors import ErrorCode, KafkaError
from odradek.base.file_slice import FileSlice
from odradek.base.logs import get_logger
from odradek.log import timestamps
from odradek.log.background import IMMEDIATE, Background
from odradek.log.checkpoint import LEADER_EPOCH_FILE, sync_directory
from odradek.log.config import LogConfig
from odradek.log.leader_epochs import LeaderEpochCache
from odradek.log.producer_snapshot import ProducerSnapshots
from odradek.log.producer_state import AppendedBatch, ProducerStates, Staged
from odradek.log.recovery import LoadedLog, finish_transaction, load, rebuild_producers, remove_files
from odradek.log.replicated import split_into_runs
from odradek.log.retention import expired_count
from odradek.log.segment import MAX_RELATIVE_OFFSET, Segment, TimestampOffset
from odradek.log.swap import put_in_place
from odradek.log.transaction_index import AbortedTransaction
from odradek.log.validation import BatchInfo, BatchRules, CheckedRecords, assign_offsets, check_records
from odradek.model.topology import TopicPartition
from odradek.protocol.record_batch import NO_TIMESTAMP, Buffer

FailureCallback = Callable[[Path, OSError], None]

log = get_logger(__name__)


class AppendResult(NamedTuple):
    """Where the records are. For a duplicate: where they were put the first time."""

    first_offset: int
    last_offset: int
    max_timestamp: int
    log_append_time_ms: int  # -1 when records keep their producer's time
    log_start_offset: int
    is_duplicate: bool = False


class ReadResult(NamedTuple):
    """Whole batches but for the last, which `max_bytes` may have cut. Size 0: nothing to read there now."""

    records: FileSlice


def ignore_failure(directory: Path, error: OSError) -> None:
    """For tools and tests that have nobody to tell."""


class PartitionLog:
    def __init__(
        self,
        directory: Path,
        partition: TopicPartition,
        config: LogConfig,
        loaded: LoadedLog,
        epochs: LeaderEpochCache,
        producers: ProducerStates,
        snapshots: ProducerSnapshots,
        *,
        clock: Clock,
        background: Background,
        on_failure: FailureCallback,
    ) -> None:
        self.directory = directory
        self.partition = partition
        self.config = config
        self.epochs = epochs
        self.producers = producers
        self.log_start_offset = loaded.log_start_offset
        self.log_end_offset = loaded.log_end_offset
        self.recovery_point = loaded.recovery_point
        self.last_flush_ms = clock.now_ms()
        self.segments = loaded.segments
        self._active = loaded.segments[-1]
        self._snapshots = snapshots
        self._clock = clock
        self._background = background
        self._on_failure = on_failure
        self._failed: OSError | None = None
        self.on_truncate: Callable[[PartitionLog, int], None] = lambda opened, offset: None
        """Told before the log is cut back to an offset, by its writer."""
        # The recovery point is moved by flushes, which may run beside the writer, and moved back by truncation.
        self._recovery_lock = threading.Lock()
        self._truncations = 0
        self.in_place = threading.RLock()
        """Held by whoever needs the log to keep its name and its files: meanwhile it is not renamed, nor deleted."""
        self._renames = 0
        self.is_deleted = False
        self.is_copied = False
        """Its records are on their way to another directory: compaction waits, or the copy would miss tombstones."""

    @classmethod
    def open(
        cls,
        directory: Path,
        partition: TopicPartition,
        config: LogConfig,
        *,
        recovery_point: int = 0,
        log_start_offset: int = 0,
        clean: bool = False,
        clock: Clock = SYSTEM_CLOCK,
        background: Background = IMMEDIATE,
        on_failure: FailureCallback = ignore_failure,
    ) -> "PartitionLog":
        """The log in the directory, which is made if it isn't there. `clean`: it was closed by `close`."""
        directory.mkdir(parents=True, exist_ok=True)
        epochs = LeaderEpochCache(directory / LEADER_EPOCH_FILE)
        producers = ProducerStates(config.producer_id_expiration_ms)
        snapshots = ProducerSnapshots(directory)
        loaded = load(
            directory,
            config,
            clock,
            epochs,
            producers,
            snapshots,
            recovery_point=recovery_point,
            log_start_offset=log_start_offset,
            clean=clean,
        )
        return cls(
            directory,
            partition,
            config,
            loaded,
            epochs,
            producers,
            snapshots,
            clock=clock,
            background=background,
            on_failure=on_failure,
        )

    # -- appending ----------------------------------------------------------------------------------------------

    def begin_epoch(self, leader_epoch: int) -> None:
        """What is appended from here on is of this epoch."""
        self._guarded(lambda: self.epochs.assign(leader_epoch, self.log_end_offset))

    def append_as_leader(self, records: memoryview, *, leader_epoch: int, rules: BatchRules) -> AppendResult:
        """Checks the records, gives them offsets and writes them. They are patched where they lie."""
        return self.append_checked(self.check(records, rules), leader_epoch=leader_epoch)

    def check(self, records: memoryview, rules: BatchRules) -> CheckedRecords:
        """What `append_checked` wants to have. It may take long and changes nothing: no writer has to wait for it."""
        self._check_writable()
        return check_records(records, rules=rules, now_ms=self._clock.now_ms())

    def append_checked(self, checked: CheckedRecords, *, leader_epoch: int) -> AppendResult:
        """A batch that its producer sent before is not written again: the answer is where it is."""
        self._check_writable()
        validated = assign_offsets(checked, next_offset=self.log_end_offset, leader_epoch=leader_epoch)
        infos = validated.batches
        if infos[0].producer_id >= 0 and (duplicate := self.producers.find_duplicate(infos[0])):
            return self._duplicate(duplicate, validated.log_append_time)
        staged = self.producers.stage(infos, validated.data, checked.rules.origin)
        if leader_epoch > self.epochs.latest_epoch:
            self.begin_epoch(leader_epoch)
        self._write(validated.data, infos, validated.max_timestamp, staged)
        return AppendResult(
            validated.first_offset,
            validated.last_offset,
            validated.max_timestamp,
            validated.log_append_time,
            self.log_start_offset,
        )

    def append_as_follower(self, records: memoryview) -> AppendResult:
        """Writes batches as the leader sent them. A batch cut by the end of the fetch is left for the next one."""
        self._check_writable()
        first_offset, newest = self.log_end_offset, NO_TIMESTAMP
        runs = split_into_runs(records, self.log_end_offset, self.config.segment_bytes)
        if runs:
            first_offset = runs[0].batches[0].base_offset
            newest = max(run.max_timestamp for run in runs)
        for run in runs:
            staged = self.producers.stage(run.batches, run.data, None)
            for epoch, start_offset in run.epochs:
                if epoch > self.epochs.latest_epoch:
                    self._guarded(partial(self.epochs.assign, epoch, start_offset))
            self._write(run.data, run.batches, run.max_timestamp, staged)
        return AppendResult(first_offset, self.log_end_offset - 1, newest, NO_TIMESTAMP, self.log_start_offset)

    def _duplicate(self, first: AppendedBatch, log_append_time: int) -> AppendResult:
        return AppendResult(
            first.first_offset,
            first.last_offset,
            first.timestamp,
            first.timestamp if log_append_time >= 0 else NO_TIMESTAMP,
            self.log_start_offset,
            is_duplicate=True,
        )

    def _write(self, data: Buffer, infos: Sequence[BatchInfo], max_timestamp: int, staged: Staged) -> None:
        end_offset = infos[-1].last_offset + 1
        config = self.config
        if self._must_roll(len(data), max_timestamp, end_offset - 1):
            self.roll(infos[0].base_offset)
        segment = self._active
        size = segment.size
        try:
            segment.append(data, infos, config.index_interval_bytes)
        except OSError as error:
            self._undo(segment, size)
            raise self._fail(error) from error
        if staged.entries:
            self.producers.commit(staged, end_offset)
            for transaction in staged.completed:
                finish_transaction(self.producers, segment, transaction)
        else:
            self.producers.map_end_offset = end_offset
        self.log_end_offset = end_offset
        if end_offset - self.recovery_point >= config.flush_messages:
            self.flush()

    def _undo(self, segment: Segment, size: int) -> None:
        try:
            segment.cut_back(size, self.log_end_offset)
            segment.index.truncate_to(self.log_end_offset)
            segment.time_index.truncate_to(self.log_end_offset)
        except OSError as error:
            log.error("cutting back after a failed write failed", path=str(segment.path), reason=str(error))

    # -- rolling ------------------------------------------------------------------------------------------------

    def _must_roll(self, size: int, max_timestamp: int, last_offset: int) -> bool:
        segment, config = self._active, self.config
        if last_offset - segment.base_offset > MAX_RELATIVE_OFFSET:
            return True
        if not segment.size:
            return False
        return (
            segment.size + size > config.segment_bytes
            or segment.index_room <= 0
            or self._waited_for_roll(segment, max_timestamp) > config.segment_ms - segment.jitter_ms
        )

    def _waited_for_roll(self, segment: Segment, max_timestamp: int) -> int:
        first = segment.first_timestamp
        return max_timestamp - first if first >= 0 else self._clock.now_ms() - segment.created_ms

    def roll(self, base_offset: int | None = None) -> None:
        """A new active segment from the offset on (the log's end unless told). The old one goes to disk later."""
        base_offset = self.log_end_offset if base_offset is None else base_offset
        old = self._active
        if old.base_offset == base_offset and not old.size:
            return
        self._guarded(lambda: self._roll(old, base_offset))
        if old.size:
            self._background.once(f"flush {self.partition}", lambda: self._flush_to(base_offset))

    def _roll(self, old: Segment, base_offset: int) -> None:
        jitter_ms = random.randrange(min(self.config.segment_jitter_ms, self.config.segment_ms) or 1)
        if old.size:
            old.deactivate()
            kept = self.segments
        else:  # an empty one is replaced, not kept
            kept = self.segments[:-1]
            remove_files(old.paths())
        new = Segment.create(self.directory, base_offset, self.config, self._clock.now_ms(), jitter_ms)
        self._active = new
        self.segments = (*kept, new)
        self.producers.map_end_offset = base_offset
        self._snapshots.take(self.producers, sync=False)

    # -- durability ---------------------------------------------------------------------------------------------

    def flush(self) -> None:
        """All records to the disk. A failed fsync is never tried again: the pages may be gone already."""
        self._flush_to(self.log_end_offset)

    def _flush_to(self, offset: int) -> None:
        if offset <= self.recovery_point or self._failed is not None:
            return
        truncations, recovery_point, renames = self._truncations, self.recovery_point, self._renames
        try:
            for segment in self._segments_between(recovery_point, offset):
                segment.sync()
            if self._active.base_offset >= recovery_point:
                sync_directory(self.directory)
            self.epochs.save()
        except FileNotFoundError:
            if self._was_renamed_since(renames) and not self.is_deleted:
                self._flush_to(offset)
            elif self._truncations == truncations and not self.is_deleted and self.directory.exists():
                raise
            return  # truncated or deleted meanwhile
        except OSError as error:
            raise self._fail(error) from error
        with self._recovery_lock:
            if self._truncations == truncations and offset > self.recovery_point:
                self.recovery_point = offset
                self.last_flush_ms = self._clock.now_ms()

    def _segments_between(self, start: int, end: int) -> list[Segment]:
        return [segment for segment in self.segments if segment.base_offset < end and segment.end_offset >= start]

    # -- reading ------------------------------------------------------------------------------------------------

    def read(self, offset: int, max_bytes: int, *, upper_bound: int, min_one_batch: bool = True) -> ReadResult:
        """The batches from the one that has the offset, up to the upper bound or the end of its segment.

        With `min_one_batch` the first batch comes whole whatever `max_bytes` says; without, nothing comes instead.
        """
        if not self.log_start_offset <= offset <= self.log_end_offset:
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"Received request for offset {offset} for partition {self.partition}, "
                f"but we only have log segments from offset {self.log_start_offset} to {self.log_end_offset}.",
            )
        segments = self.segments
        slot = len(segments) - 1
        if offset < segments[slot].base_offset:
            slot = max(bisect_right(segments, offset, key=_base_of) - 1, 0)
        if offset < upper_bound:
            for segment in segments[slot:] if slot < len(segments) - 1 else (segments[slot],):
                found = self._read_segment(segment, offset, max_bytes, upper_bound, min_one_batch)
                if found is not None:
                    return ReadResult(found)
        segment = segments[slot]
        return ReadResult(FileSlice(segment.file, segment.size, 0))

    def _read_segment(
        self, segment: Segment, offset: int, max_bytes: int, upper_bound: int, min_one_batch: bool
    ) -> FileSlice | None:
        renames = self._renames
        try:
            return segment.read(offset, max_bytes, upper_bound, min_one_batch=min_one_batch)
        except FileNotFoundError as error:  # deleted between the look at the tuple and the opening
            if self.is_deleted:
                raise self._storage_error(error) from error
            if self._was_renamed_since(renames):
                return self._read_segment(segment, offset, max_bytes, upper_bound, min_one_batch)
            if segment in self.segments:
                raise self._fail(error) from error
            raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE, f"Offset {offset} has just been deleted") from error
        except OSError as error:
            raise self._fail(error) from error

    def read_committed(
        self, offset: int, max_bytes: int, *, upper_bound: int, min_one_batch: bool
    ) -> tuple[ReadResult, list[AbortedTransaction]]:
        """As `read`, with the aborted transactions of what is read, which compaction may be about to drop."""
        while True:
            segments = self.segments
            found = self.read(offset, max_bytes, upper_bound=upper_bound, min_one_batch=min_one_batch)
            aborted = self.aborted_transactions(offset, upper_bound) if found.records.size else []
            if segments is self.segments:
                return found, aborted

    def aborted_transactions(self, offset: int, upper_bound: int) -> list[AbortedTransaction]:
        """Those with records in [offset, upper_bound): a reader of committed records skips them."""
        renames = self._renames
        found = self._aborted_transactions(offset, upper_bound)
        return self.aborted_transactions(offset, upper_bound) if self._was_renamed_since(renames) else found

    def _aborted_transactions(self, offset: int, upper_bound: int) -> list[AbortedTransaction]:
        found: list[AbortedTransaction] = []
        segments = self.segments
        for segment in segments[max(bisect_right(segments, offset, key=_base_of) - 1, 0) :]:
            here, complete = segment.transactions.overlapping(offset, upper_bound)
            found += here
            if complete:
                break
        return found

    def find_offset_by_timestamp(self, timestamp: int) -> TimestampOffset | None:
        """The first record that is not older, with its own timestamp."""
        return self._among_segments(
            lambda segments: timestamps.first_at_or_after(segments, timestamp, self.log_start_offset)
        )

    def max_timestamp(self) -> TimestampOffset | None:
        """The youngest record, None in an empty log."""
        return self._among_segments(lambda segments: timestamps.youngest(segments, self.log_start_offset))

    def _among_segments(self, look: Callable[[Sequence[Segment]], TimestampOffset | None]) -> TimestampOffset | None:
        """What is found, even if segments are deleted or replaced while one looks."""
        while True:
            segments = self.segments
            try:
                return look(segments)
            except FileNotFoundError:
                if segments is self.segments:
                    raise

    @property
    def size_bytes(self) -> int:
        return sum(segment.size for segment in self.segments)

    # -- shrinking ----------------------------------------------------------------------------------------------

    def maybe_advance_log_start(self, offset: int) -> bool:
        """Records before the offset are deleted from now on; their files go with the next `delete_expired`."""
        if offset <= self.log_start_offset:
            return False
        if offset > self.log_end_offset:
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE, f"Log start {offset} would be past the log end {self.log_end_offset}"
            )
        self.log_start_offset = offset
        self._guarded(lambda: self.epochs.truncate_from_start(offset))
        return True

    def delete_expired(self, now_ms: int, high_watermark: int) -> int:
        """Deletes the segments that retention lets go; how many."""
        count = expired_count(
            self.segments,
            self.config,
            log_start_offset=self.log_start_offset,
            log_end_offset=self.log_end_offset,
            high_watermark=high_watermark,
            now_ms=now_ms,
        )
        if not count:
            return 0
        if count == len(self.segments):
            self.roll()
        gone, kept = self.segments[:count], self.segments[count:]
        log.info(
            "segments deleted by retention", partition=str(self.partition), segments=count, start=kept[0].base_offset
        )
        self.log_start_offset = max(self.log_start_offset, kept[0].base_offset)
        self.segments = kept
        self._guarded(lambda: self._remove(gone))
        return count

    def _remove(self, gone: Sequence[Segment]) -> None:
        self.epochs.truncate_from_start(self.log_start_offset)
        first_kept = self.segments[0].base_offset
        self._snapshots.keep(lambda offset: offset >= first_kept)
        files = [path for segment in gone for path in segment.mark_deleted()]
        self._background.once(
            f"delete segments of {self.partition}",
            lambda: remove_files(files),
            delay_ms=self.config.file_delete_delay_ms,
        )

    def truncate_to(self, offset: int) -> bool:
        """Drops the batch that has the offset and all after it, so that the log ends there."""
        if offset >= self.log_end_offset:
            # An epoch that this broker began to lead in, and wrote nothing in, may be nobody else's.
            self._guarded(lambda: self.epochs.truncate_from_end(self.log_end_offset))
            return False
        log.info("log truncated", partition=str(self.partition), end=self.log_end_offset, to=offset)
        if offset < self.segments[0].base_offset:
            self.truncate_fully_and_start_at(offset)
            return True
        self._guarded(lambda: self._truncate(offset))
        return True

    def _truncate(self, offset: int) -> None:
        kept = tuple(segment for segment in self.segments if segment.base_offset <= offset)
        gone = self.segments[len(kept) :]
        self._move_recovery_point_back(offset)
        self.log_end_offset = offset
        self.log_start_offset = min(self.log_start_offset, offset)
        if gone:
            kept[-1].activate(self.config)
        self._active = kept[-1]
        self.segments = kept
        remove_files(path for segment in gone for path in segment.mark_deleted())
        self._active.truncate_to(offset)
        self._active.limit_indexes(self.config.segment_index_bytes)
        self.epochs.truncate_from_end(offset)
        rebuild_producers(kept, self.producers, self._snapshots, self.log_start_offset, offset, self._clock.now_ms())

    def truncate_fully_and_start_at(self, offset: int) -> None:
        """Drops everything; the log is empty and goes on from the offset."""
        self._guarded(lambda: self._start_over(offset))

    def _start_over(self, offset: int) -> None:
        gone = self.segments
        self._move_recovery_point_back(offset)
        remove_files(path for segment in gone for path in segment.mark_deleted())
        new = Segment.create(self.directory, offset, self.config, self._clock.now_ms())
        self.log_start_offset = self.log_end_offset = offset
        self._active = new
        self.segments = (new,)
        self.epochs.clear()
        self._snapshots.keep(lambda _: False)
        self.producers.clear(offset)

    def _move_recovery_point_back(self, offset: int) -> None:
        with self._recovery_lock:
            self._truncations += 1
            self.recovery_point = min(self.recovery_point, offset)
        self.on_truncate(self, offset)

    def replace_segments(self, old: Sequence[Segment], size: int, *, truncations: int) -> bool:
        """Puts the compacted segment of this size, whose files lie ready, into the place of its originals.

        Not when the log has been cut or moved since it had so many `truncations`, or has lost one of them.
        """
        self._check_writable()
        slot = next((slot for slot, segment in enumerate(self.segments) if segment is old[0]), -1)
        is_as_it_was = slot >= 0 and self.segments[slot : slot + len(old)] == tuple(old)
        if self.is_copied or truncations != self._truncations or not is_as_it_was:
            return False
        self._guarded(lambda: self._replace(slot, old, size))
        return True

    def _replace(self, slot: int, old: Sequence[Segment], size: int) -> None:
        with self.in_place:
            new, files = put_in_place(self.directory, old, size)
            self.segments = (*self.segments[:slot], new, *self.segments[slot + len(old) :])
            self._renames += 1
        merged = {segment.base_offset for segment in old[1:]}
        self._snapshots.keep(lambda offset: offset not in merged)
        self._background.once(
            f"delete compacted segments of {self.partition}",
            lambda: remove_files(files),
            delay_ms=self.config.file_delete_delay_ms,
        )

    # -- living -------------------------------------------------------------------------------------------------

    def update_config(self, config: LogConfig) -> None:
        self.config = config
        self._active.limit_indexes(config.segment_index_bytes)
        self.producers.set_expiration(config.producer_id_expiration_ms)

    def close(self, clean: bool = True) -> None:
        """Lets go of the files. Clean: everything is on disk and the next open needs no scan."""
        if clean and self._failed is None:
            self._guarded(self._finish)
        for segment in self.segments:
            segment.close()

    def _finish(self) -> None:
        self._snapshots.take(self.producers)
        self._active.finish_indexes()
        os.ftruncate(self._active.file.fileno(), self._active.size)
        self.epochs.save()
        self.flush()

    def rename(self, directory: Path) -> None:
        """Moves the whole log, as deletion does before it takes its time. Readers that stumble over it look again."""
        with self.in_place:
            os.rename(self.directory, directory)
            with self._recovery_lock:
                self._truncations += 1  # whoever is about to replace its files must look again
            self.directory = directory
            for segment in self.segments:
                segment.move_to(directory)
            self._snapshots.move_to(directory)
            self.epochs.move_to(directory / LEADER_EPOCH_FILE)
            self._renames += 1

    def _was_renamed_since(self, renames: int) -> bool:
        with self.in_place:
            return self._renames != renames

    def take_place_of(self, source: "PartitionLog") -> None:
        """Becomes what the source is, of which it has all records: what a copy of those alone doesn't tell, and as
        durable. Both logs' writers wait meanwhile."""
        self.update_config(source.config)
        self.maybe_advance_log_start(source.log_start_offset)
        self._guarded(lambda: self.epochs.take_over(source.epochs.entries))
        self.producers = source.producers
        self._guarded(lambda: self._snapshots.take(self.producers, sync=False))
        if self.recovery_point < source.recovery_point:
            self.flush()

    @property
    def truncations(self) -> int:
        """Rises before records go that were there, at the end or all of them."""
        return self._truncations

    def abandon(self, error: OSError) -> None:
        """Its directory can't be trusted any more: it takes no writes, and lets go of its files."""
        self._failed = self._failed or error
        self.close(clean=False)

    def delete(self) -> None:
        """Removes the log's directory at once. Slices in flight stay readable."""
        with self.in_place:
            self.is_deleted = True
            with self._recovery_lock:
                self._truncations += 1
            for segment in self.segments:
                segment.close()
            for name in os.listdir(self.directory):
                (self.directory / name).unlink(missing_ok=True)
            self.directory.rmdir()

    # -- failing ------------------------------------------------------------------------------------------------

    def _check_writable(self) -> None:
        if self._failed is not None:
            raise self._storage_error(self._failed)

    def _guarded(self, change: Callable[[], object]) -> None:
        try:
            change()
        except OSError as error:
            raise self._fail(error) from error

    def fail(self, error: OSError) -> None:
        """For whoever met the error on the log's files without the log."""
        self._fail(error)

    def _fail(self, error: OSError) -> KafkaError:
        """After an I/O error the log takes no more writes; whoever owns the directory decides what happens to it."""
        if self._failed is None:
            self._failed = error
            if self.is_deleted:  # whoever still wrote to it has nothing to write to
                return self._storage_error(error)
            log.error("log failed", partition=str(self.partition), directory=str(self.directory), reason=str(error))
            self._on_failure(self.directory.parent, error)
        return self._storage_error(error)

    def _storage_error(self, error: OSError) -> KafkaError:
        return KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"Log of {self.partition} in {self.directory.parent}: {error}")


def _base_of(segment: Segment) -> int:
    return segment.base_offset

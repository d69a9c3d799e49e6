"""The log of one partition: appends, truncation, retention.

The partition that owns the log serialises its writers, which is everything here.
"""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from odradek.base.clock import SYSTEM_CLOCK, Clock
from odradek.base.errors import ErrorCode, KafkaError
from odradek.base.logs import get_logger
from odradek.broker.log.compaction.swap import put_in_place
from odradek.broker.log.core.append_result import AppendResult
from odradek.broker.log.core.batch_info import BatchInfo
from odradek.broker.log.core.check_budget import UNBOUNDED, CheckBudget
from odradek.broker.log.core.config import LogConfig
from odradek.broker.log.core.producer_state import EVERY_PRODUCER, NO_PRODUCER, AppendedBatch, ProducerStates, Staged
from odradek.broker.log.core.replicated import split_into_runs
from odradek.broker.log.core.retention import expired_count
from odradek.broker.log.core.validation import (
    BatchRules,
    CheckedBatch,
    CheckedRecords,
    Origin,
    assign_offsets,
    check_records,
)
from odradek.broker.log.core.verification import VerificationGuard
from odradek.broker.log.files.background import IMMEDIATE, Background
from odradek.broker.log.files.leader_epochs import LeaderEpochCache
from odradek.broker.log.files.producer_snapshot import ProducerSnapshots
from odradek.broker.log.files.readable_log import ReadableLog
from odradek.broker.log.files.recovery import load, note_aborted, rebuild_producers, remove_files
from odradek.broker.log.files.segment import Segment
from odradek.broker.log.files.segmented_log import FailureCallback, TruncationCallback
from odradek.format.checkpoints import LEADER_EPOCH_FILE
from odradek.model.topology import TopicPartition
from odradek.protocol.record_batch import NO_TIMESTAMP, Buffer, read_header
from odradek.protocol.transaction_markers import EndTransactionMarker, build_marker

log = get_logger(__name__)


def ignore_failure(directory: Path, error: OSError) -> None:
    """Ignore the failure: for tools and tests without a listener."""


class PartitionLog(ReadableLog):
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
        on_truncate: TruncationCallback = lambda opened, offset: None,
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
            on_truncate=on_truncate,
        )

    # -- appending ----------------------------------------------------------------------------------------------

    def begin_epoch(self, leader_epoch: int) -> None:
        """Begin a leader epoch: later appends belong to it."""
        self._guarded(lambda: self.epochs.assign(leader_epoch, self.log_end_offset))

    def append_as_leader(
        self, records: memoryview, *, leader_epoch: int, rules: BatchRules, guard: VerificationGuard | None = None
    ) -> AppendResult:
        """Checks the records, gives them offsets and writes them. They are patched where they lie."""
        return self.append_checked(self.check(records, rules), leader_epoch=leader_epoch, guard=guard)

    def check(self, records: memoryview, rules: BatchRules, budget: CheckBudget = UNBOUNDED) -> CheckedRecords:
        """Check the batches for `append_checked`. It may take long and changes nothing: no writer has to
        wait for it.
        """
        self._check_writable()
        return check_records(records, rules=rules, now_ms=self._clock.now_ms(), budget=budget)

    def append_checked(
        self,
        checked: CheckedRecords,
        *,
        leader_epoch: int,
        may_begin_anywhere: bool = True,
        guard: VerificationGuard | None = None,
    ) -> AppendResult:
        """A batch that its producer sent before is not written again: the answer is where it is. `guard`: see
        `verification`."""
        self._check_writable()
        first_offset = self.log_end_offset
        data, infos, max_timestamp, log_append_time = assign_offsets(
            checked, next_offset=first_offset, leader_epoch=leader_epoch
        )
        origin = checked.rules.origin
        staged = self.producers.stage_next(infos) if origin is Origin.CLIENT else None
        if staged is None:
            if infos[0].producer_id >= 0 and origin is Origin.CLIENT:
                duplicate = self.producers.find_duplicate(infos[0])
                if duplicate is not None:
                    return self._duplicate(duplicate, log_append_time)
            staged = self.producers.stage(infos, data, origin, may_begin_anywhere=may_begin_anywhere, guard=guard)
        if leader_epoch > self.epochs.latest_epoch:
            self.begin_epoch(leader_epoch)
        self._write(data, infos, max_timestamp, staged)
        return AppendResult(
            first_offset, self.log_end_offset - 1, max_timestamp, log_append_time, self.log_start_offset
        )

    def append_marker(
        self, marker: EndTransactionMarker, *, leader_epoch: int, rules: BatchRules
    ) -> AppendResult | None:
        """Ends a producer's transaction; None: the marker is a repeated one. Either way its verification proves nothing
        any more. No limit of the topic applies: an open transaction would stop its readers."""
        self._check_writable()
        must_write = self.producers.check_marker(marker)
        self.producers.verifications.end_transaction(marker)
        if not must_write:
            return None
        now_ms = self._clock.now_ms()
        data = memoryview(bytearray(build_marker(marker, now_ms)))
        batch = CheckedBatch(data, read_header(data), now_ms)
        return self.append_checked(CheckedRecords([batch], rules, now_ms), leader_epoch=leader_epoch)

    def nothing_appended(self) -> AppendResult:
        """Return the result for batches that are in the log already, somewhere before its end."""
        end = self.log_end_offset
        return AppendResult(end, end - 1, NO_TIMESTAMP, NO_TIMESTAMP, self.log_start_offset, is_duplicate=True)

    def append_as_follower(self, records: memoryview) -> AppendResult:
        """Writes batches as the leader sent them. A batch cut by the end of the fetch is left for the next one."""
        self._check_writable()
        first_offset, newest = self.log_end_offset, NO_TIMESTAMP
        runs = split_into_runs(records, self.log_end_offset, self.config.segment_bytes)
        if runs:
            first_offset = runs[0].batches[0].base_offset
            newest = max(run.max_timestamp for run in runs)
        for run in runs:
            if run.has_gap:  # producers may have gone with the records that compaction removed
                self.producers.forgotten_up_to = EVERY_PRODUCER
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
            for transaction in staged.completed:
                note_aborted(segment, transaction)
        except OSError as error:
            self._undo(segment, size)
            raise self._fail(error) from error
        if staged.entries:
            self.producers.commit(staged, end_offset)
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
            segment.transactions.truncate_to(self.log_end_offset)
        except OSError as error:
            log.error("truncation after a failed append failed", path=str(segment.path), reason=str(error))

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
        self.producers.forgotten_up_to = EVERY_PRODUCER if offset else NO_PRODUCER

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

"""The log of one partition: appends, truncation, retention; it combines the parts below.

    log_start_offset ≤ recovery_point ≤ log_end_offset   (the recovery point is what fsync has confirmed)

`LogFiles` has the segments, `LogReader` reads them, `RecoveryPoint` flushes them; leader epochs and producers are parts
too. The owner of the log serialises its writers. Readers hold no lock: offsets are published after the bytes.
"""

import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from odradek.base.errors import ErrorCode, KafkaError
from odradek.base.logs import get_logger
from odradek.broker.log.core.append_placement import place
from odradek.broker.log.core.append_result import AppendResult, duplicate_of
from odradek.broker.log.core.batch_info import BatchInfo
from odradek.broker.log.core.check_budget import UNBOUNDED, CheckBudget
from odradek.broker.log.core.config import LogConfig
from odradek.broker.log.core.marker_batches import marker_batches
from odradek.broker.log.core.producer_entry import AppendedBatch
from odradek.broker.log.core.producer_state import EVERY_PRODUCER, Staged
from odradek.broker.log.core.replicated import split_into_runs
from odradek.broker.log.core.retention import expired_count
from odradek.broker.log.core.validation import (
    NO_PRODUCE,
    BatchRules,
    CheckedRecords,
    Origin,
    check_records,
)
from odradek.broker.log.core.verification import VerificationGuard
from odradek.broker.log.files.log_environment import ALONE, LogEnvironment
from odradek.broker.log.files.log_files import LogFiles
from odradek.broker.log.files.log_reader import LogReader, ReadResult
from odradek.broker.log.files.log_truncation import start_over, truncate
from odradek.broker.log.files.recovery import LoadedLog, load, note_aborted
from odradek.broker.log.files.recovery_point import RecoveryPoint
from odradek.broker.log.files.segment import Segment, TimestampOffset
from odradek.format.checkpoints import LEADER_EPOCH_FILE
from odradek.format.transaction_index import AbortedTransaction
from odradek.model.topology import TopicPartition
from odradek.protocol.record_batch import NO_TIMESTAMP, Buffer
from odradek.protocol.transaction_markers import EndTransactionMarker

log = get_logger(__name__)


class PartitionLog:
    def __init__(self, files: LogFiles, config: LogConfig, loaded: LoadedLog, environment: LogEnvironment) -> None:
        self.partition = files.partition
        self.config = config
        self.epochs = loaded.epochs
        self.producers = loaded.producers
        self.log_start_offset = loaded.log_start_offset
        self.log_end_offset = loaded.log_end_offset
        self.is_copied = False
        """Its records are on their way to another directory: compaction waits, or the copy would miss tombstones."""
        self.files = files
        self.flushed = RecoveryPoint(files, loaded.epochs, loaded.recovery_point, environment.clock)
        self._reader = LogReader(files)
        self._clock = environment.clock
        self._background = environment.background
        self._environment = environment

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
        environment: LogEnvironment = ALONE,
    ) -> "PartitionLog":
        """The log in the directory, which is made if it isn't there. `clean`: it was closed by `close`."""
        directory.mkdir(parents=True, exist_ok=True)
        loaded = load(
            directory,
            config,
            environment.clock,
            recovery_point=recovery_point,
            log_start_offset=log_start_offset,
            clean=clean,
        )
        return cls(LogFiles(directory, partition, loaded, environment), config, loaded, environment)

    @property
    def directory(self) -> Path:
        return self.files.directory

    @property
    def segments(self) -> tuple[Segment, ...]:
        return self.files.segments

    @property
    def recovery_point(self) -> int:
        return self.flushed.offset

    # -- appending ----------------------------------------------------------------------------------------------

    def begin_epoch(self, leader_epoch: int) -> None:
        """Begin a leader epoch: later appends belong to it."""
        self.files.guarded(lambda: self.epochs.assign(leader_epoch, self.log_end_offset))

    def append_as_leader(
        self, records: memoryview, *, leader_epoch: int, rules: BatchRules, guard: VerificationGuard | None = None
    ) -> AppendResult:
        """Check the records, assign offsets in place, and write them."""
        return self.append_checked(self.check(records, rules), leader_epoch=leader_epoch, guard=guard)

    def check(
        self, records: memoryview, rules: BatchRules, budget: CheckBudget = UNBOUNDED, api_version: int = NO_PRODUCE
    ) -> CheckedRecords:
        """Check the batches for `append_checked`. It may take long and changes nothing: no writer waits for it."""
        if self.files.failure is not None:
            self.files.check_writable()
        now_ms = self._clock.now_ms()
        checked = check_records(records, rules=rules, now_ms=now_ms, budget=budget, api_version=api_version)
        may_exceed = len(records) > self.config.segment_bytes or rules.compression_type is not None
        if may_exceed and rules.origin is Origin.CLIENT:
            self._check_fits_segment(checked)
        return checked

    def _check_fits_segment(self, checked: CheckedRecords) -> None:
        """KafkaError where an Apache Kafka that follows would refuse a producer's batches for ever. Records of
        coordinators are written all the same."""
        size, limit = sum(len(batch.data) for batch in checked.batches), self.config.segment_bytes
        if size > limit:
            raise KafkaError(
                ErrorCode.RECORD_LIST_TOO_LARGE,
                f"The record batch size is {size} bytes, which exceeds the maximum configured segment size of {limit}",
            )

    def append_checked(
        self,
        checked: CheckedRecords,
        *,
        leader_epoch: int,
        may_begin_anywhere: bool = True,
        guard: VerificationGuard | None = None,
    ) -> AppendResult:
        """Append checked batches. A batch that its producer sent before is not written again: the answer has its
        offset. `guard`: see `verification`."""
        if self.files.failure is not None:
            self.files.check_writable()
        first_offset = self.log_end_offset
        placed = place(checked, self.producers, first_offset, leader_epoch, may_begin_anywhere, guard)
        if isinstance(placed, AppendedBatch):
            stamped_ms = checked.now_ms if checked.rules.stamps else NO_TIMESTAMP
            return duplicate_of(placed, stamped_ms, self.log_start_offset)
        data, infos, max_timestamp, log_append_time, staged = placed
        if leader_epoch > self.epochs.latest_epoch:
            self.begin_epoch(leader_epoch)
        self._write(data, infos, max_timestamp, staged)
        last_offset, start = self.log_end_offset - 1, self.log_start_offset
        # Past the Python-level constructor of NamedTuple, once per produced batch.
        return tuple.__new__(AppendResult, (first_offset, last_offset, max_timestamp, log_append_time, start, False))

    def append_markers(
        self, markers: Sequence[EndTransactionMarker], *, leader_epoch: int, rules: BatchRules
    ) -> tuple[AppendResult | None, list[ErrorCode]]:
        """End transactions of different producers with one write; return an error for each that can't be ended. None:
        all are refused or repeated. No limit of the topic applies: an open transaction would stop its readers."""
        self.files.check_writable()
        now_ms = self._clock.now_ms()
        batches, codes = marker_batches(markers, self.producers, now_ms)
        if not batches:
            return None, codes
        return self.append_checked(CheckedRecords(batches, rules, now_ms), leader_epoch=leader_epoch), codes

    def nothing_appended(self) -> AppendResult:
        """Return the result for batches that are in the log already, somewhere before its end."""
        end = self.log_end_offset
        return AppendResult(end, end - 1, NO_TIMESTAMP, NO_TIMESTAMP, self.log_start_offset, is_duplicate=True)

    def append_as_follower(self, records: memoryview) -> AppendResult:
        """Write batches as the leader sent them. A batch that the end of the fetch cuts is left for the next fetch."""
        self.files.check_writable()
        first_offset, newest = self.log_end_offset, NO_TIMESTAMP
        runs = split_into_runs(records, self.log_end_offset, self.config.segment_bytes)
        if runs:
            first_offset = runs[0].batches[0].base_offset
        for run in runs:
            newest = max(newest, run.max_timestamp)
            if run.has_gap:  # producers may have gone with the records that compaction removed
                self.producers.forgotten_up_to = EVERY_PRODUCER
            staged = self.producers.stage(run.batches, run.data, None)
            for epoch, start_offset in run.epochs:
                if epoch > self.epochs.latest_epoch:
                    self.files.guarded(partial(self.epochs.assign, epoch, start_offset))
            self._write(run.data, run.batches, run.max_timestamp, staged)
        return AppendResult(first_offset, self.log_end_offset - 1, newest, NO_TIMESTAMP, self.log_start_offset)

    def _write(self, data: Buffer, infos: Sequence[BatchInfo], max_timestamp: int, staged: Staged) -> None:
        last_offset = infos[-1].last_offset
        end_offset, config, files = last_offset + 1, self.config, self.files
        if files.must_roll(config, len(data), max_timestamp, last_offset):
            self.roll(infos[0].base_offset)
        segment = files.active
        size = segment.size
        try:
            segment.append(data, infos, config.index_interval_bytes)
            for transaction in staged.completed:
                note_aborted(segment, transaction)
        except OSError as error:
            files.undo_append(segment, size, self.log_end_offset)
            raise files.fail(error) from error
        if staged.entries:
            self.producers.commit(staged, end_offset)
        else:
            self.producers.map_end_offset = end_offset
        self.log_end_offset = end_offset
        if end_offset - self.flushed.offset >= config.flush_messages:
            self.flush()

    def roll(self, base_offset: int | None = None) -> None:
        """Roll a new active segment at the offset, by default the log's end. The old one is flushed later."""
        base_offset = self.log_end_offset if base_offset is None else base_offset
        old = self.files.active
        if old.base_offset == base_offset and not old.size:
            return
        self.files.guarded(lambda: self._roll(base_offset))
        if old.size:
            self._background.once(f"flush {self.partition}", lambda: self.flushed.flush_to(base_offset))

    def _roll(self, base_offset: int) -> None:
        self.files.roll(base_offset, self.config)
        self.producers.map_end_offset = base_offset
        self.files.snapshots.take(self.producers, sync=False)

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
        return self._reader.read(offset, max_bytes, upper_bound, min_one_batch)

    def read_committed(
        self, offset: int, max_bytes: int, *, upper_bound: int, min_one_batch: bool
    ) -> tuple[ReadResult, list[AbortedTransaction]]:
        """Read as `read` does, with the aborted transactions in the range, which compaction may be about to drop."""
        while True:
            segments = self.files.segments
            found = self.read(offset, max_bytes, upper_bound=upper_bound, min_one_batch=min_one_batch)
            aborted = self._reader.aborted_in(found, offset, upper_bound)
            if segments is self.files.segments:
                return found, aborted

    def aborted_transactions(self, offset: int, upper_bound: int) -> list[AbortedTransaction]:
        return self._reader.aborted_transactions(offset, upper_bound)

    def find_offset_by_timestamp(self, timestamp: int) -> TimestampOffset | None:
        return self._reader.find_offset_by_timestamp(timestamp, self.log_start_offset)

    def max_timestamp(self) -> TimestampOffset | None:
        return self._reader.max_timestamp(self.log_start_offset)

    def starts_written_before(self, timestamp: int) -> list[int]:
        return self._reader.starts_written_before(timestamp)

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
        self.files.guarded(lambda: self.epochs.truncate_from_start(offset))
        return True

    def delete_expired(self, now_ms: int, high_watermark: int) -> int:
        """Delete expired segments; return their number."""
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
        start = self.segments[count].base_offset
        log.info("segments deleted by retention", partition=str(self.partition), segments=count, start=start)
        self.log_start_offset = max(self.log_start_offset, start)
        self.files.guarded(lambda: self.files.drop_first(count, self.config.file_delete_delay_ms))
        self.files.guarded(lambda: self.epochs.truncate_from_start(self.log_start_offset))
        return count

    def truncate_to(self, offset: int) -> bool:
        """Drop the batch with the offset and everything after it, so that the log ends there."""
        if offset >= self.log_end_offset:
            # Other replicas may not know an epoch in which this broker led and wrote nothing.
            self.files.guarded(lambda: self.epochs.truncate_from_end(self.log_end_offset))
            return False
        log.info("log truncated", partition=str(self.partition), end=self.log_end_offset, to=offset)
        if offset < self.segments[0].base_offset:
            self.truncate_fully_and_start_at(offset)
            return True
        self.files.guarded(lambda: truncate(self, offset, self._environment))
        return True

    def truncate_fully_and_start_at(self, offset: int) -> None:
        """Drop everything; the log is empty and continues at the offset."""
        self.files.guarded(lambda: start_over(self, offset, self._environment))

    def replace_segments(self, old: Sequence[Segment], size: int, *, truncations: int) -> bool:
        """Puts the compacted segment of this size, whose files lie ready, into the place of its originals.

        Not when the log has been cut or moved since it had so many `truncations`, or has lost one of them.
        """
        self.files.check_writable()
        slot = self.files.find(old)
        if self.is_copied or truncations != self.flushed.truncations or slot is None:
            return False
        self.files.guarded(lambda: self.files.replace(slot, old, size, self.config.file_delete_delay_ms))
        return True

    # -- as a whole ---------------------------------------------------------------------------------------------

    def take_place_of(self, source: "PartitionLog") -> None:
        """Take over the rest of the source's state, and flush what it has flushed: this log has all of its records.
        Writers of both logs wait meanwhile."""
        self.update_config(source.config)
        self.maybe_advance_log_start(source.log_start_offset)
        self.files.guarded(lambda: self.epochs.take_over(source.epochs.entries))
        self.producers = source.producers
        self.files.guarded(lambda: self.files.snapshots.take(self.producers, sync=False))
        if self.recovery_point < source.recovery_point:
            self.flush()

    def flush(self) -> None:
        """Flush all records to the disk."""
        self.flushed.flush_to(self.log_end_offset)

    def update_config(self, config: LogConfig) -> None:
        self.config = config
        self.files.active.limit_indexes(config.segment_index_bytes)
        self.producers.set_expiration(config.producer_id_expiration_ms)

    def close(self, clean: bool = True) -> None:
        """Close the files. Clean: everything is on disk and the next open needs no scan."""
        if clean and not self.files.has_failed:
            self.files.guarded(self._finish)
        self.files.close()

    def _finish(self) -> None:
        if self.log_end_offset > self.log_start_offset:  # otherwise the next start would drop the snapshot
            self.files.snapshots.take(self.producers)
        active = self.files.active
        active.finish_indexes()
        os.ftruncate(active.file.fileno(), active.size)
        self.epochs.save()
        self.flush()

    def rename(self, directory: Path) -> None:
        """Move the whole log to another name, as the first step of a deletion. Readers in progress try again."""
        with self.files.in_place:
            os.rename(self.directory, directory)
            self.flushed.disturb()
            self.files.move_to(directory)
            self.epochs.move_to(directory / LEADER_EPOCH_FILE)

    def delete(self) -> None:
        """Remove the log's directory at once. Slices in flight stay readable."""
        with self.files.in_place:
            self.files.is_deleted = True
            self.flushed.disturb()
            self.files.delete()

"""The files of one partition's log: its segments in order, how they begin, get to disk, move, and go.

Readers hold no lock and may run beside one writer: they see an immutable tuple of segments, and offsets that are
published after the bytes. What is in the files is the business of those built on this: `readable_log`, `partition_log`.

    log_start_offset ≤ recovery_point ≤ log_end_offset   (the recovery point is what fsync has confirmed)
"""

import os
import random
import threading
from collections.abc import Callable
from pathlib import Path

from odradek.base.clock import Clock
from odradek.base.errors import ErrorCode, KafkaError
from odradek.base.logs import get_logger
from odradek.broker.log.core.config import LogConfig
from odradek.broker.log.core.producer_state import ProducerStates
from odradek.broker.log.files.background import Background
from odradek.broker.log.files.checkpoint import sync_directory
from odradek.broker.log.files.leader_epochs import LeaderEpochCache
from odradek.broker.log.files.producer_snapshot import ProducerSnapshots
from odradek.broker.log.files.recovery import LoadedLog, remove_files
from odradek.broker.log.files.segment import Segment
from odradek.format.checkpoints import LEADER_EPOCH_FILE
from odradek.format.segment_files import MAX_RELATIVE_OFFSET
from odradek.model.topology import TopicPartition

FailureCallback = Callable[[Path, OSError], None]
TruncationCallback = Callable[["SegmentedLog", int], None]
"""Called before the log is cut back to an offset, by its writer."""

log = get_logger(__name__)


class SegmentedLog:
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
        on_truncate: TruncationCallback,
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
        self._on_truncate = on_truncate
        # The recovery point is moved by flushes, which may run beside the writer, and moved back by truncation.
        self._recovery_lock = threading.Lock()
        self._truncations = 0
        self.in_place = threading.RLock()
        """Held by whoever needs the log to keep its name and its files: meanwhile it is not renamed, nor deleted."""
        self._renames = 0
        self.is_deleted = False
        self.is_copied = False
        """Its records are on their way to another directory: compaction waits, or the copy would miss tombstones."""

    # -- rolling ------------------------------------------------------------------------------------------------

    def _must_roll(self, size: int, max_timestamp: int, last_offset: int) -> bool:
        segment, config = self._active, self.config
        if last_offset - segment.base_offset > MAX_RELATIVE_OFFSET:
            return True
        if not segment.size:
            return False
        if segment.size + size > config.segment_bytes or segment.index_room <= 0:
            return True
        first = segment.first_timestamp
        waited_ms = max_timestamp - first if first >= 0 else self._clock.now_ms() - segment.created_ms
        return waited_ms > config.segment_ms - segment.jitter_ms

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

    def _move_recovery_point_back(self, offset: int) -> None:
        with self._recovery_lock:
            self._truncations += 1
            self.recovery_point = min(self.recovery_point, offset)
        self._on_truncate(self, offset)

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
        if self.log_end_offset > self.log_start_offset:  # else the next start would drop the snapshot again
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
        """Report an error that another part met on the log's files."""
        self._fail(error)

    def _fail(self, error: OSError) -> KafkaError:
        """Stop taking writes after an I/O error; the owner of the directory decides about it."""
        if self._failed is None:
            self._failed = error
            if self.is_deleted:  # whoever still wrote to it has nothing to write to
                return self._storage_error(error)
            log.error("log I/O error", partition=str(self.partition), directory=str(self.directory), reason=str(error))
            self._on_failure(self.directory.parent, error)
        return self._storage_error(error)

    def _storage_error(self, error: OSError) -> KafkaError:
        return KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"Log of {self.partition} in {self.directory.parent}: {error}")

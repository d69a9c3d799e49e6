"""Files of one partition's log: segments in order, the last one active, and producer snapshots. Rolling, renaming,
failing and deleting them happens here.

Readers hold no lock and may run beside one writer: they see an immutable tuple of segments. Other modules handle the
content of the files: `log_reader` reads, `partition_log` writes, `recovery_point` flushes.
"""

import os
import random
import threading
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from odradek.base.errors import ErrorCode, KafkaError
from odradek.base.logs import get_logger
from odradek.broker.log.compaction.swap import put_in_place
from odradek.broker.log.core.config import LogConfig
from odradek.broker.log.files.log_environment import LogEnvironment
from odradek.broker.log.files.recovery import LoadedLog, remove_files
from odradek.broker.log.files.segment import Segment
from odradek.format.segment_files import MAX_RELATIVE_OFFSET
from odradek.model.topology import TopicPartition
from odradek.protocol.record_batch import NO_TIMESTAMP

log = get_logger(__name__)


class LogFiles:
    def __init__(
        self, directory: Path, partition: TopicPartition, loaded: LoadedLog, environment: LogEnvironment
    ) -> None:
        self.directory = directory
        self.partition = partition
        self.segments = loaded.segments
        self.active = loaded.segments[-1]
        self.snapshots = loaded.snapshots
        self.in_place = threading.RLock()
        """Held while the log has to keep its name and its files: it is neither renamed nor deleted meanwhile."""
        self.renames = 0
        self.is_deleted = False
        self._clock = environment.clock
        self._background = environment.background
        self._on_failure = environment.on_failure
        self.failure: OSError | None = None
        """The I/O error after which the log takes no writes."""

    # -- segments -----------------------------------------------------------------------------------------------

    def must_roll(self, config: LogConfig, size: int, max_timestamp: int, last_offset: int) -> bool:
        segment = self.active
        if last_offset - segment.base_offset > MAX_RELATIVE_OFFSET:
            return True
        taken = segment.size
        if not taken:
            return False
        if taken + size > config.segment_bytes or segment.index_room <= 0:
            return True
        first = segment.known_first_timestamp
        if first is None:
            try:
                first = segment.first_timestamp
            except KafkaError:  # readers report a corrupt batch
                first = NO_TIMESTAMP
        waited_ms = max_timestamp - first if first >= 0 else self._clock.now_ms() - segment.created_ms
        return waited_ms > config.segment_ms - segment.jitter_ms

    def roll(self, base_offset: int, config: LogConfig) -> None:
        """Begin a new active segment. An empty one is replaced, not kept."""
        old = self.active
        jitter_ms = random.randrange(min(config.segment_jitter_ms, config.segment_ms) or 1)
        if old.size:
            old.deactivate()
            kept = self.segments
        else:
            kept = self.segments[:-1]
            remove_files(old.paths())
        new = Segment.create(self.directory, base_offset, config, self._clock.now_ms(), jitter_ms)
        self.active = new
        self.segments = (*kept, new)

    def undo_append(self, segment: Segment, size: int, end_offset: int) -> None:
        """Cut a segment back to the state before an append that failed, as far as the disk allows."""
        try:
            segment.undo_append(size, end_offset)
        except OSError as error:
            log.error("truncation after a failed append failed", path=str(segment.path), reason=str(error))

    def drop_first(self, count: int, delay_ms: int) -> None:
        """Take so many segments from the log; remove their files after the delay."""
        gone, self.segments = self.segments[:count], self.segments[count:]
        first_kept = self.segments[0].base_offset
        self.snapshots.keep(lambda offset: offset >= first_kept)
        files = [path for segment in gone for path in segment.mark_deleted()]
        self._remove_later("delete segments", files, delay_ms)

    def drop_from(self, offset: int, config: LogConfig) -> None:
        """Remove the segments that begin after the offset. The last one left is active."""
        kept = tuple(segment for segment in self.segments if segment.base_offset <= offset)
        gone = self.segments[len(kept) :]
        if gone:
            kept[-1].activate(config)
        self.active = kept[-1]
        self.segments = kept
        remove_files(path for segment in gone for path in segment.mark_deleted())

    def start_over(self, offset: int, config: LogConfig) -> None:
        """Remove every segment, and begin one from the offset."""
        remove_files(path for segment in self.segments for path in segment.mark_deleted())
        new = Segment.create(self.directory, offset, config, self._clock.now_ms())
        self.active = new
        self.segments = (new,)
        self.snapshots.keep(lambda _: False)

    def find(self, segments: Sequence[Segment]) -> int | None:
        """Return the place of consecutive segments; None if the log has lost one of them."""
        slot = next((slot for slot, segment in enumerate(self.segments) if segment is segments[0]), None)
        if slot is None or self.segments[slot : slot + len(segments)] != tuple(segments):
            return None
        return slot

    def replace(self, slot: int, old: Sequence[Segment], size: int, delay_ms: int) -> None:
        """Put the compacted segment of this size, whose files lie ready, in place of its originals, which are removed
        after the delay."""
        with self.in_place:
            new, files = put_in_place(self.directory, old, size)
            self.segments = (*self.segments[:slot], new, *self.segments[slot + len(old) :])
            self.renames += 1
        merged = {segment.base_offset for segment in old[1:]}
        self.snapshots.keep(lambda offset: offset not in merged)
        self._remove_later("delete compacted segments", files, delay_ms)

    def _remove_later(self, name: str, files: Iterable[Path], delay_ms: int) -> None:
        self._background.once(f"{name} of {self.partition}", lambda: remove_files(files), delay_ms=delay_ms)

    @property
    def size_bytes(self) -> int:
        return sum(segment.size for segment in self.segments)

    # -- names --------------------------------------------------------------------------------------------------

    def move_to(self, directory: Path) -> None:
        """Use the new path of a renamed directory."""
        self.directory = directory
        for segment in self.segments:
            segment.move_to(directory)
        self.snapshots.move_to(directory)
        self.renames += 1

    def were_renamed_since(self, renames: int) -> bool:
        with self.in_place:
            return self.renames != renames

    def close(self) -> None:
        for segment in self.segments:
            segment.close()

    def delete(self) -> None:
        """Remove the directory at once. Slices in flight stay readable."""
        self.close()
        for name in os.listdir(self.directory):
            (self.directory / name).unlink(missing_ok=True)
        self.directory.rmdir()

    # -- failing ------------------------------------------------------------------------------------------------

    @property
    def has_failed(self) -> bool:
        return self.failure is not None

    def check_writable(self) -> None:
        if self.failure is not None:
            raise self.storage_error(self.failure)

    def guarded(self, change: Callable[[], object]) -> None:
        """Change the files; after an I/O error the log accepts no more writes."""
        try:
            change()
        except OSError as error:
            raise self.fail(error) from error

    def fail(self, error: OSError) -> KafkaError:
        """Stop taking writes after an I/O error; the owner of the directory decides about it."""
        if self.failure is None:
            self.failure = error
            if self.is_deleted:  # there is nothing left to write to
                return self.storage_error(error)
            log.error("log I/O error", partition=str(self.partition), directory=str(self.directory), reason=str(error))
            self._on_failure(self.directory.parent, error)
        return self.storage_error(error)

    def abandon(self, error: OSError) -> None:
        """Stop after a failure of the directory: take no writes, and close the files."""
        self.failure = self.failure or error
        self.close()

    def storage_error(self, error: OSError) -> KafkaError:
        return KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"Log of {self.partition} in {self.directory.parent}: {error}")

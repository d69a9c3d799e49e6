"""Recovery point of a log: the offset up to which fsync has confirmed its records.

Flushes move it, and may run beside the writer; truncation moves it back.
"""

import threading
from bisect import bisect_right

from odradek.base.clock import Clock
from odradek.broker.log.files.checkpoint import sync_directory
from odradek.broker.log.files.leader_epochs import LeaderEpochCache
from odradek.broker.log.files.log_files import LogFiles
from odradek.broker.log.files.segment import Segment


class RecoveryPoint:
    def __init__(self, files: LogFiles, epochs: LeaderEpochCache, offset: int, clock: Clock) -> None:
        self.offset = offset
        self.last_flush_ms = clock.now_ms()
        self.truncations = 0
        """Rises before records go that were there, at the end or all of them, and when the files are renamed."""
        self._files = files
        self._epochs = epochs
        self._clock = clock
        self._lock = threading.Lock()

    def flush_to(self, offset: int) -> None:
        """Flush records before the offset. A failed fsync is never tried again: the pages may be gone already."""
        files = self._files
        if offset <= self.offset or files.has_failed:
            return
        truncations, start, renames = self.truncations, self.offset, files.renames
        try:
            segments = files.segments
            for segment in segments[max(bisect_right(segments, start, key=_base_of) - 2, 0) :]:
                if segment.base_offset < offset and segment.end_offset >= start:
                    segment.sync()
            if files.active.base_offset >= start:
                sync_directory(files.directory)
            self._epochs.save()
        except FileNotFoundError:
            if files.were_renamed_since(renames) and not files.is_deleted:
                self.flush_to(offset)
            elif self.truncations == truncations and not files.is_deleted and files.directory.exists():
                raise
            return  # truncated or deleted meanwhile
        except OSError as error:
            raise files.fail(error) from error
        with self._lock:
            if self.truncations == truncations and offset > self.offset:
                self.offset = offset
                self.last_flush_ms = self._clock.now_ms()

    def move_back(self, offset: int) -> None:
        """Lower the recovery point, because the log is about to be truncated to the offset."""
        with self._lock:
            self.truncations += 1
            self.offset = min(self.offset, offset)

    def disturb(self) -> None:
        """Make a running flush or compaction check its files again: they get other names, or are deleted."""
        with self._lock:
            self.truncations += 1


def _base_of(segment: Segment) -> int:
    return segment.base_offset

"""Table of the open logs by directory, of the directories that still work, and of periodic work on all logs.

`LogDirs` and `MovingLogs` fill and empty this table; they hold `changing` while they change it. A directory whose disk
fails leaves the table with its logs; listeners are called without a lock.
"""

import os
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from odradek.base.clock import Clock
from odradek.base.errors import ErrorCode, KafkaError
from odradek.base.logs import get_logger
from odradek.base.value_classes import dataclass
from odradek.broker.log.directories.directory_checkpoints import DirectoryCheckpoints
from odradek.broker.log.files.partition_log import PartitionLog
from odradek.model.topology import TopicPartition

log = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class DirectoryFailure:
    directory: Path
    reason: str
    partitions: tuple[TopicPartition, ...]
    """Partitions that were lost with it."""


class DirectoryTable:
    def __init__(self, directories: Sequence[Path], clock: Clock, on_all_failed: Callable[[str], None]) -> None:
        self.directories = tuple(directory.absolute() for directory in directories)
        self.on_offline: list[Callable[[DirectoryFailure], None]] = []
        """Called with each directory that fails, by the thread that found out."""
        self._on_all_failed = on_all_failed
        self._clock = clock
        self.online = set(self.directories)
        self.checkpoints = {directory: DirectoryCheckpoints(directory) for directory in self.directories}
        self.logs: dict[TopicPartition, PartitionLog] = {}
        self.futures: dict[TopicPartition, PartitionLog] = {}  # copies that will take a log's place
        self.lost: set[TopicPartition] = set()  # known to lie in a directory that failed
        self.high_watermarks: dict[TopicPartition, int] = {}
        self.changing = threading.RLock()

    # -- logs and directories -----------------------------------------------------------------------------------

    def get(self, tp: TopicPartition) -> PartitionLog | None:
        return self.logs.get(tp)

    def future(self, tp: TopicPartition) -> PartitionLog | None:
        """The copy that is being made of the partition's log in another directory."""
        return self.futures.get(tp)

    def logs_in(self, directory: Path) -> dict[TopicPartition, PartitionLog]:
        return {tp: opened for tp, opened in self.logs.copy().items() if opened.directory.parent == directory}

    def futures_in(self, directory: Path) -> dict[TopicPartition, PartitionLog]:
        return {tp: opened for tp, opened in self.futures.copy().items() if opened.directory.parent == directory}

    def all_in(self, directory: Path) -> list[PartitionLog]:
        return [*self.logs_in(directory).values(), *self.futures_in(directory).values()]

    def is_online(self, directory: Path) -> bool:
        return directory in self.online

    @property
    def all_online(self) -> bool:
        return len(self.online) == len(self.directories)

    @property
    def offline_directories(self) -> tuple[Path, ...]:
        return tuple(directory for directory in self.directories if directory not in self.online)

    def online_directories(self) -> tuple[Path, ...]:
        return tuple(directory for directory in self.directories if directory in self.online)

    def volume_bytes(self, directory: Path) -> tuple[int, int]:
        """Total and usable bytes of the directory's volume; -1 each if they are not known."""
        try:
            volume = os.statvfs(directory)
        except OSError:
            return -1, -1
        return volume.f_blocks * volume.f_frsize, volume.f_bavail * volume.f_frsize

    # -- checkpoints and upkeep ---------------------------------------------------------------------------------

    def high_watermark(self, tp: TopicPartition) -> int:
        """The checkpointed high watermark; 0 without one."""
        return self.high_watermarks.get(tp, 0)

    def checkpoint_recovery_points(self) -> None:
        for directory in self.online_directories():
            self.write_recovery_points(directory)

    def write_recovery_points(self, directory: Path) -> None:
        with self.failing(directory):
            self.checkpoints[directory].write_recovery_points(lambda: self.all_in(directory))

    def checkpoint_log_start_offsets(self) -> None:
        for directory in self.online_directories():
            self.write_log_starts(directory)

    def write_log_starts(self, directory: Path) -> None:
        with self.failing(directory):
            self.checkpoints[directory].write_log_starts(lambda: self.all_in(directory))

    def checkpoint_high_watermarks(self, high_watermarks: Mapping[TopicPartition, int]) -> None:
        self.high_watermarks.update(high_watermarks)
        for directory in self.online_directories():
            self._checkpoint_high_watermarks(directory)

    def _checkpoint_high_watermarks(self, directory: Path) -> None:
        with self.failing(directory):
            known = self.high_watermarks
            self.checkpoints[directory].write_high_watermarks(lambda: self.all_in(directory), known)

    def flush_overdue(self) -> None:
        """Flushes the logs whose `flush.ms` has passed."""
        now_ms = self._clock.now_ms()
        for opened in self.logs.copy().values():
            if now_ms - opened.flushed.last_flush_ms >= opened.config.flush_ms:
                with self.failing(opened.directory.parent):
                    opened.flush()

    def expire_producers(self) -> None:
        """Forgets the producers that have been silent for `producer.id.expiration.ms`."""
        now_ms = self._clock.now_ms()
        for opened in self.logs.copy().values():
            opened.producers.remove_expired(now_ms)

    # -- failing ------------------------------------------------------------------------------------------------

    def failing(self, directory: Path) -> "_TakesOffline":
        return _TakesOffline(self.fail, directory)

    def fail(self, directory: Path, error: OSError) -> None:
        """Take the directory offline after a disk error: its partitions are not served until a restart finds it
        sound."""
        with self.changing:
            if directory not in self.online:
                return
            self.online.discard(directory)
            lost, copies = self.logs_in(directory), self.futures_in(directory)
            log.error("log directory offline", directory=str(directory), reason=str(error), partitions=len(lost))
            self.lost.update(lost)
            for tp, opened in lost.items():
                del self.logs[tp]
                opened.files.abandon(error)
            for tp, copy in copies.items():
                del self.futures[tp]
                copy.files.abandon(error)
                if (source := self.logs.get(tp)) is not None:
                    source.is_copied = False
            none_left = not self.online
        for listener in self.on_offline:
            listener(DirectoryFailure(directory, str(error), tuple(lost)))
        if none_left:
            self._on_all_failed(f"All log directories have failed, the last was {directory}: {error}")


class _TakesOffline:
    """An I/O error inside, ours or a log's, takes the directory offline and is not raised further."""

    def __init__(self, fail: Callable[[Path, OSError], None], directory: Path) -> None:
        self._fail = fail
        self._directory = directory

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> bool:
        if isinstance(error, OSError):
            self._fail(self._directory, error)
            return True
        # The log has reported itself to `_fail` already.
        return isinstance(error, KafkaError) and error.code is ErrorCode.KAFKA_STORAGE_ERROR

"""The broker's log directories: which partition lies where, opening all of them, making and deleting logs, checkpoints.

    DIR/.lock                              held while a broker (ours or Kafka's) uses the directory
    DIR/meta.properties                    whose it is (`identity`)
    DIR/.kafka_cleanshutdown               there after a clean stop only
    DIR/*-offset-checkpoint                recovery points, log starts, high watermarks (`checkpoint`)
    DIR/topic-0/                           a partition's log
    DIR/topic-0.UUID-delete/               one that is being deleted
    DIR/topic-0.UUID-future/, -stray/      left alone: Kafka's own business between directories and with lost topics

A directory whose disk fails goes offline with its partitions; the others go on. A broker with none left must stop.
Any thread may call this; making, deleting and failing are serialised by one lock, under which no log's writer waits.
"""

import fcntl
import json
import os
import re
import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from io import FileIO
from pathlib import Path
from uuid import UUID, uuid4

from odradek.base.clock import Clock
from odradek.base.config.broker_config import BrokerConfig
from odradek.base.config.topic_config import TopicConfig
from odradek.base.errors import ErrorCode, FatalError, KafkaError
from odradek.base.logs import get_logger
from odradek.log.background import Background
from odradek.log.checkpoint import (
    HIGH_WATERMARK_FILE,
    LOG_START_FILE,
    RECOVERY_POINT_FILE,
    read_offsets,
    replace_file,
    sync_directory,
    write_offsets,
)
from odradek.log.config import LogConfig
from odradek.log.identity import (
    make_topic_id_durable,
    read_broker_id,
    read_topic_id,
    write_broker_id,
    write_topic_id,
)
from odradek.log.partition_log import PartitionLog
from odradek.model.topology import ZERO_UUID, TopicPartition

CLEAN_SHUTDOWN_FILE = ".kafka_cleanshutdown"
LOCK_FILE = ".lock"
DELETE_SUFFIX = "-delete"
LEFT_ALONE_SUFFIXES = ("-future", "-stray")
_MAX_NAME = 255
_LOG_NAME = re.compile(r"([A-Za-z0-9._-]+)-(\d+)")

log = get_logger(__name__)


class LogDirs:
    def __init__(
        self,
        directories: Sequence[Path],
        config: BrokerConfig,
        background: Background,
        clock: Clock,
        on_all_failed: Callable[[str], None],
    ) -> None:
        self.directories = tuple(directory.absolute() for directory in directories)
        self._config = config
        self._background = background
        self._clock = clock
        self.on_offline: Callable[[Collection[TopicPartition]], None] = lambda partitions: None
        """Told which partitions went with a directory, by the thread that found out."""
        self._on_all_failed = on_all_failed
        self._online = set(self.directories)
        self._logs: dict[TopicPartition, PartitionLog] = {}
        self._lost: set[TopicPartition] = set()  # known to lie in a directory that failed
        self._topic_ids: dict[TopicPartition, UUID] = {}
        self._high_watermarks: dict[TopicPartition, int] = {}
        self._written: dict[Path, Mapping[TopicPartition, int]] = {}  # what the checkpoint files say
        self._locks: list[FileIO] = []
        self._changing = threading.RLock()

    # -- whose directories they are -----------------------------------------------------------------------------

    def lock(self) -> None:
        """Makes the directories where they are missing, and keeps other brokers out of them."""
        if len({directory.resolve() for directory in self.directories}) < len(self.directories):
            raise FatalError(f"log.dirs names a directory twice: {', '.join(map(str, self.directories))}")
        for directory in self.directories:
            try:
                if not directory.is_dir():
                    directory.mkdir(parents=True)
                    sync_directory(directory.parent)
                file = FileIO(directory / LOCK_FILE, "a+")
            except OSError as error:
                self._fail(directory, error)
                continue
            self._locks.append(file)
            try:
                fcntl.lockf(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise FatalError(
                    f"Log directory {directory} is in use by another broker (its .lock is held): stop that one, or "
                    "give this one other log.dirs"
                ) from None
        if not self._online:
            raise FatalError(f"None of log.dirs can be used: {', '.join(map(str, self.directories))}")

    def unlock(self) -> None:
        while self._locks:
            self._locks.pop().close()

    def remembered_id(self, cluster_id: str) -> int | None:
        """The broker id that the directories were last used with, if any."""
        ids = {
            directory: broker_id
            for directory in self._online_directories()
            if (broker_id := read_broker_id(directory, cluster_id)) is not None
        }
        if len(set(ids.values())) > 1:
            told = ", ".join(f"{directory} of broker {broker_id}" for directory, broker_id in ids.items())
            raise FatalError(f"log.dirs has directories of several brokers: {told}")
        return next(iter(ids.values()), None)

    def remember_id(self, broker_id: int, cluster_id: str) -> None:
        for directory in self._online_directories():
            with self._failing(directory):
                write_broker_id(directory, broker_id, cluster_id)

    # -- opening and closing ------------------------------------------------------------------------------------

    def load(self) -> None:
        """Opens every log. After a clean stop that is quick; otherwise threads check what may be torn."""
        started_ms = self._clock.monotonic_ms()
        for directory in self._online_directories():
            with self._failing(directory):
                self._load_directory(directory)
        log.info("logs loaded", logs=len(self._logs), ms=self._clock.monotonic_ms() - started_ms)

    def _load_directory(self, directory: Path) -> None:
        marker = directory / CLEAN_SHUTDOWN_FILE
        clean = marker.exists()
        # Gone before anything is opened: a crash from here on is not a clean stop.
        marker.unlink(missing_ok=True)
        recovery_points = self._read_checkpoint(directory, RECOVERY_POINT_FILE)
        starts = self._read_checkpoint(directory, LOG_START_FILE)
        self._high_watermarks.update(self._read_checkpoint(directory, HIGH_WATERMARK_FILE))
        found = dict(self._logs_on_disk(directory))
        log.info("loading logs", directory=str(directory), logs=len(found), clean=clean)

        def open_one(item: tuple[TopicPartition, Path]) -> None:
            tp, path = item
            opened = self._open(path, tp, clean, recovery_points.get(tp, 0), starts.get(tp, 0))
            self._add_loaded(tp, opened, read_topic_id(path))

        if clean:
            for item in found.items():
                open_one(item)
            return
        with ThreadPoolExecutor(self._config.num_recovery_threads_per_data_dir, "log-recovery") as pool:
            for number, _ in enumerate(pool.map(open_one, found.items()), 1):
                log.info("log recovered", directory=str(directory), number=number, of=len(found))

    def _open(self, path: Path, tp: TopicPartition, clean: bool, recovery_point: int, start: int) -> PartitionLog:
        return PartitionLog.open(
            path,
            tp,
            self.log_config(TopicConfig.of(self._config)),
            recovery_point=recovery_point,
            log_start_offset=start,
            clean=clean,
            clock=self._clock,
            background=self._background,
            on_failure=self._fail,
        )

    def _add_loaded(self, tp: TopicPartition, opened: PartitionLog, topic_id: UUID | None) -> None:
        with self._changing:
            if (other := self._logs.get(tp)) is not None:
                raise FatalError(
                    f"Partition {tp} lies in two directories, {other.directory} and {opened.directory}: move one of "
                    "them away, best the one on the disk that failed recently"
                )
            self._logs[tp] = opened
            if topic_id is not None:
                self._topic_ids[tp] = topic_id

    def _logs_on_disk(self, directory: Path) -> Iterator[tuple[TopicPartition, Path]]:
        for entry in sorted(os.scandir(directory), key=lambda entry: entry.name):
            if not entry.is_dir():
                continue
            path = directory / entry.name
            if entry.name.endswith(DELETE_SUFFIX):
                self._delete_later(path)
            elif match := _LOG_NAME.fullmatch(entry.name):
                yield TopicPartition(match[1], int(match[2])), path
            elif entry.name.endswith(LEFT_ALONE_SUFFIXES):
                log.warning("directory left alone", path=str(path))
            else:
                log.warning("not a log, ignored", path=str(path))

    def close(self) -> None:
        """Flushes and closes every log, and marks each directory whose logs all closed well."""
        for directory in self._online_directories():
            with self._failing(directory):
                for opened in self.logs_in(directory).values():
                    opened.close()
                self._checkpoint(directory, RECOVERY_POINT_FILE, _recovery_points(self.logs_in(directory)))
                self._checkpoint(directory, LOG_START_FILE, _log_starts(self.logs_in(directory)))
                marker = json.dumps({"version": 0, "brokerEpoch": -1}, separators=(",", ":"))
                replace_file(directory / CLEAN_SHUTDOWN_FILE, marker.encode())

    # -- logs ---------------------------------------------------------------------------------------------------

    def get(self, tp: TopicPartition) -> PartitionLog | None:
        return self._logs.get(tp)

    def get_or_create(self, tp: TopicPartition, topic_id: UUID, config: TopicConfig) -> PartitionLog:
        """The partition's log with this configuration; a new one goes where the fewest are."""
        with self._changing:
            found = self._logs.get(tp)
            if found is None:
                return self._create(tp, topic_id, config)
            known = self._topic_ids.get(tp)
            if known is None and topic_id != ZERO_UUID:
                self._set_topic_id(found, topic_id)
            elif known not in (None, topic_id) and topic_id != ZERO_UUID:
                raise KafkaError(
                    ErrorCode.INCONSISTENT_TOPIC_ID, f"The log of {tp} has topic id {known}, asked for was {topic_id}"
                )
            found.update_config(self.log_config(config))
            return found

    def _create(self, tp: TopicPartition, topic_id: UUID, config: TopicConfig) -> PartitionLog:
        if tp in self._lost or not self._online:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"The log directory of {tp} is offline")
        directory = self._emptiest()
        try:
            self._forget_former(directory, tp)
            created = self._open(directory / str(tp), tp, clean=False, recovery_point=0, start=0)
            created.update_config(self.log_config(config))
            self._logs[tp] = created
            if topic_id != ZERO_UUID:
                self._set_topic_id(created, topic_id)
        except OSError as error:
            self._fail(directory, error)
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"The log of {tp} can't be made: {error}") from error
        log.info("log created", partition=str(tp), directory=str(directory))
        return created

    def _emptiest(self) -> Path:
        """Where the fewest logs are. Names are compared as text: with thousands of logs, paths would take long."""
        directories = self._online_directories()
        if len(directories) == 1:
            return directories[0]
        counts = Counter(os.path.dirname(str(opened.directory)) for opened in self._logs.values())
        return min(directories, key=lambda directory: counts[str(directory)])

    def _set_topic_id(self, opened: PartitionLog, topic_id: UUID) -> None:
        write_topic_id(opened.directory, topic_id)
        self._topic_ids[opened.partition] = topic_id

        def settle() -> None:
            with self._failing(opened.directory.parent):
                make_topic_id_durable(opened.directory)

        self._background.once(f"topic id of {opened.partition}", settle)

    def _forget_former(self, directory: Path, tp: TopicPartition) -> None:
        """A deleted log of the same name must leave no offsets behind that a restart would apply to the new one."""
        self._high_watermarks.pop(tp, None)
        for name in (RECOVERY_POINT_FILE, LOG_START_FILE, HIGH_WATERMARK_FILE):
            written = self._written.get(directory / name, {})
            if tp in written:
                self._checkpoint(directory, name, {known: written[known] for known in written if known != tp})

    def delete(self, tp: TopicPartition) -> None:
        """Out of the way at once, its bytes after `file.delete.delay.ms`."""
        with self._changing:
            deleted = self._logs.pop(tp, None)
            self._topic_ids.pop(tp, None)
            self._lost.discard(tp)
        if deleted is None:
            return
        with self._failing(deleted.directory.parent):
            name_end = f"-{tp.partition}.{uuid4().hex}{DELETE_SUFFIX}"
            deleted.rename(deleted.directory.parent / (tp.topic[: _MAX_NAME - len(name_end)] + name_end))
            log.info("log deleted", partition=str(tp), directory=str(deleted.directory))
            self._background.once(f"delete {tp}", deleted.delete, delay_ms=deleted.config.file_delete_delay_ms)

    def _delete_later(self, path: Path) -> None:
        """A deletion that the last stop interrupted."""

        def remove() -> None:
            for name in os.listdir(path):
                (path / name).unlink()
            path.rmdir()

        delay_ms = self.log_config(TopicConfig.of(self._config)).file_delete_delay_ms
        self._background.once(f"delete {path.name}", remove, delay_ms=delay_ms)

    def log_config(self, config: TopicConfig) -> LogConfig:
        return LogConfig.of(config, self._config.producer_id_expiration_ms)

    # -- what is where ------------------------------------------------------------------------------------------

    def logs_in(self, directory: Path) -> dict[TopicPartition, PartitionLog]:
        return {tp: opened for tp, opened in self._logs.copy().items() if opened.directory.parent == directory}

    def is_online(self, directory: Path) -> bool:
        return directory in self._online

    def volume_bytes(self, directory: Path) -> tuple[int, int]:
        """Size of the directory's volume, and how much of it is free to us; -1 each when that can't be told."""
        try:
            volume = os.statvfs(directory)
        except OSError:
            return -1, -1
        return volume.f_blocks * volume.f_frsize, volume.f_bavail * volume.f_frsize

    # -- checkpoints and upkeep ---------------------------------------------------------------------------------

    def high_watermark(self, tp: TopicPartition) -> int:
        """As checkpointed; 0 where nothing is."""
        return self._high_watermarks.get(tp, 0)

    def checkpoint_recovery_points(self) -> None:
        for directory in self._online_directories():
            with self._failing(directory):
                self._checkpoint(directory, RECOVERY_POINT_FILE, _recovery_points(self.logs_in(directory)))

    def checkpoint_log_start_offsets(self) -> None:
        for directory in self._online_directories():
            with self._failing(directory):
                self._checkpoint(directory, LOG_START_FILE, _log_starts(self.logs_in(directory)))

    def checkpoint_high_watermarks(self, high_watermarks: Mapping[TopicPartition, int]) -> None:
        self._high_watermarks.update(high_watermarks)
        for directory in self._online_directories():
            with self._failing(directory):
                known = {tp: self._high_watermarks[tp] for tp in self.logs_in(directory) if tp in self._high_watermarks}
                self._checkpoint(directory, HIGH_WATERMARK_FILE, known)

    def flush_overdue(self) -> None:
        """Flushes the logs whose `flush.ms` has passed."""
        now_ms = self._clock.now_ms()
        for opened in self._logs.copy().values():
            if now_ms - opened.last_flush_ms >= opened.config.flush_ms:
                with self._failing(opened.directory.parent):
                    opened.flush()

    def expire_producers(self) -> None:
        """Forgets the producers that have been silent for `producer.id.expiration.ms`."""
        now_ms = self._clock.now_ms()
        for opened in self._logs.copy().values():
            opened.producers.remove_expired(now_ms)

    def _read_checkpoint(self, directory: Path, name: str) -> dict[TopicPartition, int]:
        offsets = read_offsets(directory / name)
        self._written[directory / name] = offsets
        return offsets

    def _checkpoint(self, directory: Path, name: str, offsets: Mapping[TopicPartition, int]) -> None:
        with self._changing:
            if self._written.get(directory / name) != offsets:
                write_offsets(directory / name, offsets)
                self._written[directory / name] = offsets

    # -- failing ------------------------------------------------------------------------------------------------

    def _online_directories(self) -> tuple[Path, ...]:
        return tuple(directory for directory in self.directories if directory in self._online)

    def _failing(self, directory: Path) -> "_TakesOffline":
        return _TakesOffline(self._fail, directory)

    def _fail(self, directory: Path, error: OSError) -> None:
        """The directory's disk can't be trusted: its partitions are not served until a restart finds it well."""
        with self._changing:
            if directory not in self._online:
                return
            self._online.discard(directory)
            lost = self.logs_in(directory)
            log.error("log directory offline", directory=str(directory), reason=str(error), partitions=len(lost))
            self._lost.update(lost)
            for tp, opened in lost.items():
                del self._logs[tp]
                opened.close(clean=False)
            none_left = not self._online
        self.on_offline(lost)
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


def _recovery_points(logs: Mapping[TopicPartition, PartitionLog]) -> dict[TopicPartition, int]:
    return {tp: opened.recovery_point for tp, opened in logs.items()}


def _log_starts(logs: Mapping[TopicPartition, PartitionLog]) -> dict[TopicPartition, int]:
    """Only where the first segment's name doesn't tell it already."""
    return {
        tp: opened.log_start_offset
        for tp, opened in logs.items()
        if opened.log_start_offset > opened.segments[0].base_offset
    }

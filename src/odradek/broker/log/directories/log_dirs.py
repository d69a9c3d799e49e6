"""The broker's log directories: the placement of partitions, opening, creating and deleting logs, checkpoints.

    DIR/.lock                              held while a broker (ours or Kafka's) uses the directory
    DIR/meta.properties                    broker id and cluster id (`identity`)
    DIR/.kafka_cleanshutdown               exists only after a clean stop
    DIR/*-offset-checkpoint                recovery points, log starts, high watermarks (`directory_checkpoints`)
    DIR/topic-0/, DIR/topic-0.UUID-…/      logs, copies for moves, logs being deleted (`log_names`)

A directory whose disk fails goes offline with its partitions; the others stay online. A broker without a working
directory must stop.
"""

import json
import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from io import FileIO
from pathlib import Path
from uuid import UUID, uuid4

from odradek.base.clock import Clock
from odradek.base.config.broker_config import BrokerConfig
from odradek.base.config.topic_config import TopicConfig
from odradek.base.errors import ErrorCode, FatalError, KafkaError
from odradek.base.logs import get_logger
from odradek.broker.log.compaction.cleaned_offsets import CleanedOffsets
from odradek.broker.log.core.config import LogConfig
from odradek.broker.log.core.deleted_producers import DeletedProducers
from odradek.broker.log.directories import log_moves
from odradek.broker.log.directories.directory_table import DirectoryTable
from odradek.broker.log.directories.identity import (
    agreed_id,
    claim,
    make_topic_id_durable,
    read_topic_id,
    write_broker_id,
    write_topic_id,
)
from odradek.broker.log.directories.moving_logs import MovingLogs
from odradek.broker.log.files.background import Background
from odradek.broker.log.files.checkpoint import replace_file, sync_directory
from odradek.broker.log.files.log_environment import LogEnvironment
from odradek.broker.log.files.partition_log import PartitionLog
from odradek.format.log_names import LogKind, current_name, deletion_name, parse, stray_name
from odradek.model.topology import ZERO_UUID, TopicPartition

CLEAN_SHUTDOWN_FILE = ".kafka_cleanshutdown"
_PREFERRED_MAX = 10_000

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
        self.table = DirectoryTable(directories, clock, on_all_failed)
        self.moves = MovingLogs(self.table, self._make, self._delete_log, self._topic_id)
        self._clock = clock
        self._config = config
        self._background = background
        self.cleaned = CleanedOffsets()
        self._environment = LogEnvironment(clock, background, self.table.fail, self._cut_back)
        self._preferred_directories: dict[TopicPartition, Path] = {}  # directories for logs that don't exist yet
        self._topic_ids: dict[TopicPartition, UUID] = {}
        self._deleted_producers = DeletedProducers()
        self._locks: list[FileIO] = []

    # -- identity of the directories ----------------------------------------------------------------------------

    def lock(self) -> None:
        """Create missing directories, and lock all of them."""
        if len({directory.resolve() for directory in self.table.directories}) < len(self.table.directories):
            raise FatalError(f"log.dirs names a directory twice: {', '.join(map(str, self.table.directories))}")
        for directory in self.table.directories:
            with self.table.failing(directory):
                self._locks.append(claim(directory))
        if not self.table.online:
            raise FatalError(f"None of log.dirs can be used: {', '.join(map(str, self.table.directories))}")

    def unlock(self) -> None:
        while self._locks:
            self._locks.pop().close()

    def remembered_id(self, cluster_id: str) -> int | None:
        """The broker id that the directories were last used with, if any."""
        return agreed_id(self.table.online_directories(), cluster_id)

    def remember_id(self, broker_id: int, cluster_id: str) -> None:
        for directory in self.table.online_directories():
            with self.table.failing(directory):
                write_broker_id(directory, broker_id, cluster_id)

    # -- opening and closing ------------------------------------------------------------------------------------

    def load(self) -> None:
        """Open every log. That is quick after a clean stop; otherwise threads recover the logs."""
        started_ms = self._clock.monotonic_ms()
        found: dict[Path, list[Path]] = {}
        for directory in self.table.online_directories():
            with self.table.failing(directory):
                found[directory] = list(self._logs_on_disk(directory))
        log_moves.finish_interrupted(found, self._retire)
        for directory in self.table.online_directories():
            with self.table.failing(directory):
                self._load_directory(directory, found[directory])
                self.cleaned.load(directory, self.table.logs_in(directory).values())
        log.info("logs loaded", logs=len(self.table.logs), ms=self._clock.monotonic_ms() - started_ms)

    def _logs_on_disk(self, directory: Path) -> Iterator[Path]:
        """The current and the future ones."""
        for entry in sorted(os.scandir(directory), key=lambda entry: entry.name):
            if not entry.is_dir():
                continue
            path, kind = directory / entry.name, parse(entry.name).kind
            if kind in (LogKind.CURRENT, LogKind.FUTURE):
                yield path
            elif kind is LogKind.DELETED:
                self._delete_later(path)
            elif kind is LogKind.STRAY:
                log.warning("stray log ignored", path=str(path))
            else:
                log.warning("unknown directory ignored", path=str(path))

    def _load_directory(self, directory: Path, paths: Sequence[Path]) -> None:
        marker = directory / CLEAN_SHUTDOWN_FILE
        clean = marker.exists()
        # Gone before anything is opened: a crash from here on is not a clean stop.
        marker.unlink(missing_ok=True)
        checkpoints = self.table.checkpoints[directory]
        points, starts = checkpoints.recovery_points(), checkpoints.log_starts()
        watermarks = checkpoints.high_watermarks()
        log.info("loading logs", directory=str(directory), logs=len(paths), clean=clean)

        def open_one(path: Path) -> None:
            name = parse(path.name)
            assert name.partition is not None
            tp = name.partition
            opened = self._open(path, tp, clean, points.get(tp, 0), starts.get(tp, 0))
            if name.kind is LogKind.FUTURE:
                self._add_future(tp, opened)
            else:
                self._add_loaded(tp, opened, read_topic_id(path), watermarks.get(tp, 0))

        if clean:
            for path in paths:
                open_one(path)
            return
        with ThreadPoolExecutor(self._config.num_recovery_threads_per_data_dir, "log-recovery") as pool:
            for number, _ in enumerate(pool.map(open_one, paths), 1):
                log.info("log recovered", directory=str(directory), number=number, of=len(paths))

    def _open(self, path: Path, tp: TopicPartition, clean: bool, recovery_point: int, start: int) -> PartitionLog:
        return PartitionLog.open(
            path,
            tp,
            self.log_config(TopicConfig.of(self._config)),
            recovery_point=recovery_point,
            log_start_offset=start,
            clean=clean,
            environment=self._environment,
        )

    def _add_loaded(self, tp: TopicPartition, opened: PartitionLog, topic_id: UUID | None, high_watermark: int) -> None:
        with self.table.changing:
            if (other := self.table.logs.get(tp)) is not None:
                raise FatalError(
                    f"Partition {tp} lies in two directories, {other.directory} and {opened.directory}: move one of "
                    "them away, best the one on the disk that failed recently"
                )
            self.table.logs[tp] = opened
            self.table.high_watermarks[tp] = high_watermark
            if topic_id is not None:
                self._topic_ids[tp] = topic_id

    def _add_future(self, tp: TopicPartition, opened: PartitionLog) -> None:
        """Add a future log; a second copy of the same log is deleted."""
        with self.table.changing:
            if tp not in self.table.futures:
                self.table.futures[tp] = opened
                return
        self._delete_log(opened)

    def close(self) -> None:
        """Flush and close every log, and mark each directory whose logs were all closed cleanly."""
        for directory in self.table.online_directories():
            with self.table.failing(directory):
                for opened in self.table.all_in(directory):
                    opened.close()
                self.table.write_recovery_points(directory)
                self.table.write_log_starts(directory)
                if self.table.is_online(directory):
                    marker = json.dumps({"version": 0, "brokerEpoch": -1}, separators=(",", ":"))
                    replace_file(directory / CLEAN_SHUTDOWN_FILE, marker.encode())

    # -- making logs --------------------------------------------------------------------------------------------

    def get_or_create(self, tp: TopicPartition, topic_id: UUID, config: TopicConfig) -> PartitionLog:
        """The partition's log with this configuration; a new one is created in the requested directory, or in the one
        with the fewest logs.
        """
        with self.table.changing:
            found = self.table.logs.get(tp)
            if found is None:
                return self._create(tp, topic_id, config)
            known = self._topic_ids.get(tp)
            if known is None and topic_id != ZERO_UUID:
                try:
                    self._set_topic_id(found, topic_id)
                except OSError as error:
                    raise self._failed(tp, found.directory.parent, error) from error
            elif known not in (None, topic_id) and topic_id != ZERO_UUID:
                raise KafkaError(
                    ErrorCode.INCONSISTENT_TOPIC_ID, f"The log of {tp} has topic id {known}, asked for was {topic_id}"
                )
            found.update_config(self.log_config(config))
            return found

    def _create(self, tp: TopicPartition, topic_id: UUID, config: TopicConfig) -> PartitionLog:
        if tp in self.table.lost or not self.table.online:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"The log directory of {tp} is offline")
        prefer_directory = self._preferred_directories.pop(tp, None)
        directory = prefer_directory if prefer_directory in self.table.online else self._emptiest()
        try:
            self.table.high_watermarks.pop(tp, None)
            created = self._make(directory / current_name(tp), tp, topic_id, self.log_config(config))
            created.producers.inherited = self._deleted_producers.take(tp)
            self.table.logs[tp] = created
            if topic_id != ZERO_UUID:
                self._topic_ids[tp] = topic_id
        except OSError as error:
            raise self._failed(tp, directory, error) from error
        log.info("log created", partition=str(tp), directory=str(directory))
        return created

    def _failed(self, tp: TopicPartition, directory: Path, error: OSError) -> KafkaError:
        self.table.fail(directory, error)
        return KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"The log of {tp} can't be made: {error}")

    def _make(self, path: Path, tp: TopicPartition, topic_id: UUID, config: LogConfig) -> PartitionLog:
        self.table.checkpoints[path.parent].forget(tp, lambda: self.table.all_in(path.parent))
        self.cleaned.begin(path.parent, tp)
        made = self._open(path, tp, clean=False, recovery_point=0, start=0)
        made.update_config(config)
        if topic_id != ZERO_UUID:
            self._write_topic_id(made, topic_id)
        return made

    def _emptiest(self) -> Path:
        """Return the directory with the fewest logs, whose names are compared as text: faster than paths."""
        directories = self.table.online_directories()
        if len(directories) == 1:
            return directories[0]
        logs = (*self.table.logs.values(), *self.table.futures.values())
        counts = Counter(os.path.dirname(str(opened.directory)) for opened in logs)
        return min(directories, key=lambda directory: counts[str(directory)])

    def _set_topic_id(self, opened: PartitionLog, topic_id: UUID) -> None:
        self._write_topic_id(opened, topic_id)
        self._topic_ids[opened.partition] = topic_id

    def _write_topic_id(self, opened: PartitionLog, topic_id: UUID) -> None:
        write_topic_id(opened.directory, topic_id)

        def settle() -> None:
            with self.table.failing(opened.directory.parent):
                make_topic_id_durable(opened.directory)

        self._background.once(f"topic id of {opened.partition}", settle)

    def _topic_id(self, tp: TopicPartition) -> UUID:
        return self._topic_ids.get(tp, ZERO_UUID)

    def reconfigure(self, config: BrokerConfig) -> None:
        """Apply new settings from now on; logs that are open have a configuration of their own."""
        self._config = config

    def log_config(self, config: TopicConfig) -> LogConfig:
        return LogConfig.of(config, self._config.producer_id_expiration_ms)

    def prefer_directory(self, tp: TopicPartition, directory: Path) -> None:
        """Remember the directory for the partition's log, in case this broker becomes a replica."""
        with self.table.changing:
            self._preferred_directories[tp] = directory
            if len(self._preferred_directories) > _PREFERRED_MAX:
                del self._preferred_directories[next(iter(self._preferred_directories))]

    def _cut_back(self, directory: Path, tp: TopicPartition, offset: int) -> None:
        """Lower the checkpoints, because a log in the directory is about to be truncated to the offset."""
        self.table.checkpoints[directory].lower_recovery_point(tp, offset)
        self.cleaned.lower(directory, tp, offset)

    # -- deleting them ------------------------------------------------------------------------------------------

    def delete(self, tp: TopicPartition) -> None:
        """Delete the log: renamed at once, its files removed after `file.delete.delay.ms`."""
        with self.table.changing:
            current = self.table.logs.pop(tp, None)
            if current is not None:
                self._deleted_producers.keep(tp, current.producers.entries)
            deleted = [opened for opened in (current, self.table.futures.pop(tp, None)) if opened]
            self._topic_ids.pop(tp, None)
            self.table.lost.discard(tp)
        for opened in deleted:
            self._delete_log(opened)

    def set_aside(self, tp: TopicPartition) -> None:
        """Rename the log of a partition that this broker no longer hosts. Its files stay until an operator deletes
        them."""
        with self.table.changing:
            stray, copy = self.table.logs.pop(tp, None), self.table.futures.pop(tp, None)
            self._topic_ids.pop(tp, None)
        if copy is not None:
            self._delete_log(copy)
        if stray is not None:
            parent = stray.directory.parent
            with self.table.failing(parent):
                stray.rename(parent / stray_name(tp, uuid4()))
                self.cleaned.forget(parent, tp)
                log.warning("stray log set aside", partition=str(tp), directory=str(stray.directory))
                delay_ms = stray.config.file_delete_delay_ms  # reads in progress end before
                self._background.once(f"close {tp}", stray.close, delay_ms=delay_ms)

    def _delete_log(self, opened: PartitionLog) -> None:
        parent = opened.directory.parent
        with self.table.failing(parent):
            opened.rename(parent / deletion_name(opened.partition, uuid4()))
            self.cleaned.forget(parent, opened.partition)
            log.info("log deleted", partition=str(opened.partition), directory=str(opened.directory))
            delay_ms = opened.config.file_delete_delay_ms
            self._background.once(f"delete {opened.partition}", opened.delete, delay_ms=delay_ms)

    def _retire(self, tp: TopicPartition, path: Path) -> bool:
        """Delete a log, not opened, that one in another directory has replaced."""
        with self.table.failing(path.parent):
            target = path.with_name(deletion_name(tp, uuid4()))
            path.rename(target)
            sync_directory(path.parent)
            self._delete_later(target)
        return self.table.is_online(path.parent)

    def _delete_later(self, path: Path) -> None:
        """Continue a deletion that the last stop interrupted."""

        def remove() -> None:
            for name in os.listdir(path):
                (path / name).unlink()
            path.rmdir()

        delay_ms = self.log_config(TopicConfig.of(self._config)).file_delete_delay_ms
        self._background.once(f"delete {path.name}", remove, delay_ms=delay_ms)

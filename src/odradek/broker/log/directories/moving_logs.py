"""Logs that are being moved to another directory of this broker. `log_moves` describes how a move survives a crash."""

from collections.abc import Callable
from pathlib import Path
from uuid import UUID, uuid4

from odradek.base.errors import ErrorCode, KafkaError
from odradek.base.logs import get_logger
from odradek.broker.log.core.config import LogConfig
from odradek.broker.log.directories import log_moves
from odradek.broker.log.directories.directory_table import DirectoryTable
from odradek.broker.log.directories.identity import read_topic_id
from odradek.broker.log.files.checkpoint import sync_directory
from odradek.broker.log.files.partition_log import PartitionLog
from odradek.format.log_names import current_name, future_name
from odradek.model.topology import TopicPartition

log = get_logger(__name__)

MakeLog = Callable[[Path, TopicPartition, UUID, LogConfig], PartitionLog]


class MovingLogs:
    def __init__(
        self,
        table: DirectoryTable,
        make: MakeLog,
        delete: Callable[[PartitionLog], None],
        topic_id: Callable[[TopicPartition], UUID],
    ) -> None:
        """`topic_id` returns ZERO_UUID for a log without one."""
        self._table = table
        self._make = make
        self._delete = delete
        self._topic_id = topic_id

    def begin_move(self, tp: TopicPartition, directory: Path) -> PartitionLog:
        """An empty or existing copy of the partition's log in the directory. KafkaError: the move is invalid."""
        with self._table.changing:
            source, future = self._table.logs.get(tp), self._table.futures.get(tp)
            if future is not None:
                return future
            # One that lies in an offline directory may be a copy of the same log.
            if source is None or not self._table.all_online:
                raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"{tp} can't move while a log directory is offline")
            topic_id = self._topic_id(tp)
            try:
                future = self._make(directory / future_name(tp, uuid4()), tp, topic_id, source.config)
            except OSError as error:
                self._table.fail(directory, error)
                raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"{tp} can't move to {directory}: {error}") from error
            self._table.futures[tp] = future
            source.is_copied = True
            log.info(
                "directory move started",
                partition=str(tp),
                source=str(source.directory.parent),
                target=str(directory),
            )
            return future

    def resumable(self, tp: TopicPartition) -> PartitionLog | None:
        """Return the copy that the last stop interrupted, unless it belongs to another topic of the same name."""
        with self._table.changing:
            source, future = self._table.logs.get(tp), self._table.futures.get(tp)
            if source is None or future is None:
                return None
            belongs = read_topic_id(future.directory) in (None, self._topic_id(tp))
            if belongs and future.directory.parent != source.directory.parent:
                future.update_config(source.config)
                source.is_copied = True
                return future
        self.cancel_move(tp)
        return None

    def cancel_move(self, tp: TopicPartition) -> None:
        """Cancel the move: the log stays in its directory."""
        with self._table.changing:
            future, source = self._table.futures.pop(tp, None), self._table.logs.get(tp)
            if source is not None:
                source.is_copied = False
        if future is not None:
            log.info("directory move cancelled", partition=str(tp), target=str(future.directory.parent))
            self._delete(future)

    def prepare_to_finish(self, tp: TopicPartition) -> None:
        """Do the slow part of finishing a move, while the writers continue."""
        with self._table.changing:
            source, future = self._table.logs.get(tp), self._table.futures.get(tp)
        if source is None or future is None:
            return
        directory = future.directory.parent
        with self._table.failing(directory), future.files.in_place:
            future.flush()
            self._table.checkpoints[directory].write_log_starts(lambda: self._table.all_in(directory))
            log_moves.mark_moved(future, source)

    def finish_move(self, tp: TopicPartition) -> PartitionLog:
        """The copy, which is whole, takes the log's place while their writers wait. KafkaError: it can't.

        `settle_move` is to be called for the log that was left, when no thread waits for it any more.
        """
        with self._table.changing:
            source, future = self._table.logs.get(tp), self._table.futures.get(tp)
            if source is None or future is None:
                raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"A directory of {tp} is offline, it can't move")
            directory = future.directory.parent
            try:
                future.take_place_of(source)
                self._table.checkpoints[directory].write_log_starts(lambda: self._table.all_in(directory))
                log_moves.mark_moved(future, source)
                log_moves.make_current(future, directory / current_name(tp))
            except OSError as error:
                self._table.fail(directory, error)
                raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"{tp} can't move to {directory}: {error}") from error
            self._table.logs[tp] = future
            del self._table.futures[tp]
        log.info(
            "directory move finished",
            partition=str(tp),
            source=str(source.directory.parent),
            target=str(directory),
        )
        self._delete(source)
        return future

    def settle_move(self, source: PartitionLog, moved: PartitionLog) -> None:
        """Remove the mark that decides between the two logs: the source is renamed, also on disk."""
        former = source.directory.parent
        with self._table.failing(former), moved.files.in_place:
            if self._table.is_online(former):
                sync_directory(former)
                log_moves.unmark_moved(moved.directory)

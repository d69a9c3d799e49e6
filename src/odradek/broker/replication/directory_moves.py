"""Replicas that move between the log directories of this broker, on request, while they are led and followed.

A few threads take turns with all moves, a step each, and end when there are none; requests only begin and cancel. What
a move does to the files, and why a crash at any point is survived, is described in `log.log_moves`.
"""

import heapq
import itertools
import threading
from pathlib import Path

from odradek.base.clock import Clock
from odradek.base.config.broker_config import BrokerConfig
from odradek.base.errors import ErrorCode, KafkaError
from odradek.base.logs import get_logger
from odradek.base.threads import SupervisedThread, start_worker
from odradek.broker.log.directories.log_dirs import LogDirs
from odradek.broker.log.files.partition_log import PartitionLog
from odradek.broker.replication.directory_move import DirectoryMove, MoveThrottle
from odradek.broker.replication.partition import Partition
from odradek.broker.replication.partition_table import PartitionTable
from odradek.broker.replication.replication_quota import UNLIMITED, ReplicationRate
from odradek.format.log_names import MAX_NAME, future_name
from odradek.model.topology import ZERO_UUID, TopicPartition

_RETRY_MS_MIN, _RETRY_MS_MAX = 1_000, 60_000
_STOP_S_MAX = 30.0

log = get_logger(__name__)


class DirectoryMoves:
    def __init__(self, replicas: PartitionTable, logs: LogDirs, config: BrokerConfig, clock: Clock) -> None:
        self._replicas = replicas
        self._logs = logs
        self._clock = clock
        window_ms = config.alter_log_dirs_replication_quota_window_size_seconds * 1000
        windows = config.alter_log_dirs_replication_quota_window_num
        self._throttle = MoveThrottle(ReplicationRate(window_ms, windows, clock))
        self._threads_max = _threads(config, logs)
        self._changed = threading.Condition()
        self._moves: dict[TopicPartition, DirectoryMove] = {}
        self._due: list[tuple[int, int, DirectoryMove]] = []  # a heap: when, then in turn
        self._numbers = itertools.count()
        self._threads: list[threading.Thread] = []
        self._stopping = False

    def set_rate(self, bytes_per_second: int | None) -> None:
        """Set the throttle of the dynamic broker configuration; None: no limit."""
        self._throttle.limit = UNLIMITED if bytes_per_second is None else bytes_per_second

    # ---- requests

    def move(self, tp: TopicPartition, path: str) -> ErrorCode:
        """Move the log to one of `log.dirs`, spelled as there. Its present directory cancels a move."""
        try:
            directory = self._usable_directory(tp, path)
            try:
                partition = self._replicas.find(tp)
            except KafkaError as error:
                if error.code is not ErrorCode.KAFKA_STORAGE_ERROR:
                    self._logs.prefer_directory(tp, directory)
                raise
            self._move(partition, directory)
        except KafkaError as error:
            log.warning("directory move refused", partition=str(tp), directory=path, error=str(error))
            is_elsewhere = error.code is ErrorCode.NOT_LEADER_OR_FOLLOWER
            return ErrorCode.REPLICA_NOT_AVAILABLE if is_elsewhere else error.code
        return ErrorCode.NONE

    def resume(self, partition: Partition) -> None:
        """The replica was just opened: continue a move that the last stop interrupted."""
        future = self._logs.moves.resumable(partition.topic_partition)
        if future is not None:
            log.info(
                "move resumed",
                partition=str(partition.topic_partition),
                target=str(future.directory.parent),
            )
            self._start(partition, future)

    def stop(self) -> None:
        """Stop the moves; they continue after the next start."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
            threads = list(self._threads)
        for thread in threads:
            thread.join(_STOP_S_MAX)

    def _usable_directory(self, tp: TopicPartition, path: str) -> Path:
        if len(future_name(tp, ZERO_UUID)) > MAX_NAME:
            raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, "The topic name is too long.")
        directory = next((known for known in self._logs.table.directories if str(known) == path), None)
        if directory is None:
            raise KafkaError(ErrorCode.LOG_DIR_NOT_FOUND, f"Log dir {path} is not found in the config.")
        if not self._logs.table.is_online(directory):
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"Log directory {path} is offline")
        return directory

    def _move(self, partition: Partition, directory: Path) -> None:
        tp = partition.topic_partition
        with partition.lock:
            if partition.gone is not None:
                raise KafkaError(partition.gone)
            future = self._logs.table.future(tp)
            if future is not None and future.directory.parent != directory:
                self._logs.moves.cancel_move(tp)
            if partition.log.directory.parent != directory:
                self._start(partition, self._logs.moves.begin_move(tp, directory))

    # ---- the threads

    def _start(self, partition: Partition, future: PartitionLog) -> None:
        tp = partition.topic_partition
        with self._changed:
            known = self._moves.get(tp)
            if self._stopping:
                return
            if known is None or known.future is not future:
                move = self._moves[tp] = DirectoryMove(partition, future, self._logs, self._throttle, self._clock)
                self._put(move, 0)
            if len(self._threads) < min(self._threads_max, len(self._moves)):
                try:
                    start_worker(self._threads, SupervisedThread(target=self._run, name="directory-move"))
                except RuntimeError:
                    log.exception("directory moves wait for a thread, which can't be started", partition=str(tp))

    def _put(self, move: DirectoryMove, pause_ms: int) -> None:
        heapq.heappush(self._due, (self._clock.monotonic_ms() + pause_ms, next(self._numbers), move))
        self._changed.notify()

    def _run(self) -> None:
        while (move := self._take()) is not None:
            pause_ms = self._step(move)
            with self._changed:
                if pause_ms is not None:
                    self._put(move, pause_ms)
                elif self._moves.get(move.tp) is move:
                    del self._moves[move.tp]
                    self._changed.notify_all()

    def _step(self, move: DirectoryMove) -> int | None:
        """Take a step; a failed step is repeated with increasing delays, because a corrupt batch stays corrupt."""
        try:
            pause_ms = move.step()
        except KafkaError as error:
            log.error("directory move failed, retrying", partition=str(move.tp), error=str(error))
        except Exception:
            log.exception("directory move failed, retrying", partition=str(move.tp))
        else:
            move.retry_ms = 0
            return pause_ms
        move.retry_ms = min(max(2 * move.retry_ms, _RETRY_MS_MIN), _RETRY_MS_MAX)
        return move.retry_ms

    def _take(self) -> DirectoryMove | None:
        """Take the next move in turn. None: no move is left for this thread."""
        with self._changed:
            while not self._stopping and (self._moves or self._due):
                wait_ms = self._due[0][0] - self._clock.monotonic_ms() if self._due else None
                if wait_ms is not None and wait_ms <= 0:
                    return heapq.heappop(self._due)[2]
                self._changed.wait(None if wait_ms is None else wait_ms / 1000)
            self._threads.remove(threading.current_thread())
            return None


def _threads(config: BrokerConfig, logs: LogDirs) -> int:
    """`num.replica.alter.log.dirs.threads`, or one thread for each directory."""
    configured = config.num_replica_alter_log_dirs_threads
    return configured if configured is not None and configured > 0 else len(logs.table.directories)

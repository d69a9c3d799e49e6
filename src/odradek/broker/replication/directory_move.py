"""One partition on its way to another directory of this broker, a step at a time. Driven by one thread at a time."""

from odradek.base.clock import Clock
from odradek.base.logs import get_logger
from odradek.broker.log.directories.log_dirs import LogDirs
from odradek.broker.log.directories.log_moves import LogCopy
from odradek.broker.log.files.partition_log import PartitionLog
from odradek.broker.replication.core.move_pace import Manner, Pace
from odradek.broker.replication.partition import Partition
from odradek.broker.replication.replication_quota import UNLIMITED, ReplicationRate

PIECE_BYTES = 1 << 20
_THROTTLED_MS = 100
_AGAIN_MS = 10
_HELD_MS_MAX = 50
_REST_SHARE = 4  # after a piece for which writers waited, they get a quarter of that time for themselves

log = get_logger(__name__)


class MoveThrottle:
    """`replica.alter.log.dirs.io.max.bytes.per.second`, for all moves together."""

    def __init__(self, rate: ReplicationRate) -> None:
        self.limit = UNLIMITED
        self._rate = rate

    @property
    def is_exceeded(self) -> bool:
        return self.limit != UNLIMITED and self._rate.per_second() > self.limit

    def record(self, size: int) -> None:
        self._rate.record(size)


class DirectoryMove:
    def __init__(
        self,
        partition: Partition,
        future: PartitionLog,
        logs: LogDirs,
        throttle: MoveThrottle,
        clock: Clock,
        *,
        piece_bytes: int = PIECE_BYTES,
        pace: Pace | None = None,
    ) -> None:
        self.tp = partition.topic_partition
        self.future = future
        self.retry_ms = 0  # how long it waited after the last failure; 0 after a success
        self._partition = partition
        self._logs = logs
        self._throttle = throttle
        self._clock = clock
        self._piece_bytes = piece_bytes
        self._pace = pace or Pace()
        self._copy = LogCopy(partition.log, future)
        self._is_prepared = False

    @property
    def is_over(self) -> bool:
        """True if it was cancelled, the replica has gone, or a directory has failed."""
        partition, copy = self._partition, self._copy
        return (
            partition.gone is not None
            or partition.log is not copy.source
            or self._logs.table.future(self.tp) is not copy.future
        )

    def step(self) -> int | None:
        """Copy a piece, or finish. Return the milliseconds until the next step; None after the last one.

        KafkaError when a disk fails.
        """
        if self.is_over:
            return None
        if not self._copy.is_prefix:
            self._copy.compare()
            self._pace.start_over()
            return 0
        if self._throttle.is_exceeded:
            self._pace.start_over()
            return _THROTTLED_MS
        manner = Manner.BESIDE if self._pace.is_in_lap else self._pace.next(self._copy.remaining_bytes())
        if manner is Manner.BESIDE:
            return 0 if self._copy_piece() else _AGAIN_MS
        return self._copy_held() if manner is Manner.HELD else self._finish()

    def _copy_piece(self) -> int:
        """A throttle is kept by small pieces: a large one would be more than it allows in a second."""
        copied = self._copy.copy(min(self._piece_bytes, max(self._throttle.limit, 1)))
        self._pace.copied(copied)
        self._throttle.record(copied)
        return copied

    def _copy_held(self) -> int | None:
        """A read ends with its segment: where those are small, more than one, or the writers would be faster still."""
        with self._partition.lock:
            if self.is_over:
                return None
            began_ms = now_ms = self._clock.monotonic_ms()
            left = self._piece_bytes
            while left > 0 and now_ms - began_ms < _HELD_MS_MAX and (copied := self._copy_piece()):
                left -= copied
                now_ms = self._clock.monotonic_ms()
        return (now_ms - began_ms) // _REST_SHARE

    def _finish(self) -> int | None:
        if not self._is_prepared:  # which takes time: decide again after it
            self._logs.moves.prepare_to_finish(self.tp)
            self._is_prepared = True
            return 0
        partition, source = self._partition, self._copy.source
        with partition.lock:
            if self.is_over:
                return None
            while self._copy_piece():
                pass
            if not self._copy.is_whole:
                return _AGAIN_MS
            partition.take_log(self._logs.moves.finish_move(self.tp))
        self._logs.moves.settle_move(source, self.future)
        self._logs.table.checkpoint_high_watermarks({self.tp: partition.high_watermark})
        return None

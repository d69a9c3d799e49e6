"""Replicas that move between directories: asked for, refused, cancelled, resumed; writers go on meanwhile."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from replica_stage import ORDERS, ORDERS_ID, ReplicaStage

from odradek.base.clock import SYSTEM_CLOCK
from odradek.base.errors import ErrorCode
from odradek.broker.log.files.partition_log import PartitionLog
from odradek.broker.replication.core.move_pace import Manner, Pace
from odradek.broker.replication.directory_move import DirectoryMove, MoveThrottle
from odradek.broker.replication.directory_moves import DirectoryMoves
from odradek.broker.replication.replication_quota import ReplicationRate
from odradek.model.metadata_image import MetadataImage, PartitionImage, TopicImage
from odradek.model.topology import TopicPartition
from odradek.protocol.record_batch import batches
from odradek.protocol.records import read_records
from waiting import eventually

PATIENCE_S = 60
PIECE = 500
ALONE = (0,)


class Disks:
    """A broker with three directories that leads a partition in the first."""

    def __init__(self, root: Path) -> None:
        self.a, self.b, self.c = (root / name for name in "abc")
        self.stage = ReplicaStage(self.a, self.b, self.c, segment_bytes="4000")
        self.moves = self.new_moves()
        assert self.stage.become(0, 0, ALONE, ALONE) is ErrorCode.NONE
        assert self.where == self.a

    def new_moves(self) -> DirectoryMoves:
        moves = DirectoryMoves(self.stage.replicas, self.stage.logs, self.stage.config, SYSTEM_CLOCK)
        self.stage.on_host = moves.resume
        return moves

    def restart(self) -> None:
        self.moves.stop()
        self.stage.logs.unlock()
        self.stage = ReplicaStage(self.a, self.b, self.c, segment_bytes="4000")
        self.moves = self.new_moves()

    @property
    def where(self) -> Path:
        return self.stage.partition.log.directory.parent

    def write(self, *values: str) -> None:
        (outcome,) = self.stage.produce(*values)
        assert not isinstance(outcome, Exception), outcome

    def values(self) -> list[str]:
        return values_of(self.stage.partition.log)

    def step_by_hand(self, directory: Path, throttle: MoveThrottle | None = None) -> DirectoryMove:
        future = self.stage.logs.moves.begin_move(ORDERS, directory)
        throttle = throttle or MoveThrottle(ReplicationRate(1000, 11, self.stage.clock))
        pace = Pace(finish_bytes=PIECE)
        partition, logs, clock = self.stage.partition, self.stage.logs, self.stage.clock
        return DirectoryMove(partition, future, logs, throttle, clock, piece_bytes=PIECE, pace=pace)


class AlwaysHeld(Pace):
    __slots__ = ()

    is_in_lap = False

    def next(self, remaining: int) -> Manner:
        return Manner.HELD


@pytest.fixture
def disks(tmp_path: Path) -> Iterator[Disks]:
    disks = Disks(tmp_path)
    yield disks
    disks.moves.stop()
    disks.stage.close()


def values_of(log: PartitionLog) -> list[str]:
    found: list[str] = []
    offset = log.log_start_offset
    while offset < log.log_end_offset:
        data = log.read(offset, 1 << 20, upper_bound=log.log_end_offset).records.read()
        for position, header in batches(data, partial_tail=True):
            found += [(record.value or b"").decode() for record in read_records(data, position, header)]
            offset = header.next_offset
    return found


def test_a_replica_moves_and_goes_on_there(disks: Disks) -> None:
    values = [str(number) for number in range(200)]
    for value in values:
        disks.write(value)
    assert disks.moves.move(ORDERS, str(disks.b)) is ErrorCode.NONE
    eventually(lambda: disks.where == disks.b)
    disks.write("more")
    assert disks.values() == [*values, "more"]
    eventually(lambda: disks.stage.logs.table.future(ORDERS) is None)
    assert disks.moves.move(ORDERS, str(disks.b)) is ErrorCode.NONE
    assert disks.stage.logs.table.future(ORDERS) is None, "it is there already"


def test_writers_go_on_meanwhile(disks: Disks) -> None:
    """There and back while a producer writes, in as many turns as it takes; each record is there once, in order."""
    written = [str(number) for number in range(1500)]

    def write_all() -> None:
        for value in written:
            disks.write(value)

    writer = threading.Thread(target=write_all)
    writer.start()
    for directory in (disks.b, disks.c, disks.a):
        assert disks.moves.move(ORDERS, str(directory)) is ErrorCode.NONE
        eventually(lambda d=directory: disks.where == d)  # type: ignore[misc]
    writer.join(PATIENCE_S)
    assert not writer.is_alive()
    assert disks.values() == written


def test_writers_that_outrun_the_copy_are_held_back(disks: Disks) -> None:
    """However much they write between two steps, the move ends."""
    number = 0

    def write_more_than_a_piece() -> None:
        nonlocal number
        size = disks.stage.partition.log.files.size_bytes
        while disks.stage.partition.log.files.size_bytes < size + 2 * PIECE:
            disks.write(str(number))
            number += 1

    for _ in range(5):
        write_more_than_a_piece()
    move = disks.step_by_hand(disks.b)
    steps = 0
    while move.step() is not None:
        write_more_than_a_piece()
        steps += 1
        assert steps < 200
    assert disks.where == disks.b
    assert disks.values() == [str(n) for n in range(number)]


def test_a_held_piece_goes_beyond_its_segment(disks: Disks) -> None:
    """Writers of small segments would else write more in their rest than was copied while they waited."""
    while len(disks.stage.partition.log.segments) < 12:
        disks.write("something")
    future = disks.stage.logs.moves.begin_move(ORDERS, disks.b)
    throttle = MoveThrottle(ReplicationRate(1000, 11, disks.stage.clock))
    partition, logs, clock = disks.stage.partition, disks.stage.logs, disks.stage.clock
    move = DirectoryMove(partition, future, logs, throttle, clock, piece_bytes=12_000, pace=AlwaysHeld())
    while move._copy.is_prefix is False:
        move.step()
    move.step()
    assert 12_000 <= future.files.size_bytes < 17_000


def test_a_throttle_is_kept(disks: Disks) -> None:
    for number in range(100):
        disks.write(str(number))
    throttle = MoveThrottle(ReplicationRate(1000, 11, disks.stage.clock))
    throttle.limit = 1000
    move = disks.step_by_hand(disks.b, throttle)
    began_ms, steps = disks.stage.clock.monotonic_ms(), 0
    while (pause_ms := move.step()) is not None:
        disks.stage.clock.advance(pause_ms)
        steps += 1
        assert steps < 10_000
    allowed_bytes = throttle.limit * (disks.stage.clock.monotonic_ms() - began_ms) / 1000
    assert allowed_bytes >= disks.stage.partition.log.files.size_bytes / 2
    assert disks.values() == [str(number) for number in range(100)]


def test_what_can_not_be_is_refused_as_kafka_does(disks: Disks) -> None:
    elsewhere = TopicPartition("elsewhere", 0)
    move = disks.moves.move
    assert move(ORDERS, str(disks.a / "nowhere")) is ErrorCode.LOG_DIR_NOT_FOUND
    assert move(TopicPartition("t" * 240, 0), str(disks.b)) is ErrorCode.INVALID_TOPIC_EXCEPTION
    assert move(elsewhere, str(disks.b)) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    disks.stage.logs.table.fail(disks.c, OSError(5, "Input/output error"))
    assert move(ORDERS, str(disks.c)) is ErrorCode.KAFKA_STORAGE_ERROR
    assert move(ORDERS, str(disks.b)) is ErrorCode.KAFKA_STORAGE_ERROR, "its copy may be in the failed one"
    assert move(ORDERS, str(disks.a)) is ErrorCode.NONE
    disks.stage.roles.take_offline([ORDERS])
    assert move(ORDERS, str(disks.a)) is ErrorCode.KAFKA_STORAGE_ERROR


def test_a_replica_that_is_still_to_come_is_made_where_it_was_asked_for(disks: Disks) -> None:
    disks.stage.roles.stop([ORDERS], delete=True)
    assert disks.moves.move(ORDERS, str(disks.c)) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    known = TopicImage("orders", ORDERS_ID, {0: PartitionImage(1, 0, (1,), (1,))})
    disks.stage.metadata.image = MetadataImage(topics={"orders": known})
    assert disks.moves.move(ORDERS, str(disks.b)) is ErrorCode.REPLICA_NOT_AVAILABLE
    assert disks.stage.become(0, 1, ALONE, ALONE) is ErrorCode.NONE
    assert disks.where == disks.b


def test_a_move_is_cancelled_or_goes_elsewhere(disks: Disks) -> None:
    disks.moves.stop()  # so that nobody copies
    for number in range(50):
        disks.write(str(number))
    logs = disks.stage.logs
    assert disks.moves.move(ORDERS, str(disks.b)) is ErrorCode.NONE
    assert [*logs.table.futures_in(disks.b)] == [ORDERS]
    assert disks.moves.move(ORDERS, str(disks.c)) is ErrorCode.NONE
    assert ([*logs.table.futures_in(disks.b)], [*logs.table.futures_in(disks.c)]) == ([], [ORDERS])
    assert disks.moves.move(ORDERS, str(disks.a)) is ErrorCode.NONE
    assert logs.table.future(ORDERS) is None
    disks.write("more")
    assert disks.where == disks.a


def test_a_move_goes_on_after_a_restart(disks: Disks) -> None:
    for number in range(50):
        disks.write(str(number))
    disks.stage.logs.moves.begin_move(ORDERS, disks.b)
    disks.restart()
    assert disks.stage.become(0, 1, ALONE, ALONE) is ErrorCode.NONE
    eventually(lambda: disks.where == disks.b)
    assert disks.values() == [str(number) for number in range(50)]


def test_a_deleted_replica_moves_no_more(disks: Disks) -> None:
    disks.moves.stop()  # so that nobody copies
    disks.write("a")
    assert disks.moves.move(ORDERS, str(disks.b)) is ErrorCode.NONE
    disks.stage.roles.stop([ORDERS], delete=True)
    assert disks.stage.logs.table.future(ORDERS) is None
    assert disks.stage.become(0, 1, ALONE, ALONE) is ErrorCode.NONE
    assert disks.values() == []

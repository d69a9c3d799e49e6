"""Role changes by requests of the controller, and requests that a follower accepts."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from errno import EMFILE
from pathlib import Path
from uuid import UUID

import pytest
from replica_stage import ORDERS, ORDERS_ID, ReplicaStage, batch

from odradek.base.errors import ErrorCode, KafkaError
from odradek.broker.log.core.append_result import AppendResult
from odradek.broker.replication.leader.fetch_reader import EpochEnd
from odradek.broker.replication.partition import Partition
from odradek.format.log_names import LogKind, LogName, parse
from odradek.model.metadata_image import PartitionImage, TopicImage


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[ReplicaStage]:
    stage = ReplicaStage(tmp_path / "0")
    yield stage
    stage.close()


def refusal(door: object, *arguments: object, **named: object) -> ErrorCode:
    assert callable(door)
    with pytest.raises(KafkaError) as refused:
        door(*arguments, **named)
    return refused.value.code


def records_of(leader: ReplicaStage, offset: int, epoch: int, *, replica: int = 1) -> memoryview:
    (outcome,) = leader.fetch(offset, replica=replica, epoch=epoch)
    assert outcome.found is not None
    assert outcome.found.records is not None
    return memoryview(outcome.found.records.read())


def copy(leader: ReplicaStage, follower: Partition, epoch: int) -> None:
    """One fetch of everything that is missing."""
    records = records_of(leader, follower.log.log_end_offset, epoch)
    watermark = leader.partition.high_watermark
    follower.append_fetched(records, leader_epoch=epoch, high_watermark=watermark, log_start_offset=0)


# ---- orders


def test_only_a_newer_leader_epoch_changes_anything(stage: ReplicaStage) -> None:
    """KAFKA-13790: the same order again must not reset what the leader knows of its followers."""
    stage.become(0, epoch=5)
    stage.fetch(0, replica=1, epoch=5)
    follower = stage.partition.followers.by_id[1]
    assert stage.become(0, epoch=5) is ErrorCode.STALE_CONTROLLER_EPOCH
    assert stage.become(1, epoch=4) is ErrorCode.STALE_CONTROLLER_EPOCH
    assert stage.partition.is_leader
    assert stage.partition.followers.by_id[1] is follower
    assert follower.log_end_offset == 0


def test_a_role_is_taken_though_its_fetcher_can_not_be_started_now(
    stage: ReplicaStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """KAFKA-9307: the same order is refused when it is repeated. There are too many open files, or threads."""

    def fail(orders: object) -> None:
        raise OSError(EMFILE, "Too many open files")

    stage.become(0, epoch=1)
    with monkeypatch.context() as full:
        full.setattr(stage.copies, "follow", fail)
        with pytest.raises(OSError, match="Too many open files"):
            stage.become(1, epoch=2)
    assert stage.listener.told == [("lead", 1), ("resign", 2)]
    assert stage.become(1, epoch=2) is ErrorCode.STALE_CONTROLLER_EPOCH
    stage.roles.check_replicas()
    assert stage.copies.following[ORDERS].leader_epoch == 2


def test_an_effect_that_fails_does_not_keep_the_others_from_being_carried_out(
    stage: ReplicaStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(tp: object, leader_epoch: int) -> None:
        raise RuntimeError("can't start new thread")

    stage.become(0, epoch=1)
    monkeypatch.setattr(stage.listener, "resign", fail)
    with pytest.raises(RuntimeError, match="can't start new thread"):
        stage.roles.stop([ORDERS], delete=True)
    assert stage.listener.told == [("lead", 1), ("forget", 0)]


def test_orders_of_a_former_controller_and_of_another_topic_are_refused(stage: ReplicaStage) -> None:
    stage.controller_epoch = 3
    stage.become(0, epoch=1)
    stage.controller_epoch = 2
    assert refusal(stage.become, 1, epoch=2) is ErrorCode.STALE_CONTROLLER_EPOCH
    assert refusal(stage.roles.stop, [ORDERS], delete=True, controller_epoch=2) is ErrorCode.STALE_CONTROLLER_EPOCH
    stage.controller_epoch = 3
    other = replace(stage.directive(1, 2, (1,)), topic_id=UUID(int=8))
    assert stage.obey(other) is ErrorCode.INCONSISTENT_TOPIC_ID
    assert stage.become(1, 2, (1,), replicas=(1, 2)) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert stage.partition.is_leader


def test_a_delayed_stop_is_fenced_by_the_leader_epoch(stage: ReplicaStage) -> None:
    """KIP-570."""
    stage.become(0, epoch=5)
    old, new = {ORDERS: 4}, {ORDERS: 5}
    assert stage.roles.stop(old, delete=True, leader_epochs=old) == {ORDERS: ErrorCode.FENCED_LEADER_EPOCH}
    assert stage.partition.is_leader
    assert stage.roles.stop(new, delete=True, leader_epochs=new) == {ORDERS: ErrorCode.NONE}
    assert refusal(stage.replicas.find, ORDERS) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_followers_are_followed_and_leaders_are_not(stage: ReplicaStage) -> None:
    stage.become(1, epoch=1)
    assert stage.copies.following[ORDERS].leader_epoch == 1
    stage.become(0, epoch=2)
    assert ORDERS not in stage.copies.following
    stage.become(2, epoch=3)
    assert stage.copies.following[ORDERS].leader_id == 2
    stage.roles.stop([ORDERS], delete=False)
    assert ORDERS not in stage.copies.following
    assert stage.listener.told == [("lead", 2), ("resign", 3)]


def test_coordinators_and_waiting_requests_are_called_without_the_lock_of_the_roles(
    stage: ReplicaStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    held: list[tuple[str, bool]] = []

    def record(name: str) -> Callable[..., None]:
        return lambda *_, **__: held.append((name, stage.roles._roles.locked()))

    for name in ("lead", "resign", "forget"):
        monkeypatch.setattr(stage.listener, name, record(name))
    monkeypatch.setattr(stage.replicas, "wake", record("wake"))
    stage.become(0, epoch=1)
    stage.become(1, epoch=2)
    stage.roles.stop([ORDERS], delete=True)
    assert {name for name, _ in held} == {"lead", "resign", "forget", "wake"}
    assert [name for name, is_held in held if is_held] == []


def test_a_leader_that_nobody_knows_yet_is_followed_when_it_is_known(stage: ReplicaStage) -> None:
    stage.become(0, epoch=1)
    stage.live(0, 2)
    assert stage.become(1, epoch=2) is ErrorCode.NONE
    assert not stage.partition.is_leader
    assert ORDERS not in stage.copies.following
    stage.live(0, 1, 2)
    stage.roles.check_replicas()
    assert stage.copies.following[ORDERS].leader_id == 1


def known_on(stage: ReplicaStage, *replicas: int) -> None:
    image = TopicImage("orders", ORDERS_ID, {0: PartitionImage(replicas[0], 6, replicas, replicas)})
    stage.metadata.image = replace(stage.metadata.image, topics={"orders": image})


@pytest.mark.parametrize("leader", [0, 1])
def test_a_replica_that_was_moved_away_is_set_aside(stage: ReplicaStage, tmp_path: Path, leader: int) -> None:
    stage.become(leader, epoch=5)
    known_on(stage, 1, 2)
    stage.roles.set_strays_aside()
    assert refusal(stage.replicas.find, ORDERS) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert ORDERS not in stage.copies.following
    led = [("lead", 5), ("resign", 5)] if leader == 0 else []
    assert stage.listener.told == [*led, ("forget", 0)]
    (left,) = [path.name for path in (tmp_path / "0").iterdir() if path.is_dir()]
    assert parse(left) == LogName(LogKind.STRAY, ORDERS)
    known_on(stage, 0, 1)
    assert stage.become(0, epoch=7) is ErrorCode.NONE, "it may come back, with an empty log"
    assert stage.partition.log.log_end_offset == 0


def test_a_replica_stays_where_it_belongs_or_nothing_is_known_of_it(stage: ReplicaStage) -> None:
    stage.become(0, epoch=5)
    stage.roles.set_strays_aside()
    assert stage.partition.is_leader, "its topic is not known"
    known_on(stage, 1, 0)
    stage.roles.set_strays_aside()
    assert stage.partition.is_leader


# ---- the doors of a follower


def test_the_doors_are_open_in_one_epoch_only(stage: ReplicaStage) -> None:
    stage.become(1, epoch=1)
    doors = stage.partition
    fetched = {"high_watermark": 0, "log_start_offset": 0}
    assert refusal(doors.append_fetched, batch("a"), leader_epoch=0, **fetched) is ErrorCode.FENCED_LEADER_EPOCH
    assert refusal(doors.truncate_to, 0, leader_epoch=2) is ErrorCode.FENCED_LEADER_EPOCH
    doors.append_fetched(batch("a"), leader_epoch=1, **fetched)
    stage.become(0, epoch=2)
    assert refusal(doors.append_fetched, batch("b"), leader_epoch=2, **fetched) is ErrorCode.FENCED_LEADER_EPOCH
    assert refusal(doors.start_over_at, 9, leader_epoch=1) is ErrorCode.FENCED_LEADER_EPOCH
    stage.roles.stop([ORDERS], delete=True)
    assert refusal(doors.truncate_to, 0, leader_epoch=2) is ErrorCode.FENCED_LEADER_EPOCH
    assert doors.log.log_end_offset == 1


def test_a_followers_watermark_follows_the_leaders_and_never_its_own_log(stage: ReplicaStage) -> None:
    stage.become(1, epoch=1)
    follower = stage.partition
    follower.append_fetched(batch("a", "b"), leader_epoch=1, high_watermark=9, log_start_offset=0)
    assert follower.high_watermark == 2, "not more than it has"
    follower.append_fetched(memoryview(b""), leader_epoch=1, high_watermark=1, log_start_offset=1)
    assert follower.high_watermark == 2, "what was committed stays so"
    assert follower.log.log_start_offset == 1
    follower.truncate_to(1, leader_epoch=1)
    assert follower.high_watermark == follower.log.log_end_offset == 1


def test_an_empty_log_starts_with_the_batch_that_its_start_lies_in(stage: ReplicaStage) -> None:
    stage.become(1, epoch=1)
    follower = stage.partition
    follower.start_over_at(1, leader_epoch=1)
    follower.append_fetched(batch("a", "b", "c"), leader_epoch=1, high_watermark=3, log_start_offset=1)
    assert (follower.log.log_start_offset, follower.log.log_end_offset, follower.high_watermark) == (1, 3, 3)


# ---- stories of two replicas


@pytest.fixture
def other(tmp_path: Path) -> Iterator[ReplicaStage]:
    other = ReplicaStage(tmp_path / "1", broker_id=1)
    yield other
    other.close()


def both(stages: tuple[ReplicaStage, ReplicaStage], leader: int, epoch: int, isr: tuple[int, ...] = (0, 1)) -> None:
    for stage in stages:
        stage.become(leader, epoch, isr, replicas=(0, 1))


def test_a_follower_behind_in_watermark_loses_nothing_when_it_becomes_leader(
    stage: ReplicaStage, other: ReplicaStage
) -> None:
    """KIP-101: it has the record, but has not heard that it is committed; nobody may truncate to its watermark."""
    both((stage, other), leader=0, epoch=1)
    answered = stage.produce("a")
    copy(stage, other.partition, epoch=1)
    stage.fetch(1, replica=1, epoch=1)
    assert isinstance(answered[0], AppendResult)
    assert other.partition.high_watermark == 0
    both((stage, other), leader=1, epoch=2)
    assert other.partition.log.log_end_offset == 1
    (outcome,) = other.fetch(1, replica=0, epoch=2, last_epoch=1)
    assert outcome.diverging is None
    assert outcome.error is ErrorCode.NONE
    assert other.partition.high_watermark == 1
    assert stage.partition.high_watermark == 1, "the watermark of the former leader stays"


def test_what_only_the_old_leader_has_diverges_at_the_epochs_end(stage: ReplicaStage, other: ReplicaStage) -> None:
    both((stage, other), leader=0, epoch=1)
    stage.produce("a", acks=1)
    copy(stage, other.partition, epoch=1)
    stage.produce("only here", acks=1)
    both((stage, other), leader=1, epoch=2, isr=(1,))
    other.produce("b", acks=1)
    (outcome,) = other.fetch(2, replica=0, epoch=2, last_epoch=1)
    assert outcome.diverging == EpochEnd(1, 1)
    assert other.partition.followers.by_id[0].log_end_offset == -1, "a fetch that diverges says nothing of the log"
    stage.partition.truncate_to(1, leader_epoch=2)
    stage.partition.append_fetched(
        records_of(other, 1, 2, replica=0), leader_epoch=2, high_watermark=2, log_start_offset=0
    )
    logs = [s.partition.log for s in (stage, other)]
    assert logs[0].epochs.entries == logs[1].epochs.entries
    contents = [log.read(0, 1_000, upper_bound=2).records.read() for log in logs]
    assert contents[0] == contents[1]

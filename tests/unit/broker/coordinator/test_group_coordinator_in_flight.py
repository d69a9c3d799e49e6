"""The coordinator over a log that takes its time: what is answered when, on which thread, in which order."""

import threading
from collections.abc import Callable, Iterator

import pytest
from slow_stage import KEPT_IN, ORDERS, WAIT_S, Stage

from odradek.base.errors import ErrorCode, KafkaError
from odradek.broker.coordinator.groups.core.group import GroupState
from odradek.broker.coordinator.groups.core.group_records import OffsetKey, encode_key
from odradek.broker.coordinator.groups.group_coordinator import GroupCoordinator
from odradek.broker.coordinator.groups.group_entry import GroupEntry
from odradek.broker.coordinator.groups.group_offsets import UNSTABLE

DAY_MS = 24 * 3_600 * 1_000


@pytest.fixture
def stage() -> Iterator[Stage]:
    stage = Stage()
    stage.lead(0)
    yield stage
    stage.groups.stop()


def delete_group(stage: Stage) -> ErrorCode:
    (error,) = stage.delete("g")
    return error


def delete_offset(stage: Stage) -> ErrorCode:
    return refusal(lambda: stage.groups.offsets.delete("g", [ORDERS], lambda errors: None))


def refusal(ask: Callable[[], object]) -> ErrorCode:
    with pytest.raises(KafkaError) as error:
        ask()
    return error.value.code


# ---- commits


def test_a_position_is_known_when_it_is_replicated(stage: Stage) -> None:
    answers = stage.commit("g", 1)
    assert answers == []
    assert stage.committed("g") is None
    assert stage.groups.offsets.committed("g", [ORDERS], stable=True)[ORDERS] is UNSTABLE
    stage.log.settle()
    assert answers == [ErrorCode.NONE]
    assert stage.committed("g") == 1
    assert stage.groups.offsets.committed("g", [ORDERS], stable=True)[ORDERS] is not UNSTABLE
    stage.commit("g", 2)
    assert stage.committed("g") == 1


def test_positions_follow_the_order_of_the_log(stage: Stage) -> None:
    first, second = stage.commit("g", 1), stage.commit("g", 2)
    stage.log.settle(index=1)
    assert (first, second, stage.committed("g")) == ([], [], None), "the second waits for the first"
    stage.log.settle()
    assert (first, second, stage.committed("g")) == ([ErrorCode.NONE], [ErrorCode.NONE], 2)


@pytest.mark.parametrize(
    ("refused", "told"),
    [
        (ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_COORDINATOR),
        (ErrorCode.REQUEST_TIMED_OUT, ErrorCode.REQUEST_TIMED_OUT),
        (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.INVALID_COMMIT_OFFSET_SIZE),
    ],
)
def test_a_position_that_is_not_replicated_is_not_known(stage: Stage, refused: ErrorCode, told: ErrorCode) -> None:
    stage.commit("g", 1)
    answers = stage.commit("g", 2)
    stage.log.settle()
    stage.log.settle(refused)
    assert (answers, stage.committed("g")) == ([told], 1)


def test_a_record_that_cannot_be_made_holds_nobody_up(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*args: object) -> None:
        raise ValueError("by the test")

    with monkeypatch.context() as patched:
        patched.setattr(stage.log, "append", fails)
        assert stage.commit("g", 1) == [ErrorCode.UNKNOWN_SERVER_ERROR]
    answers = stage.commit("g", 2)
    stage.log.settle()
    assert answers == [ErrorCode.NONE]


def test_an_append_may_finish_what_other_groups_wait_for(stage: Stage) -> None:
    """On the same thread, inside of the append, as the move of a high watermark does: nobody may wait for a lock."""
    answers = [stage.commit(f"g{number}", number) for number in range(5)]
    more = stage.commit("g0", 7)
    stage.log.sweeps = stage.log.at_once = True
    last = stage.commit("g0", 9)
    assert answers == [[ErrorCode.NONE]] * 5
    assert (more, last, stage.committed("g0"), stage.committed("g4")) == ([ErrorCode.NONE], [ErrorCode.NONE], 9, 4)


def test_two_threads_whose_appends_finish_each_others_records(stage: Stage) -> None:
    stage.log.sweeps = True
    both = threading.Barrier(2)
    answers: list[list[ErrorCode]] = []

    def commits(group_id: str) -> None:
        both.wait(WAIT_S)
        answers.extend([stage.commit(group_id, offset) for offset in range(200)])

    threads = [threading.Thread(target=commits, args=(group_id,), daemon=True) for group_id in ("a", "b")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(WAIT_S)
        assert not thread.is_alive(), "each waits for the other's lock"
    stage.log.at_once = True
    stage.commit("c", 1)
    assert answers == [[ErrorCode.NONE]] * 400
    assert (stage.committed("a"), stage.committed("b")) == (199, 199)


# ---- groups


def test_an_assignment_is_handed_out_by_whoever_learns_that_it_is_replicated(stage: Stage) -> None:
    joined = stage.join("g", "m")
    stage.passes(3_000)
    assert joined[0].error is ErrorCode.NONE
    synced = stage.sync("g", "m", 1)
    assert (synced, stage.groups.describe("g").state) == ([], "CompletingRebalance")
    replicating = threading.Thread(target=stage.log.settle)
    replicating.start()
    replicating.join(WAIT_S)
    assert [(answer.error, answer.assignment) for answer in synced] == [(ErrorCode.NONE, b"all of it")]
    assert stage.groups.describe("g").state == "Stable"
    assert stage.groups.heartbeat("g", "m", None, 1) is ErrorCode.NONE


def test_an_assignment_that_is_not_replicated_in_time_is_asked_for_again(stage: Stage) -> None:
    stage.join("g", "m")
    stage.passes(3_000)
    synced = stage.sync("g", "m", 1)
    stage.log.settle(ErrorCode.REQUEST_TIMED_OUT)
    assert [answer.error for answer in synced] == [ErrorCode.REBALANCE_IN_PROGRESS]
    assert stage.groups.describe("g").state == "PreparingRebalance"


def test_a_group_is_deleted_with_what_is_on_its_way(stage: Stage) -> None:
    stage.commit("g", 1)
    deleted = stage.delete("g")
    assert deleted == []
    assert [key for key, value in stage.log.written[-1] if value is None] == [encode_key(OffsetKey("g", ORDERS))]
    stage.log.settle()
    stage.log.settle()
    assert deleted == [ErrorCode.NONE]
    assert stage.groups.list_groups() == []


def test_a_deleted_topic_takes_along_what_is_on_its_way(stage: Stage) -> None:
    stage.commit("g", 1)
    stage.groups.forget_topic("orders")
    stage.log.settle()
    stage.log.settle()
    assert stage.groups.list_groups() == []


def test_a_member_that_joins_while_its_group_is_deleted_keeps_it(stage: Stage) -> None:
    stage.commit("g", 1)
    stage.log.settle()
    deleted = stage.delete("g")
    joined = stage.join("g", "m")
    stage.log.settle()
    assert deleted == [ErrorCode.NONE]
    stage.passes(3_000)
    assert joined[0].error is ErrorCode.NONE
    assert stage.committed("g") is None


def test_a_deletion_that_is_not_replicated_leaves_everything(stage: Stage) -> None:
    stage.commit("g", 1)
    stage.log.settle()
    deleted = stage.delete("g")
    stage.log.settle(ErrorCode.NOT_ENOUGH_REPLICAS)
    assert (deleted, stage.committed("g")) == ([ErrorCode.COORDINATOR_NOT_AVAILABLE], 1)


# ---- leaderships


def test_the_coordinator_goes_in_the_middle_of_everything(stage: Stage) -> None:
    joined = stage.join("joins", "m")
    synced_in = stage.join("syncs", "m")
    stage.passes(3_000)
    assert synced_in[0].error is ErrorCode.NONE
    assert joined[0].error is ErrorCode.NONE
    joining = stage.join("joins", "n")
    syncing = stage.sync("syncs", "m", 1)
    committing = stage.commit("commits", 1)
    stage.resign(1)
    stage.settle_tenures()
    assert [answer.error for answer in joining] == [ErrorCode.NOT_COORDINATOR]
    assert [answer.error for answer in syncing] == [ErrorCode.NOT_COORDINATOR]
    assert committing == [], "it is not known yet what became of it"
    while stage.log.waiting:
        stage.log.settle(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    assert committing == [ErrorCode.NOT_COORDINATOR]
    assert len(syncing) == 1
    assert refusal(lambda: stage.commit("commits", 2)) is ErrorCode.NOT_COORDINATOR
    stage.passes(120_000)
    assert (len(joining), len(syncing)) == (1, 1)


def test_news_of_an_epoch_that_is_over_changes_nothing(stage: Stage) -> None:
    stage.log.at_once = True
    stage.lead(5)
    stage.commit("g", 1)
    stage.resign(4)
    assert stage.committed("g") == 1
    stage.resign(6)
    stage.lead(5)
    assert refusal(lambda: stage.committed("g")) is ErrorCode.NOT_COORDINATOR
    stage.lead(7)
    stage.settle_tenures()
    assert stage.committed("g") == 1


def test_who_leads_on_in_a_later_epoch_keeps_those_who_wait(stage: Stage) -> None:
    stage.log.at_once = True
    stage.commit("g", 1)
    joined = stage.join("g", "m")
    stage.lead(1)
    stage.settle_tenures()
    assert joined == []
    stage.passes(3_000)
    assert [answer.error for answer in joined] == [ErrorCode.NONE]


def test_a_replay_that_ends_after_its_tenure_is_thrown_away(stage: Stage) -> None:
    stage.log.at_once = True
    stage.commit("g", 1)
    stage.resign(1)
    stage.settle_tenures()
    reading, go_on = threading.Event(), threading.Event()

    def pause() -> None:
        reading.set()
        go_on.wait(WAIT_S)

    stage.log.before_replay = pause
    stage.lead(2)
    assert reading.wait(WAIT_S)
    assert refusal(lambda: stage.commit("g", 2)) is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert stage.groups.heartbeat("g", "m", None, 1) is ErrorCode.NONE
    stage.resign(3)
    go_on.set()
    stage.settle_tenures()
    assert refusal(lambda: stage.committed("g")) is ErrorCode.NOT_COORDINATOR
    stage.lead(4)
    stage.settle_tenures()
    assert stage.committed("g") == 1


def test_a_partition_that_cannot_be_read_is_nobodys(stage: Stage) -> None:
    stage.log.at_once = True
    stage.commit("g", 1)
    stage.resign(0)

    def fails() -> None:
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE)

    stage.log.before_replay = fails
    stage.lead(1)
    stage.settle_tenures()
    assert refusal(lambda: stage.committed("g")) is ErrorCode.NOT_COORDINATOR
    stage.log.before_replay = int
    stage.lead(2)
    stage.settle_tenures()
    assert stage.committed("g") == 1


def test_a_position_that_is_on_its_way_does_not_expire(stage: Stage) -> None:
    """Nor does the one before it: its tombstone would be behind the new position."""
    stage.log.at_once = True
    stage.commit("g", 1)
    stage.clock.advance(8 * DAY_MS)
    stage.log.at_once = False
    answers = stage.commit("g", 2)
    stage.groups.expire_offsets()
    while stage.log.waiting:
        stage.log.settle()
    assert (answers, stage.committed("g")) == ([ErrorCode.NONE], 2)


@pytest.mark.parametrize(
    "forget",
    [GroupCoordinator.expire_offsets, lambda groups: groups.forget_topic(ORDERS.topic)],
    ids=("expiry", "deleted topic"),
)
def test_a_group_that_came_back_loses_nothing_to_what_was_known_before(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, forget: Callable[[GroupCoordinator], None]
) -> None:
    """The partition was another broker's between the choice of groups and the turn at this one."""
    stage.log.at_once = True
    stage.commit("g", 1)
    stage.clock.advance(8 * DAY_MS)
    groups = stage.groups._table.all()

    def meanwhile() -> list[GroupEntry]:
        begin_again(stage, 1)
        stage.commit("g", 2)
        return groups

    monkeypatch.setattr(stage.groups._table, "all", meanwhile)
    forget(stage.groups)
    begin_again(stage, 3)
    assert stage.committed("g") == 2


def begin_again(stage: Stage, epoch: int) -> None:
    stage.resign(epoch)
    stage.lead(epoch + 1)
    stage.settle_tenures()


@pytest.mark.parametrize("request_", [delete_group, delete_offset])
def test_a_group_that_is_given_up_meanwhile_is_elsewhere(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, request_: Callable[[Stage], ErrorCode]
) -> None:
    stage.log.at_once = True
    stage.commit("g", 1)
    table = stage.groups._table.states
    find = table.find

    def find_and_resign(group_id: str) -> GroupEntry | None:
        found = find(group_id)
        stage.resign(1)
        stage.settle_tenures()
        return found

    monkeypatch.setattr(table, "find", find_and_resign)
    assert request_(stage) is ErrorCode.NOT_COORDINATOR


def test_a_topic_that_is_made_anew_has_its_own_epochs(stage: Stage) -> None:
    """An operator deletes __consumer_offsets, whose leaders have changed. It is made anew by the next client."""
    stage.log.at_once = True
    stage.lead(7)
    stage.commit("g", 1)
    stage.resign(7)
    stage.groups.forget(KEPT_IN)
    stage.log.written.clear()
    stage.lead(0)
    stage.settle_tenures()
    assert stage.committed("g") is None
    assert stage.commit("g", 2) == [ErrorCode.NONE]


def test_a_partition_that_is_removed_while_the_broker_stops_is_nothing(stage: Stage) -> None:
    stage.groups.stop()
    stage.groups.forget(KEPT_IN)


def test_a_time_that_is_reached_after_the_group_is_given_up_changes_nothing(stage: Stage) -> None:
    stage.join("g", "m")
    (held,) = stage.groups._table.all()
    stage.resign(1)
    stage.settle_tenures()
    assert held.group.state is GroupState.DEAD
    timer = held.timer
    assert timer is not None
    stage.clock.advance(60_000)
    timer.expire()
    assert held.group.state is GroupState.DEAD


def test_a_time_that_is_reached_while_the_group_is_given_up_changes_nothing(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.join("g", "m")
    (held,) = stage.groups._table.all()
    timer, turn = held.timer, stage.groups._writes.turn
    assert timer is not None

    def turn_after_the_resignation(entry: GroupEntry, action: Callable[[], object]) -> object:
        monkeypatch.undo()
        stage.resign(1)
        stage.settle_tenures()
        return turn(entry, action)

    monkeypatch.setattr(stage.groups._writes, "turn", turn_after_the_resignation)
    stage.clock.advance(60_000)
    timer.expire()
    assert held.group.state is GroupState.DEAD

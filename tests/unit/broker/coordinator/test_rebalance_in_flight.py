"""Requests for a group while a record of it is on its way into the log."""

import pytest
from group_play import REBALANCE_MS, SESSION_MS, Play

from odradek.base.errors import ErrorCode
from odradek.broker.coordinator.groups.core import member_checks, rebalance
from odradek.broker.coordinator.groups.core.group import GroupState
from odradek.broker.coordinator.groups.core.group_requests import SyncAnswer
from odradek.broker.coordinator.groups.core.member_checks import Committer


@pytest.fixture
def play() -> Play:
    """Two members that have joined; records take their time."""
    play = Play()
    play.enter("a", "b")
    play.passes(6_000)
    play.stores_slowly = True
    return play


@pytest.fixture
def static() -> Play:
    """Two static members with their parts; from now on records take their time."""
    play = Play()
    play.join("a-1", "", instance_id="A")
    play.join("b-1", "", instance_id="B")
    play.passes(6_000)
    play.sync("a-1", {"a-1": b"1", "b-1": b"2"}, instance_id="A")
    play.sync("b-1", instance_id="B")
    play.stores_slowly = True
    return play


def state(play: Play) -> GroupState:
    return play.group.state


def test_nobody_hears_of_an_assignment_before_it_is_replicated(play: Play) -> None:
    assert play.sync("a", {"a": b"1", "b": b"2"}) is None
    assert play.sync("b") is None
    assert state(play) is GroupState.COMPLETING_REBALANCE
    assert member_checks.may_commit(play.group, Committer("a", None, 1), play.now) is ErrorCode.REBALANCE_IN_PROGRESS
    play.settle()
    assert (play.synced["a"].assignment, play.synced["b"].assignment) == (b"1", b"2")
    assert state(play) is GroupState.STABLE


def test_members_have_a_whole_session_from_the_moment_that_they_are_told(play: Play) -> None:
    play.sync("a", {"a": b"1", "b": b"2"})
    play.sync("b")
    play.passes(SESSION_MS - 1)
    play.settle()
    play.passes(SESSION_MS - 1)
    assert list(play.group.members) == ["a", "b"]
    play.passes(1)
    assert list(play.group.members) == []


def test_a_leader_that_asks_again_does_not_assign_twice(play: Play) -> None:
    play.sync("a", {"a": b"1", "b": b"2"})
    play.sync("a", {"a": b"2", "b": b"1"})
    assert play.synced["a"].error is ErrorCode.REBALANCE_IN_PROGRESS, "the answer to the first question"
    play.synced.clear()
    assert len(play.in_flight) == 1
    play.settle()
    assert play.synced["a"].assignment == b"1"


def test_a_record_that_was_not_replicated_in_time_starts_another_rebalance(play: Play) -> None:
    play.sync("a", {"a": b"1", "b": b"2"})
    play.sync("b")
    play.settle(ErrorCode.REBALANCE_IN_PROGRESS)
    assert play.synced["a"].error is play.synced["b"].error is ErrorCode.REBALANCE_IN_PROGRESS
    play.join("a")
    play.join("b")
    assert play.joined["a"].generation == 2
    play.sync("a", {"a": b"3"})
    play.settle()
    assert play.synced["a"].assignment == b"3"


@pytest.mark.parametrize("who", ["a", "b"])
def test_a_member_that_goes_meanwhile_makes_the_assignment_nobodys(play: Play, who: str) -> None:
    other = "b" if who == "a" else "a"
    play.sync("a", {"a": b"1", "b": b"2"})
    play.sync("b")
    assert play.leave(who) is ErrorCode.NONE
    assert play.synced[who].error is ErrorCode.UNKNOWN_MEMBER_ID
    assert play.synced[other].error is ErrorCode.REBALANCE_IN_PROGRESS
    play.settle()
    assert state(play) is GroupState.PREPARING_REBALANCE
    assert all(not member.assignment for member in play.group.members.values())
    play.join(other)
    assert play.joined[other].generation == 2


def test_the_assignment_of_a_generation_that_is_over_does_not_keep_the_next_from_its_own(play: Play) -> None:
    play.sync("a", {"a": b"old"})
    play.join("b", protocols=(("range", b"changed"),))
    play.join("a")
    assert play.group.generation == 2
    play.sync("a", {"a": b"new"})
    assert len(play.in_flight) == 2
    play.settle()
    assert "a" not in play.synced or play.synced["a"].error is not ErrorCode.NONE
    play.settle()
    assert play.synced["a"].assignment == b"new"


def test_a_silent_member_is_missed_while_others_wait_for_the_log(play: Play) -> None:
    play.sync("a", {"a": b"1", "b": b"2"})
    play.passes(SESSION_MS)
    assert list(play.group.members) == ["a"], "b was given no answer to wait for"
    assert play.synced["a"].error is ErrorCode.REBALANCE_IN_PROGRESS


def test_a_group_that_is_given_up_while_it_syncs(play: Play) -> None:
    play.sync("a", {"a": b"1", "b": b"2"})
    play.sync("b")
    play._run(rebalance.unload(play.group, play.now))
    assert play.synced["a"].error is play.synced["b"].error is ErrorCode.NOT_COORDINATOR
    play.synced.clear()
    play.settle()
    assert play.synced == {}
    assert state(play) is GroupState.DEAD


# ---- static members


def test_a_static_member_is_back_when_the_log_knows_it(static: Play) -> None:
    assert static.join("b-2", "", instance_id="B") is None
    static.settle()
    assert (static.joined["b-2"].error, static.joined["b-2"].generation) == (ErrorCode.NONE, 1)
    assert static.sync("b-2", instance_id="B").assignment == b"2"  # type: ignore[union-attr]


def test_a_static_member_that_comes_once_more_fences_its_former_self(static: Play) -> None:
    static.join("b-2", "", instance_id="B")
    static.join("b-3", "", instance_id="B")
    static.settle()
    assert static.joined["b-2"].error is ErrorCode.FENCED_INSTANCE_ID
    static.settle()
    assert (static.joined["b-3"].error, static.joined["b-3"].member_id) == (ErrorCode.NONE, "b-3")
    for former in ("b-1", "b-2"):
        assert static.heartbeat(former, instance_id="B") is ErrorCode.FENCED_INSTANCE_ID
        assert (
            member_checks.may_commit(static.group, Committer(former, "B", 1), static.now)
            is ErrorCode.FENCED_INSTANCE_ID
        )
        synced = static.sync(former, instance_id="B")
        assert synced is not None
        assert synced.error is ErrorCode.FENCED_INSTANCE_ID


def test_a_static_member_that_is_sent_away_before_it_is_back(static: Play) -> None:
    static.join("b-2", "", instance_id="B")
    static.leave("", "B")
    static.settle()
    assert static.joined["b-2"].error is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_return_that_fails_after_the_group_went_on_leaves_the_group_alone(static: Play) -> None:
    static.join("b-2", "", instance_id="B", protocols=(("range", b""), ("sticky", b"")))
    static.enter("c")
    static.settle(ErrorCode.REBALANCE_IN_PROGRESS)
    assert static.joined["b-2"].error is ErrorCode.REBALANCE_IN_PROGRESS
    assert static.join("b-3", "", instance_id="B") is None
    static.join("a-1", instance_id="A")
    assert {name: static.joined[name].generation for name in ("a-1", "b-3", "c")} == {"a-1": 2, "b-3": 2, "c": 2}


# ---- the coordinator goes while members join


def test_a_group_that_is_given_up_while_it_joins() -> None:
    play = Play()
    play.becomes_stable("a", "b")
    play.enter("c")
    play.join("a")
    play._run(rebalance.unload(play.group, play.now))
    assert play.joined["a"].error is play.joined["c"].error is ErrorCode.NOT_COORDINATOR
    play.passes(REBALANCE_MS)
    assert state(play) is GroupState.DEAD, "no timer brings it back"


def test_a_member_that_dies_in_the_join_holds_others_up_no_longer_than_its_session() -> None:
    play = Play()
    play.becomes_stable("a", "b")
    play.enter("c")
    play.join("a")
    play.passes(SESSION_MS)
    assert play.joined["a"].generation == play.joined["c"].generation == 2
    assert list(play.group.members) == ["a", "c"]


def test_a_member_that_dies_before_it_syncs_starts_another_rebalance() -> None:
    play = Play()
    play.enter("a", "b")
    play.passes(6_000)
    play.sync("a", {"a": b"1", "b": b"2"})
    for _ in range(2):
        play.passes(SESSION_MS // 2)
        play.heartbeat("a")
    assert list(play.group.members) == ["a"]
    assert play.heartbeat("a") is ErrorCode.REBALANCE_IN_PROGRESS


def test_commits_of_the_former_generation_count_until_the_next_begins() -> None:
    play = Play()
    play.becomes_stable("a", "b")

    def commits(name: str, generation: int) -> ErrorCode:
        return member_checks.may_commit(play.group, Committer(name, None, generation), play.now)

    play.enter("c")
    assert commits("b", 1) is ErrorCode.NONE, "what was read before the rebalance may be told"
    play.join("a")
    play.join("b")
    assert commits("b", 1) is ErrorCode.ILLEGAL_GENERATION
    assert commits("b", 2) is ErrorCode.REBALANCE_IN_PROGRESS


def test_a_member_joins_while_others_wait_for_their_parts() -> None:
    """They are sent back to join; nobody gets a part of the generation that is over, not even from a late leader."""
    play = Play()
    play.enter("a", "b")
    play.passes(6_000)
    play.sync("b")
    play.enter("c")
    assert play.synced["b"].error is ErrorCode.REBALANCE_IN_PROGRESS
    late = play.sync("a", {"a": b"one", "b": b"two"})
    assert late is not None
    assert late.error is ErrorCode.REBALANCE_IN_PROGRESS
    play.join("a")
    play.join("b")
    assert {play.joined[name].generation for name in "abc"} == {2}
    assert play.sync("b", generation=1) == SyncAnswer(ErrorCode.ILLEGAL_GENERATION)
    play.sync("a", {"a": b"1", "b": b"2", "c": b"3"})
    parts = [play.sync(name) for name in "abc"]
    assert [part.assignment for part in parts if part is not None] == [b"1", b"2", b"3"]


def test_a_member_that_leaves_twice_disturbs_nobody() -> None:
    play = Play()
    play.becomes_stable("a", "b")
    assert play.leave("b") is ErrorCode.NONE
    play.join("a")
    play.sync("a", {"a": b"all"})
    generation = play.group.generation
    assert play.leave("b") is ErrorCode.UNKNOWN_MEMBER_ID
    assert (play.group.state, play.group.generation) == (GroupState.STABLE, generation)
    assert play.heartbeat("a") is ErrorCode.NONE

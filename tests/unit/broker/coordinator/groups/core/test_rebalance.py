"""Stories of one group."""

from dataclasses import replace

import pytest
from group_play import REBALANCE_MS, RULES, SESSION_MS, Play

from odradek.base.errors import ErrorCode
from odradek.broker.coordinator.groups.core import member_checks, rebalance
from odradek.broker.coordinator.groups.core.group import LEGAL_FROM, Group, GroupState, IllegalGroupMove
from odradek.broker.coordinator.groups.core.group_requests import JoinedMember
from odradek.broker.coordinator.groups.core.member_checks import Committer

NO_DELAY = replace(RULES, initial_rebalance_delay_ms=0)


@pytest.fixture
def play() -> Play:
    return Play()


def state(play: Play) -> GroupState:
    return play.group.state


def test_a_group_is_born_and_becomes_stable(play: Play) -> None:
    play.enter("a", "b")
    assert state(play) is GroupState.PREPARING_REBALANCE
    assert play.joined == {}
    play.passes(6_000)
    assert state(play) is GroupState.COMPLETING_REBALANCE
    a, b = play.joined["a"], play.joined["b"]
    assert (a.error, a.generation, a.leader, a.protocol_name) == (ErrorCode.NONE, 1, "a", "range")
    assert a.members == [JoinedMember("a", None, b"topics of a"), JoinedMember("b", None, b"topics of b")]
    assert b.members == ()
    assert play.sync("b") is None
    assert play.stored == []
    synced = play.sync("a", {"a": b"1", "b": b"2"})
    assert synced is not None
    assert synced.assignment == b"1"
    assert play.synced["b"].assignment == b"2"
    assert state(play) is GroupState.STABLE
    (record,) = play.stored
    assert [(m.member_id, m.subscription, m.assignment) for m in record.members] == [
        ("a", b"topics of a", b"1"),
        ("b", b"topics of b", b"2"),
    ]


def test_the_first_wait_grows_with_each_newcomer_but_not_beyond_the_rebalance_timeout(play: Play) -> None:
    play.enter("a")
    play.passes(2_999)
    assert state(play) is GroupState.PREPARING_REBALANCE
    play.passes(1)
    assert state(play) is GroupState.COMPLETING_REBALANCE

    play = Play()
    play.join("a", "", rebalance_timeout_ms=7_000)
    for newcomer in ("b", "c", "d"):
        play.passes(2_000)
        play.join(newcomer, "", rebalance_timeout_ms=7_000)
    assert state(play) is GroupState.PREPARING_REBALANCE
    play.passes(1_000)
    assert state(play) is GroupState.COMPLETING_REBALANCE
    assert set(play.joined) == {"a", "b", "c", "d"}


def test_without_initial_delay_the_first_member_starts_at_once() -> None:
    play = Play(NO_DELAY)
    play.enter("a")
    play.passes(1)
    assert play.joined["a"].generation == 1


def test_a_new_member_must_come_back_with_its_id(play: Play) -> None:
    answer = play.join("a", "", needs_known_id=True)
    assert answer is not None
    assert (answer.error, answer.member_id) == (ErrorCode.MEMBER_ID_REQUIRED, "a")
    assert state(play) is GroupState.EMPTY
    assert play.join("a") is None
    play.passes(3_000)
    assert play.joined["a"].error is ErrorCode.NONE


def test_whoever_does_not_come_back_is_forgotten_and_holds_nobody_up(play: Play) -> None:
    play.becomes_stable("a")
    play.join("ghost", "", needs_known_id=True)
    play.join("a", protocols=(("range", b"changed"),))
    assert "a" not in play.joined, "the ghost may still come"
    for _ in range(4):
        play.passes(SESSION_MS // 4)
        play.heartbeat("a")
    assert play.joined["a"].generation == 2
    answer = play.join("ghost")
    assert answer is not None
    assert answer.error is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_member_joins_a_stable_group(play: Play) -> None:
    play.becomes_stable("a", "b")
    play.enter("c")
    assert play.heartbeat("a") is ErrorCode.REBALANCE_IN_PROGRESS
    play.join("a")
    assert "a" not in play.joined
    play.join("b")
    assert {name: answer.generation for name, answer in play.joined.items()} == {"a": 2, "b": 2, "c": 2}
    assert play.joined["c"].leader == "a"
    assert play.heartbeat("a", generation=1) is ErrorCode.ILLEGAL_GENERATION


def test_a_member_that_does_not_rejoin_in_time_is_out(play: Play) -> None:
    play.becomes_stable("a", "b")
    play.enter("c")
    play.join("a")
    for _ in range(REBALANCE_MS // 5_000):
        play.passes(5_000)
        play.heartbeat("b")
    assert play.joined["a"].generation == 2
    assert list(play.group.members) == ["a", "c"]
    assert play.heartbeat("b") is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_silent_member_is_out_after_its_session(play: Play) -> None:
    play.becomes_stable("a", "b")
    play.passes(SESSION_MS - 1)
    assert play.heartbeat("a") is ErrorCode.NONE
    play.passes(1)
    assert list(play.group.members) == ["a"]
    assert state(play) is GroupState.PREPARING_REBALANCE
    play.join("a")
    assert play.joined["a"].generation == 2


def test_the_last_member_leaves_and_the_group_is_empty(play: Play) -> None:
    play.becomes_stable("a")
    assert play.leave("a") is ErrorCode.NONE
    assert state(play) is GroupState.EMPTY
    assert (play.stored[-1].generation, play.stored[-1].members) == (2, [])
    assert play.leave("a") is ErrorCode.UNKNOWN_MEMBER_ID


def test_the_leader_leaves_while_it_is_waited_for(play: Play) -> None:
    play.enter("a", "b")
    play.passes(6_000)
    play.sync("b")
    play.leave("a")
    assert play.synced["b"].error is ErrorCode.REBALANCE_IN_PROGRESS
    play.join("b")
    assert play.joined["b"].leader == "b"


def test_a_leader_that_never_syncs_is_out(play: Play) -> None:
    play.enter("a", "b")
    play.passes(6_000)
    play.sync("b")
    for _ in range(REBALANCE_MS // 5_000):
        play.passes(5_000)
        play.heartbeat("a")
    assert list(play.group.members) == ["b"]
    assert play.synced["b"].error is ErrorCode.REBALANCE_IN_PROGRESS


def test_an_assignment_that_cannot_be_stored_is_nobodys(play: Play) -> None:
    play.enter("a", "b")
    play.passes(6_000)
    play.sync("b")
    play.store_error = ErrorCode.NOT_COORDINATOR
    play.sync("a", {"a": b"1", "b": b"2"})
    assert play.synced["a"].error is play.synced["b"].error is ErrorCode.NOT_COORDINATOR
    assert state(play) is GroupState.PREPARING_REBALANCE
    assert all(not member.assignment for member in play.group.members.values())


def test_a_follower_that_rejoins_unchanged_gets_the_same_generation(play: Play) -> None:
    play.becomes_stable("a", "b")
    answer = play.join("b")
    assert answer is not None
    assert (answer.generation, answer.members) == (1, ())
    assert state(play) is GroupState.STABLE
    assert play.join("a") is None, "the leader's join is a prefer_directory to rebalance"


def test_a_join_that_is_asked_again_answers_the_first_one(play: Play) -> None:
    play.becomes_stable("a", "b")
    answers: list[ErrorCode] = []
    play.join("a")
    play.group.waiting_to_join["a"] = lambda answer: answers.append(answer.error)
    play.join("a")
    assert answers == [ErrorCode.REBALANCE_IN_PROGRESS]


def test_the_protocol_is_what_all_can_do_and_most_prefer(play: Play) -> None:
    play.join("a", "", protocols=(("sticky", b""), ("range", b""), ("only a", b"")))
    play.join("b", "", protocols=(("range", b""), ("sticky", b"")))
    play.join("c", "", protocols=(("range", b""), ("sticky", b"")))
    refused = play.join("d", "", protocols=(("only a", b""),))
    assert refused is not None
    assert refused.error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    refused = play.join("e", "", protocol_type="connect")
    assert refused is not None
    assert refused.error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    play.passes(60_000)
    assert play.joined["a"].protocol_name == "range"


def test_a_protocol_that_is_named_twice_counts_once(play: Play) -> None:
    twice = (("range", b"first"), ("range", b"second"))
    play.join("a", "", protocols=twice)
    play.passes(60_000)
    assert play.joined["a"].protocol_name == "range"
    play.join("a", protocols=(*twice, ("sticky", b"")))
    play.leave("a")
    assert play.join("b", "", protocols=(("sticky", b""),)) is None
    play.passes(60_000)
    assert play.joined["b"].protocol_name == "sticky", "nothing is left of what others could do"


def test_no_more_members_than_allowed() -> None:
    play = Play(replace(RULES, max_size=2))
    play.becomes_stable("a", "b")
    refused = play.join("c", "")
    assert refused is not None
    assert (refused.error, refused.member_id) == (ErrorCode.GROUP_MAX_SIZE_REACHED, "")
    assert play.heartbeat("a") is ErrorCode.NONE


# ---- static members


def static_group(play: Play) -> None:
    play.join("a-1", "", instance_id="A")
    play.join("b-1", "", instance_id="B")
    play.passes(6_000)
    play.sync("a-1", {"a-1": b"1", "b-1": b"2"}, instance_id="A")
    play.sync("b-1", instance_id="B")
    assert state(play) is GroupState.STABLE


def test_a_static_member_returns_and_nothing_moves(play: Play) -> None:
    static_group(play)
    answer = play.join("b-2", "", instance_id="B")
    assert answer is not None
    assert (answer.error, answer.member_id, answer.generation) == (ErrorCode.NONE, "b-2", 1)
    assert state(play) is GroupState.STABLE
    assert [member.member_id for member in play.stored[-1].members] == ["a-1", "b-2"]
    synced = play.sync("b-2", instance_id="B")
    assert synced is not None
    assert synced.assignment == b"2"
    assert play.heartbeat("b-1", instance_id="B") is ErrorCode.FENCED_INSTANCE_ID
    assert play.heartbeat("b-1") is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_static_leader_returns_and_is_told_not_to_assign(play: Play) -> None:
    static_group(play)
    answer = play.join("a-2", "", instance_id="A", may_skip_assignment=True)
    assert answer is not None
    assert (answer.leader, answer.skip_assignment, len(answer.members)) == ("a-2", True, 2)
    older = play.join("a-3", "", instance_id="A")
    assert older is not None
    assert (older.leader, older.members) == ("a-2", ()), "an older client must not think that it leads"


def test_a_static_member_whose_return_cannot_be_stored_is_its_former_self(play: Play) -> None:
    static_group(play)
    play.store_error = ErrorCode.NOT_COORDINATOR
    answer = play.join("b-2", "", instance_id="B")
    assert answer is not None
    assert answer.error is ErrorCode.NOT_COORDINATOR
    assert play.heartbeat("b-1", instance_id="B") is ErrorCode.NONE


def test_a_static_member_that_is_away_keeps_its_place_until_its_session_ends(play: Play) -> None:
    static_group(play)
    play.join("a-1", instance_id="A", session_timeout_ms=100_000)
    play.passes(SESSION_MS - 1)
    assert "b-1" in play.group.members
    play.passes(1)
    assert list(play.group.members) == ["a-1"]
    assert play.joined["a-1"].generation == 2


def test_a_static_member_may_be_sent_away_by_its_instance_id(play: Play) -> None:
    static_group(play)
    assert play.leave("", "B") is ErrorCode.NONE
    assert list(play.group.members) == ["a-1"]
    assert play.leave("", "B") is ErrorCode.UNKNOWN_MEMBER_ID
    assert play.leave("other", "A") is ErrorCode.FENCED_INSTANCE_ID


# ---- commits


def test_who_may_commit(play: Play) -> None:
    def commits(member_id: str, generation: int, instance_id: str | None = None) -> ErrorCode:
        return member_checks.may_commit(play.group, Committer(member_id, instance_id, generation), play.now)

    assert commits("", -1) is ErrorCode.NONE, "nobody is in the group"
    assert commits("a", 1) is ErrorCode.UNKNOWN_MEMBER_ID
    play.enter("a")
    play.passes(3_000)
    assert commits("a", 1) is ErrorCode.REBALANCE_IN_PROGRESS
    play.sync("a", {"a": b""})
    assert commits("a", 1) is ErrorCode.NONE
    assert commits("a", 0) is ErrorCode.ILLEGAL_GENERATION
    assert commits("", -1) is ErrorCode.UNKNOWN_MEMBER_ID
    assert commits("a", 1, "no such") is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_commit_is_a_sign_of_life(play: Play) -> None:
    play.becomes_stable("a")
    play.passes(SESSION_MS - 1)
    member_checks.may_commit(play.group, Committer("a", None, 1), play.now)
    play.passes(SESSION_MS - 1)
    assert list(play.group.members) == ["a"]


# ---- sync


def test_what_a_sync_must_say(play: Play) -> None:
    play.becomes_stable("a")
    cases: list[tuple[dict[str, object], ErrorCode]] = [
        ({"generation": 0}, ErrorCode.ILLEGAL_GENERATION),
        ({"protocol_type": "connect"}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocol_name": "sticky"}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"instance_id": "no such"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"protocol_type": "consumer", "protocol_name": "range"}, ErrorCode.NONE),
    ]
    for said, error in cases:
        answer = play.sync("a", None, **said)
        assert answer is not None
        assert answer.error is error, said


def test_a_member_that_was_given_no_part_gets_an_empty_one(play: Play) -> None:
    play.enter("a", "b")
    play.passes(6_000)
    play.sync("a", {"a": b"1", "stranger": b"3"})
    answer = play.sync("b")
    assert answer is not None
    assert (answer.error, answer.assignment) == (ErrorCode.NONE, b"")


# ---- the coordinator comes and goes


def test_a_group_is_what_its_record_says(play: Play) -> None:
    play.becomes_stable("a", "b")
    loaded = Group.from_record("g", play.stored[-1], play.now)
    assert (loaded.state, loaded.generation, loaded.leader) == (GroupState.STABLE, 1, "a")
    assert loaded.members["b"].assignment == b"part of b"
    assert loaded.wake_ms == play.now_ms + SESSION_MS
    play.group = loaded
    assert play.heartbeat("b") is ErrorCode.NONE
    play.passes(SESSION_MS)
    assert state(play) is GroupState.EMPTY


def test_a_group_that_is_given_up_sends_its_members_elsewhere(play: Play) -> None:
    play.enter("a")
    play._run(rebalance.unload(play.group, play.now))
    assert play.joined["a"].error is ErrorCode.NOT_COORDINATOR
    assert play.heartbeat("a") is ErrorCode.COORDINATOR_NOT_AVAILABLE


def test_a_group_loaded_with_too_many_members_rebalances(play: Play) -> None:
    play.becomes_stable("a", "b", "c")
    play.rules = replace(RULES, max_size=2)
    play._run(rebalance.after_load(play.group, play.rules, play.now))
    play.join("c")
    play.join("a")
    refused = play.join("b")
    assert refused is not None
    assert refused.error is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert list(play.group.members) == ["a", "c"]
    assert play.joined["a"].generation == 2


def test_a_move_that_is_not_in_the_table_changes_nothing(play: Play) -> None:
    for target, sources in LEGAL_FROM.items():
        for source in GroupState:
            play.group.state = source
            if source in sources:
                play.group.move_to(target, play.now)
                assert state(play) is target
            else:
                with pytest.raises(IllegalGroupMove):
                    play.group.move_to(target, play.now)
                assert state(play) is source


@pytest.mark.parametrize("subscription", [b"", b"\0", b"\0\0\xff\xff\xff\xff", b"\0\0\0\0\0\x05ab"])
def test_a_subscription_that_makes_no_sense_is_kept_as_it_is(play: Play, subscription: bytes) -> None:
    play.join("a", "", protocols=(("range", subscription),))
    play.passes(3_000)
    assert play.joined["a"].members == [JoinedMember("a", None, subscription)]
    assert play.group.subscribed_topics is None

"""Each generation is told with what led to it."""

from group_play import SESSION_MS, Play

from odradek.base.errors import ErrorCode
from odradek.broker.coordinator.groups.core.group import CAUSES_MAX


def _causes(play: Play) -> tuple[str, ...]:
    return play.rebalanced[-1].causes


def test_who_joined_and_who_left_in_their_own_words() -> None:
    play = Play()
    play.becomes_stable("a")
    assert _causes(play) == ("client (127.0.0.1) joined",)
    play.join("b", member_id="", client_id="clerk", instance_id="desk-1")
    play.join("a")
    assert play.rebalanced[-1].generation == 2
    assert play.rebalanced[-1].members == 2
    assert _causes(play) == ("clerk (desk-1, 127.0.0.1) joined",)
    play.sync("a", {})
    play.leave("b", reason="the shop is closed")
    play.join("a")
    assert _causes(play) == ("clerk (desk-1, 127.0.0.1) left: the shop is closed",)


def test_the_last_one_leaves_a_generation_without_members() -> None:
    play = Play()
    play.becomes_stable("a")
    play.leave("a")
    assert (play.rebalanced[-1].members, _causes(play)) == (0, ("client (127.0.0.1) left",))


def test_silence_is_told_with_its_length() -> None:
    play = Play()
    play.becomes_stable("a", "b")
    play.passes(SESSION_MS - 1)
    play.heartbeat("a")
    play.passes(1)
    play.join("a")
    assert _causes(play) == (f"client (127.0.0.1) was silent for {SESSION_MS} ms",)


def test_other_topics_and_a_leader_who_asks() -> None:
    play = Play()
    play.becomes_stable("a", "b")
    play.join("b", protocols=(("range", b"other topics"),))
    play.join("a")
    assert _causes(play) == ("client (127.0.0.1) reads other topics or assigns otherwise",)
    play.sync("a", {})
    play.join("a", reason="cached metadata has changed")
    play.join("b", protocols=(("range", b"other topics"),))
    assert _causes(play) == ("client (127.0.0.1), who leads the group, asked for it: cached metadata has changed",)


def test_an_assignment_that_is_lost_makes_another_generation() -> None:
    play = Play()
    play.enter("a")
    play.passes(play.rules.initial_rebalance_delay_ms)
    play.store_error = ErrorCode.NOT_COORDINATOR
    play.sync("a", {})
    play.join("a")
    assert _causes(play) == ("the assignment could not be stored (NOT_COORDINATOR)",)


def test_a_crowd_is_told_by_its_first_and_its_number() -> None:
    play = Play()
    play.becomes_stable(*(f"m{number}" for number in range(CAUSES_MAX + 30)))
    assert len(_causes(play)) == CAUSES_MAX
    assert play.rebalanced[-1].causes_left_out == 30


def test_long_words_are_cut() -> None:
    play = Play()
    play.becomes_stable("a", "b")
    play.leave("b", reason="x" * 30_000)
    play.join("a")
    assert len(_causes(play)[0]) < 500

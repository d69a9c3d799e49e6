"""Rules of a consumer group, as its members saw it."""

import pytest

from odradek.model.topology import TopicPartition
from odradek.sim.checkers.group_history import GroupHistory
from odradek.sim.checkers.violation import Violation

TP = TopicPartition("orders", 0)
OTHER = TopicPartition("orders", 1)


def test_a_partition_has_one_owner_in_a_generation() -> None:
    group = GroupHistory("readers")
    group.assigned("a", 1, [TP])
    group.assigned("b", 1, [OTHER])
    group.assigned("b", 2, [TP])
    group.assigned("a", 1, [TP])
    group.check()
    group.assigned("b", 1, [TP])
    with pytest.raises(Violation, match="a and b own orders-0 in generation 1"):
        group.check()


def test_committed_offsets_do_not_go_back() -> None:
    group = GroupHistory("readers")
    group.commit_acknowledged(TP, 3)
    group.commit_acknowledged(TP, 3)
    group.commit_acknowledged(TP, 5)
    group.check()
    group.commit_acknowledged(TP, 4)
    with pytest.raises(Violation, match="went back from 5 to 4"):
        group.check()


def test_a_coordinator_knows_what_was_committed() -> None:
    group = GroupHistory("readers")
    group.answered(TP, 0)
    group.commit_acknowledged(TP, 3)
    group.answered(TP, 3)
    group.answered(TP, 7)
    group.check()
    group.answered(TP, 2)
    with pytest.raises(Violation, match="2 is answered, 3 was committed"):
        group.check()


def test_generations_may_begin_anew() -> None:
    group = GroupHistory("readers")
    group.joined(1, "a")
    group.assigned("a", 1, [TP])
    group.joined(1, "a")
    group.assigned("a", 1, [TP])
    group.joined(7, "a")
    group.joined(1, "b")
    group.assigned("b", 1, [TP])
    group.check()


def test_a_group_that_was_removed_begins_with_the_same_generation() -> None:
    group = GroupHistory("readers")
    for member in "ab":
        group.joined(1, member)
    group.assigned("a", 1, [TP])
    group.joined(1, "c")
    group.assigned("c", 1, [TP])
    group.check()


def test_a_group_with_offsets_is_not_removed() -> None:
    group = GroupHistory("readers")
    group.joined(1, "a")
    group.assigned("a", 1, [TP])
    group.commit_acknowledged(TP, 3)
    group.joined(1, "b")
    group.assigned("b", 1, [TP])
    with pytest.raises(Violation, match="own"):
        group.check()

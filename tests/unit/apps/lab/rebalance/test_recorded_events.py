"""From what members did to the figures of the table."""

import pytest

from odradek.apps.lab.rebalance.recorded_events import (
    Costs,
    MemberEvent,
    Phase,
    Recorder,
    Stretch,
    decisions_on_old_views,
    is_settled,
    stretches,
    summarise,
)
from odradek.apps.legacy.observer import What
from odradek.model.topology import TopicPartition

P0, P1 = TopicPartition("t", 0), TopicPartition("t", 1)


def told(at_s: float, member: str, what: What, *partitions: TopicPartition, view: int = 0) -> MemberEvent:
    return MemberEvent(at_s, member, what, frozenset(partitions), view)


STORY = [
    told(1.0, "a", What.OWNS, P0, P1),
    told(2.0, "b", What.DECIDED, P1, view=2),
    told(3.0, "b", What.REFUSED, P1),
    told(3.0, "b", What.RETRIED),
    told(3.5, "a", What.DECIDED, P0, view=1),
    told(4.0, "b", What.OWNS, P1),
    told(6.0, "a", What.RELEASED, P0, P1),
    told(7.0, "a", What.OWNS, P0),
]


def test_stretches_say_how_many_owned_a_partition_when() -> None:
    assert sorted(stretches(STORY, [P0, P1], 0.0, 8.0), key=lambda s: (s.partition, s.from_s)) == [
        Stretch(P0, 0, 0.0, 1.0),
        Stretch(P0, 1, 1.0, 6.0),
        Stretch(P0, 0, 6.0, 7.0),
        Stretch(P0, 1, 7.0, 8.0),
        Stretch(P1, 0, 0.0, 1.0),
        Stretch(P1, 1, 1.0, 4.0),
        Stretch(P1, 2, 4.0, 6.0),
        Stretch(P1, 1, 6.0, 8.0),
    ]


def test_a_stretch_begins_with_its_phase() -> None:
    assert stretches(STORY, [P1], 5.0, 5.5) == [Stretch(P1, 2, 5.0, 5.5)]


def test_a_phase_counts_what_happened_in_it() -> None:
    phase = summarise(Phase("one", 2, "join", 5.0, costs=Costs(3, 4, 5)), STORY, [P0, P1], 2.0, 8.0)
    assert (phase.old_views, phase.refused, phase.retries, phase.gave_up) == (1, 1, 1, 0)
    assert (phase.unowned.partitions, phase.unowned.longest_s) == (1, pytest.approx(1.0))
    assert (phase.several.partitions, phase.several.total_s) == (1, pytest.approx(2.0))


def test_whoever_decides_from_an_older_list_than_another_did_disagrees() -> None:
    views = [1, 2, 2, 1, 3, 2]
    assert decisions_on_old_views([told(0, "m", What.DECIDED, view=view) for view in views]) == 2


def test_settled_is_everything_owned_once_and_evenly() -> None:
    assert is_settled({"a": frozenset({P0}), "b": frozenset({P1})}, ["a", "b"], [P0, P1])
    assert not is_settled({"a": frozenset({P0, P1})}, ["a", "b"], [P0, P1])
    assert not is_settled({"a": frozenset({P0}), "b": frozenset({P0})}, ["a", "b"], [P0, P1])
    assert not is_settled({"a": frozenset({P0}), "dead": frozenset({P1})}, ["a"], [P0, P1])


def test_the_recorder_knows_who_reads_what_now() -> None:
    recorder = Recorder()
    recorder.happened("a", What.OWNS, [P0, P1])
    recorder.happened("a", What.RELEASED, [P1])
    recorder.asked_zookeeper(reads=2, writes=1)
    recorder.asked_broker()
    assert recorder.owned()[0] == {"a": frozenset({P0})}
    assert recorder.costs() - Costs(1, 1, 1) == Costs(1, 0, 0)

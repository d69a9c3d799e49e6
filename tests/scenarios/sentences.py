"""The sentences that a scenario is made of, and what each of them does on the stage."""

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any
from uuid import UUID

from odradek.broker.controller.core.effect_text import assignment_text, state_text
from odradek.broker.controller.core.events import (
    ControlledShutdownAsked,
    ElectionAsked,
    IsrChangeAsked,
    ReassignmentsAsked,
    ReassignmentsListed,
    RebalanceDue,
    TopicConfigsChanged,
    UncleanElectionDefaultChanged,
)
from odradek.model.topology import ZERO_UUID, LeaderAndIsr, ReplicaAssignment, TopicAssignment, TopicPartition
from odradek.protocol.messages.elect_leaders import ElectionType

from .stage import Stage

Sentence = tuple[re.Pattern[str], Callable[..., None]]
_SENTENCES: list[Sentence] = []


def sentence(pattern: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    def declare(act: Callable[..., None]) -> Callable[..., None]:
        _SENTENCES.append((re.compile(pattern), act))
        return act

    return declare


def play(stage: Stage, text: str) -> list[str]:
    """Return what the controller saw and did until it was quiet again."""
    for pattern, act in _SENTENCES:
        match = pattern.fullmatch(text)
        if match is not None:
            stage.lines = []
            act(stage, **match.groupdict())
            stage.world.run()
            return stage.lines
    raise ValueError(f"no such sentence: {text!r}")


def ids(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(","))


def partition(text: str) -> TopicPartition:
    topic, _, number = text.rpartition("-")
    return TopicPartition(topic, int(number))


def partitions(text: str) -> list[TopicPartition]:
    return [partition(part) for part in text.split(", ")]


def unheard(value: Any) -> None:
    """The answer is in the trace."""


# --- brokers and controllers -------------------------------------------------------------------------------------


@sentence(r"brokers? (?P<brokers>[\d, ]+) (?:comes?|comes? back)")
def brokers_come(stage: Stage, brokers: str) -> None:
    for broker in ids(brokers):
        stage.register(broker)


@sentence(r"brokers? (?P<brokers>[\d, ]+) (?:dies?|loses? its session)")
def brokers_die(stage: Stage, brokers: str) -> None:
    for broker in ids(brokers):
        stage.lose(broker)


@sentence(r"broker (?P<broker>\d+) is back before anybody noticed that it was gone")
def broker_bounces(stage: Stage, broker: str) -> None:
    stage.lose(int(broker))
    stage.register(int(broker))


@sentence(r"broker (?P<broker>\d+) moves to port (?P<port>\d+)")
def broker_moves(stage: Stage, broker: str, port: str) -> None:
    stage.world.move(int(broker), int(port))


@sentence(r"broker (?P<broker>\d+) becomes controller(?P<deletes_nothing>, which may not delete topics)?")
def controller_elected(stage: Stage, broker: str, deletes_nothing: str | None) -> None:
    stage.world.elect_controller(int(broker), delete_topic_enabled=deletes_nothing is None)


@sentence(r"the controller will die after (?P<writes>\d+) writes?")
def controller_will_die(stage: Stage, writes: str) -> None:
    """Sent requests count as writes."""
    stage.world.writes_left = int(writes)


@sentence(r"broker (?P<broker>\d+) asks to leave(?P<old>, with the epoch of an earlier life)?")
def broker_leaves(stage: Stage, broker: str, old: str | None) -> None:
    epoch = stage.world.znodes.registered[int(broker)].epoch - (1 if old else 0)
    stage.world.enqueue(ControlledShutdownAsked(int(broker), epoch, unheard))


@sentence(r"broker (?P<broker>\d+) stops answering")
def broker_is_silent(stage: Stage, broker: str) -> None:
    stage.brokers[int(broker)].is_silent = True


@sentence(r"broker (?P<broker>\d+) answers")
def broker_speaks(stage: Stage, broker: str) -> None:
    stage.brokers[int(broker)].speak()


@sentence(r"broker (?P<broker>\d+) loses the directory of (?P<tps>.+)")
def directory_fails(stage: Stage, broker: str, tps: str) -> None:
    stage.brokers[int(broker)].failed.update(partitions(tps))
    stage.world.notify_failed_directory(int(broker))


# --- topics ------------------------------------------------------------------------------------------------------


@sentence(r"topic (?P<topic>\S+) is created(?P<old> by an old tool)?: (?P<replicas>.+)")
def topic_created(stage: Stage, topic: str, old: str | None, replicas: str) -> None:
    placed = {number: ReplicaAssignment(ids(part)) for number, part in enumerate(replicas.split())}
    topic_id = ZERO_UUID if old else UUID(int=len(stage.world.znodes.topics) + 1)
    stage.world.write_topic(TopicAssignment(topic, topic_id, placed))


@sentence(r"topic (?P<topic>\S+) grows: (?P<replicas>.+)")
def topic_grows(stage: Stage, topic: str, replicas: str) -> None:
    held = stage.world.znodes.topics[topic]
    added = {number: ReplicaAssignment(ids(part)) for number, part in enumerate(replicas.split(), len(held.partitions))}
    stage.world.write_topic(replace(held, partitions={**held.partitions, **added}))


@sentence(r"the node of topic (?P<topic>\S+) is garbage(?P<no_more> no more)?")
def topic_is_broken(stage: Stage, topic: str, no_more: str | None) -> None:
    stage.world.znodes.broken ^= {topic}
    stage.world.write_topic(stage.world.znodes.topics[topic])


@sentence(r"topic (?P<topic>\S+) allows unclean elections")
def unclean_elections_allowed(stage: Stage, topic: str) -> None:
    stage.world.znodes.configs[topic] = {"unclean.leader.election.enable": "true"}
    stage.world.enqueue(TopicConfigsChanged(frozenset((topic,))))


@sentence(r"brokers (?P<how>allow|forbid) unclean elections where a topic doesn't say")
def unclean_elections_by_default(stage: Stage, how: str) -> None:
    stage.world.enqueue(UncleanElectionDefaultChanged(how == "allow"))


@sentence(r"deletion of topics? (?P<topics>.+) is asked for")
def deletion_asked(stage: Stage, topics: str) -> None:
    for topic in topics.split(", "):
        stage.world.mark_for_deletion(topic)


# --- partitions --------------------------------------------------------------------------------------------------


@sentence(r"the leader of (?P<tp>\S+) wants the ISR (?P<isr>\S+)(?P<late>, of an old leader epoch)?")
def isr_change_asked(stage: Stage, tp: str, isr: str, late: str | None) -> None:
    state = stage.world.znodes.states[partition(tp)]
    epoch = state.leader_epoch - (1 if late else 0)
    wanted = LeaderAndIsr(state.leader, epoch, ids(isr), 0, state.zk_version)
    leader_epoch = stage.world.znodes.registered[state.leader].epoch
    stage.world.enqueue(IsrChangeAsked(state.leader, leader_epoch, {partition(tp): wanted}, unheard))


@sentence(r"the leader of (?P<tp>\S+) writes the ISR (?P<isr>\S+) itself")
def isr_written(stage: Stage, tp: str, isr: str) -> None:
    stage.world.write_isr_as_leader(partition(tp), ids(isr))
    stage.world.notify_isr_change(partition(tp))


@sentence(r"the leader of (?P<tp>\S+) will write the ISR (?P<isr>\S+) just before the controller")
def isr_written_in_between(stage: Stage, tp: str, isr: str) -> None:
    stage.world.interference[partition(tp)] = ids(isr)


@sentence(r"reassignment of (?P<tps>.+) to (?P<target>\S+) is asked for")
def reassignment_asked(stage: Stage, tps: str, target: str) -> None:
    stage.world.enqueue(ReassignmentsAsked({tp: ids(target) for tp in partitions(tps)}, unheard))


@sentence(r"the reassignment of (?P<tps>.+) is cancelled")
def reassignment_cancelled(stage: Stage, tps: str) -> None:
    stage.world.enqueue(ReassignmentsAsked(dict.fromkeys(partitions(tps)), unheard))


@sentence(r"an old tool writes the reassignment of (?P<tps>.+) to (?P<target>\S+)")
def reassignment_written(stage: Stage, tps: str, target: str) -> None:
    stage.world.write_reassignments({tp: ids(target) for tp in partitions(tps)})


@sentence(r"reassignments are listed")
def reassignments_listed(stage: Stage) -> None:
    stage.world.enqueue(ReassignmentsListed(None, unheard))


@sentence(r"(?P<kind>a preferred|an unclean) election of (?P<tps>.+) is asked for")
def election_asked(stage: Stage, kind: str, tps: str) -> None:
    election_type = ElectionType.PREFERRED if kind == "a preferred" else ElectionType.UNCLEAN
    stage.world.enqueue(ElectionAsked(None if tps == "all" else frozenset(partitions(tps)), election_type, unheard))


@sentence(r"an old tool writes the preferred election of (?P<tps>.+)")
def preferred_election_written(stage: Stage, tps: str) -> None:
    stage.world.write_preferred_elections(partitions(tps))


@sentence(r"it is time to look at the balance")
def rebalance_due(stage: Stage) -> None:
    stage.world.take_scheduled(RebalanceDue)


# --- the reader looks --------------------------------------------------------------------------------------------


@sentence(r"look")
def look(stage: Stage) -> None:
    """Tell what ZooKeeper holds now."""
    for name, topic in sorted(stage.world.znodes.topics.items()):
        for number, assignment in topic.partitions.items():
            state = stage.world.znodes.states.get(TopicPartition(name, number))
            held = "no state" if state is None else f"{state_text(state)}  version={state.zk_version}"
            stage.lines.append(f"state   {name}-{number}  replicas={assignment_text(assignment)}  {held}")

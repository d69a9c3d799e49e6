"""The sentences that a scenario is made of, and what each of them does to the world."""

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any
from uuid import UUID

from odradek.broker.controller.core.events import (
    ControlledShutdownAsked,
    ElectionAsked,
    ElectionType,
    IsrChangeAsked,
    ReassignmentsAsked,
    ReassignmentsListed,
    RebalanceDue,
    TopicConfigsChanged,
    UncleanElectionDefaultChanged,
)
from odradek.model.topology import ZERO_UUID, LeaderAndIsr, ReplicaAssignment, TopicAssignment, TopicPartition

from .trace import assignment_text, state_text
from .world import World

Sentence = tuple[re.Pattern[str], Callable[..., None]]
_SENTENCES: list[Sentence] = []


def sentence(pattern: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    def declare(act: Callable[..., None]) -> Callable[..., None]:
        _SENTENCES.append((re.compile(pattern), act))
        return act

    return declare


def play(world: World, text: str) -> list[str]:
    """What the controller saw and did until it was quiet again."""
    for pattern, act in _SENTENCES:
        match = pattern.fullmatch(text)
        if match is not None:
            world.lines = []
            act(world, **match.groupdict())
            world.run()
            return world.lines
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
def brokers_come(world: World, brokers: str) -> None:
    for broker in ids(brokers):
        world.register(broker)


@sentence(r"brokers? (?P<brokers>[\d, ]+) (?:dies?|loses? its session)")
def brokers_die(world: World, brokers: str) -> None:
    for broker in ids(brokers):
        world.lose(broker)


@sentence(r"broker (?P<broker>\d+) is back before anybody noticed that it was gone")
def broker_bounces(world: World, broker: str) -> None:
    world.lose(int(broker))
    world.register(int(broker))


@sentence(r"broker (?P<broker>\d+) moves to port (?P<port>\d+)")
def broker_moves(world: World, broker: str, port: str) -> None:
    world.move(int(broker), int(port))


@sentence(r"broker (?P<broker>\d+) becomes controller(?P<deletes_nothing>, which may not delete topics)?")
def controller_elected(world: World, broker: str, deletes_nothing: str | None) -> None:
    world.elect_controller(int(broker), delete_topic_enabled=deletes_nothing is None)


@sentence(r"the controller will die after (?P<writes>\d+) writes?")
def controller_will_die(world: World, writes: str) -> None:
    """Sent requests count as writes."""
    world.writes_left = int(writes)


@sentence(r"broker (?P<broker>\d+) asks to leave(?P<old>, with the epoch of an earlier life)?")
def broker_leaves(world: World, broker: str, old: str | None) -> None:
    epoch = world.registered[int(broker)].epoch - (1 if old else 0)
    world.enqueue(ControlledShutdownAsked(int(broker), epoch, unheard))


@sentence(r"broker (?P<broker>\d+) stops answering")
def broker_is_silent(world: World, broker: str) -> None:
    world.brokers[int(broker)].silent = True


@sentence(r"broker (?P<broker>\d+) answers")
def broker_speaks(world: World, broker: str) -> None:
    world.let_speak(int(broker))


@sentence(r"broker (?P<broker>\d+) loses the directory of (?P<tps>.+)")
def directory_fails(world: World, broker: str, tps: str) -> None:
    world.fail_directory(int(broker), partitions(tps))


# --- topics ------------------------------------------------------------------------------------------------------


@sentence(r"topic (?P<topic>\S+) is created(?P<old> by an old tool)?: (?P<replicas>.+)")
def topic_created(world: World, topic: str, old: str | None, replicas: str) -> None:
    placed = {number: ReplicaAssignment(ids(part)) for number, part in enumerate(replicas.split())}
    topic_id = ZERO_UUID if old else UUID(int=len(world.topics) + 1)
    world.write_topic(TopicAssignment(topic, topic_id, placed))


@sentence(r"topic (?P<topic>\S+) grows: (?P<replicas>.+)")
def topic_grows(world: World, topic: str, replicas: str) -> None:
    held = world.topics[topic]
    added = {number: ReplicaAssignment(ids(part)) for number, part in enumerate(replicas.split(), len(held.partitions))}
    world.write_topic(replace(held, partitions={**held.partitions, **added}))


@sentence(r"the node of topic (?P<topic>\S+) is garbage(?P<no_more> no more)?")
def topic_is_broken(world: World, topic: str, no_more: str | None) -> None:
    world.broken ^= {topic}
    world.write_topic(world.topics[topic])


@sentence(r"topic (?P<topic>\S+) allows unclean elections")
def unclean_elections_allowed(world: World, topic: str) -> None:
    world.configs[topic] = {"unclean.leader.election.enable": "true"}
    world.enqueue(TopicConfigsChanged(frozenset((topic,))))


@sentence(r"brokers (?P<how>allow|forbid) unclean elections where a topic doesn't say")
def unclean_elections_by_default(world: World, how: str) -> None:
    world.enqueue(UncleanElectionDefaultChanged(how == "allow"))


@sentence(r"deletion of topics? (?P<topics>.+) is asked for")
def deletion_asked(world: World, topics: str) -> None:
    for topic in topics.split(", "):
        world.mark_for_deletion(topic)


# --- partitions --------------------------------------------------------------------------------------------------


@sentence(r"the leader of (?P<tp>\S+) wants the ISR (?P<isr>\S+)(?P<late>, of an old leader epoch)?")
def isr_change_asked(world: World, tp: str, isr: str, late: str | None) -> None:
    state = world.states[partition(tp)]
    epoch = state.leader_epoch - (1 if late else 0)
    wanted = LeaderAndIsr(state.leader, epoch, ids(isr), 0, state.zk_version)
    leader_epoch = world.registered[state.leader].epoch
    world.enqueue(IsrChangeAsked(state.leader, leader_epoch, {partition(tp): wanted}, unheard))


@sentence(r"the leader of (?P<tp>\S+) writes the ISR (?P<isr>\S+) itself")
def isr_written(world: World, tp: str, isr: str) -> None:
    world.write_isr_as_leader(partition(tp), ids(isr))
    world.notify_isr_change(partition(tp))


@sentence(r"the leader of (?P<tp>\S+) will write the ISR (?P<isr>\S+) just before the controller")
def isr_written_in_between(world: World, tp: str, isr: str) -> None:
    world.interference[partition(tp)] = ids(isr)


@sentence(r"reassignment of (?P<tps>.+) to (?P<target>\S+) is asked for")
def reassignment_asked(world: World, tps: str, target: str) -> None:
    world.enqueue(ReassignmentsAsked({tp: ids(target) for tp in partitions(tps)}, unheard))


@sentence(r"the reassignment of (?P<tps>.+) is cancelled")
def reassignment_cancelled(world: World, tps: str) -> None:
    world.enqueue(ReassignmentsAsked(dict.fromkeys(partitions(tps)), unheard))


@sentence(r"an old tool writes the reassignment of (?P<tps>.+) to (?P<target>\S+)")
def reassignment_written(world: World, tps: str, target: str) -> None:
    world.write_reassignments({tp: ids(target) for tp in partitions(tps)})


@sentence(r"reassignments are listed")
def reassignments_listed(world: World) -> None:
    world.enqueue(ReassignmentsListed(None, unheard))


@sentence(r"(?P<kind>a preferred|an unclean) election of (?P<tps>.+) is asked for")
def election_asked(world: World, kind: str, tps: str) -> None:
    election_type = ElectionType.PREFERRED if kind == "a preferred" else ElectionType.UNCLEAN
    world.enqueue(ElectionAsked(None if tps == "all" else frozenset(partitions(tps)), election_type, unheard))


@sentence(r"an old tool writes the preferred election of (?P<tps>.+)")
def preferred_election_written(world: World, tps: str) -> None:
    world.write_preferred_elections(partitions(tps))


@sentence(r"it is time to look at the balance")
def rebalance_due(world: World) -> None:
    world.take_scheduled(RebalanceDue)


# --- the reader looks --------------------------------------------------------------------------------------------


@sentence(r"look")
def look(world: World) -> None:
    """What ZooKeeper holds now."""
    for name, topic in sorted(world.topics.items()):
        for number, assignment in topic.partitions.items():
            state = world.states.get(TopicPartition(name, number))
            held = "no state" if state is None else f"{state_text(state)}  version={state.zk_version}"
            world.lines.append(f"state   {name}-{number}  replicas={assignment_text(assignment)}  {held}")

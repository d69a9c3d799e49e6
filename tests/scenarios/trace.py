"""What the controller saw and did, as lines that read as a story.

Neighbours that say the same of several brokers, partitions or replicas are told once. A partition's moves within one
event are told together, where the last of them happens.
"""

from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any

from odradek.base.errors import ErrorCode, KafkaError
from odradek.broker.controller.core import effects
from odradek.broker.controller.core.effects import Effect, Moved, Send
from odradek.broker.controller.core.events import BrokersChanged, Event
from odradek.broker.zk.znodes import PartitionState, Topic
from odradek.model.topology import LeaderAndIsr, ReplicaAssignment
from odradek.protocol.messages.leader_and_isr import LeaderAndIsrRequest
from odradek.protocol.messages.stop_replica import StopReplicaRequest
from odradek.protocol.messages.update_metadata import UpdateMetadataRequest
from odradek.protocol.schema import Request


class Trace:
    """The lines of one event."""

    def __init__(self) -> None:
        self._entries: list[tuple[str, list[str], str]] = []  # verb, those concerned, what is said of them

    def add(self, effect: Effect) -> None:
        match effect:
            case Moved(_, moves, detail):
                self._add_move(effect.subject_text, moves, detail)
            case Send(broker_id, request):
                self._append("send", f"broker {broker_id}", request_text(request))
            case effects.CreatePartitionStates(states):
                for tp, state in states.items():
                    self._append("create", PartitionState.path(tp), state_text(state))
            case effects.UpdatePartitionStates(states):
                for tp, state in states.items():
                    text = f"if version {state.zk_version}  {state_text(state)}"
                    self._append("write", PartitionState.path(tp), text)
            case effects.WriteAssignment(assignment):
                partitions = "  ".join(f"{n}: {assignment_text(r)}" for n, r in assignment.partitions.items())
                self._append("write", Topic.path(assignment.topic), partitions)
            case effects.Answer(_, value):
                self._append("answer", value_text(value), "")
            case effects.Report(message, level):
                self._append("report", f"{level}: {message}", "")
            case effects.Schedule(event, delay_ms):
                self._append("later", type(event).__name__, f"in {delay_ms} ms")
            case effects.Watch(children, nodes):
                self._append("watch", ", ".join([*(f"{path}/*" for path in children), *nodes]), "")
            case _:
                verb, name = _verb_and_name(type(effect).__name__)
                self._append(verb, name, values_text(effect))

    def _append(self, verb: str, subject: str, text: str) -> None:
        if self._entries and verb == "send" and self._entries[-1][0] == verb and self._entries[-1][2] == text:
            self._entries[-1][1].append(subject)
        else:
            self._entries.append((verb, [subject], text))

    def _add_move(self, subject: str, moves: tuple[str, ...], detail: str) -> None:
        kind, name = subject.split(" ", 1)
        if kind == "partition":
            moves = (*self._earlier_moves(subject, moves[0]), *moves[-1:]) or moves
            self._entries.append(("move", [subject], f"{' → '.join(moves)}  {detail}".rstrip()))
            return
        text = f"{' → '.join(moves)}  {detail}".rstrip()
        if self._entries and self._entries[-1][0] == "move" and self._entries[-1][2] == text:
            self._entries[-1][1].append(name)
        else:
            self._entries.append(("move", [subject], text))

    def _earlier_moves(self, subject: str, from_state: str) -> tuple[str, ...]:
        """Takes back what was told of the partition, if this is where it got to."""
        for index, (verb, subjects, text) in enumerate(self._entries):
            told = tuple(text.split("  ")[0].split(" → "))
            if verb == "move" and subjects == [subject] and told[-1] == from_state:
                del self._entries[index]
                return told
        return (from_state,)

    def lines(self) -> list[str]:
        told = []
        for verb, subjects, text in self._entries:
            first, *more = text.split("\n")
            told += [f"{verb:<7} {_together(subjects)}  {first}".rstrip(), *(f"{'':<10}{line}" for line in more)]
        return told


def event_line(event: Event, live: Iterable[int]) -> str:
    shown = f"  live={sorted(live)}" if isinstance(event, BrokersChanged) else ""
    return f"event   {type(event).__name__}{shown}  {values_text(event)}".rstrip()


def request_text(request: Request) -> str:
    name = type(request).__name__.removesuffix("Request")
    match request:
        case LeaderAndIsrRequest():
            told = [
                f"{topic.topic_name}-{state.partition_index} leader={state.leader} epoch={state.leader_epoch} "
                f"isr={ids_text(state.isr)} replicas={ids_text(state.replicas)}"
                + (f" adding={ids_text(state.adding_replicas)}" if state.adding_replicas else "")
                + (f" removing={ids_text(state.removing_replicas)}" if state.removing_replicas else "")
                + (" recovering" if state.leader_recovery_state else "")
                + (" new" if state.is_new else "")
                for topic in request.topic_states
                for state in topic.partition_states
            ]
        case UpdateMetadataRequest():
            told = [
                f"{topic.topic_name}-{known.partition_index} leader={known.leader}"
                + (f" offline={ids_text(known.offline_replicas)}" if known.offline_replicas else "")
                for topic in request.topic_states
                for known in topic.partition_states
            ]
            name = f"{name}  live={ids_text(broker.id for broker in request.live_brokers)}"
        case StopReplicaRequest():
            told = [
                f"{topic.topic_name}-{stopped.partition_index}" + (" delete" if stopped.delete_partition else "")
                for topic in request.topic_states
                for stopped in topic.partition_states
            ]
        case _:
            raise TypeError(f"the controller doesn't send {name}")
    if not told:
        return name
    return f"{name}  {told[0]}" if len(told) == 1 else "\n".join([name, *told])


def ids_text(brokers: Iterable[int]) -> str:
    return f"[{','.join(map(str, brokers))}]"


def state_text(state: LeaderAndIsr) -> str:
    recovering = " recovering" if state.recovering else ""
    return f"leader={state.leader} epoch={state.leader_epoch} isr={ids_text(state.isr)}{recovering}"


def assignment_text(assignment: ReplicaAssignment) -> str:
    adding = f" adding {ids_text(assignment.adding)}" if assignment.adding else ""
    removing = f" removing {ids_text(assignment.removing)}" if assignment.removing else ""
    return f"{ids_text(assignment.replicas)}{adding}{removing}"


def values_text(thing: Any) -> str:
    values = ((field.name, getattr(thing, field.name)) for field in fields(thing))
    return "  ".join(f"{name}={value_text(value)}" for name, value in values if not callable(value))


def value_text(value: Any) -> str:
    match value:
        case KafkaError():
            return f"{value.code.name}: {value.message}" if value.message else value.code.name
        case ErrorCode():
            return value.name
        case LeaderAndIsr():
            return state_text(value)
        case ReplicaAssignment():
            return assignment_text(value)
        case Mapping():
            return ", ".join(f"{key}: {value_text(held)}" for key, held in sorted(value.items())) or "nothing"
        case set() | frozenset():
            return ", ".join(map(str, sorted(value))) or "nothing"
        case list() | tuple() if not hasattr(value, "_fields"):
            return f"[{', '.join(map(value_text, value))}]"
        case _ if hasattr(value, "endpoints"):
            return f"broker {value.id}, epoch {value.epoch}"
    return str(value)


def _together(subjects: list[str]) -> str:
    """`broker 0, broker 1` as `broker 0, 1`; `replica a-0@0, a-0@1` as `replica a-0@0,1`."""
    if len(subjects) > 1 and subjects[0].startswith("broker "):
        return ", ".join([subjects[0], *(subject.removeprefix("broker ") for subject in subjects[1:])])
    if not subjects[0].startswith("replica "):
        return ", ".join(subjects)
    held: dict[str, list[str]] = {}
    for subject in subjects:
        partition, _, broker = subject.removeprefix("replica ").partition("@")
        held.setdefault(partition, []).append(broker)
    return "replica " + ", ".join(f"{partition}@{','.join(brokers)}" for partition, brokers in held.items())


_VERBS = ("Read", "Open", "Close", "Drop", "Delete", "Draw", "Write")


def _verb_and_name(name: str) -> tuple[str, str]:
    verb = next(verb for verb in _VERBS if name.startswith(verb))
    return verb.lower(), name.removeprefix(verb)

"""Text of events, effects and requests, each written once: log lines shorten it, scenarios show all of it, and the
flight recorder keeps it beside its facts.

    event   BrokersChanged
    move    partition orders-2  ONLINE → OFFLINE → ONLINE  leader 0 → 2
    write   /brokers/topics/orders/partitions/2/state  if version 0  leader=2 epoch=1 isr=[2,1]
    send    broker 1  LeaderAndIsr  orders-2 leader=2 epoch=1 isr=[2,1] replicas=[0,2,1]
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields
from typing import Any, NamedTuple

from odradek.base.errors import ErrorCode, KafkaError
from odradek.broker.controller.core import effects
from odradek.broker.controller.core.effects import Effect
from odradek.broker.controller.core.events import Event
from odradek.broker.zk.znodes import PartitionState, Topic
from odradek.model.topology import Broker, LeaderAndIsr, ReplicaAssignment, TopicPartition
from odradek.protocol.messages.leader_and_isr import LeaderAndIsrRequest
from odradek.protocol.messages.stop_replica import StopReplicaRequest
from odradek.protocol.messages.update_metadata import UpdateMetadataRequest
from odradek.protocol.schema import Request


class EffectLine(NamedTuple):
    """One line of an effect: an effect on several znodes has several."""

    verb: str
    subject: str
    text: str = ""
    partitions: tuple[str, ...] = ()
    """Partitions of a request, each with its state."""


def effect_lines(effect: Effect) -> list[EffectLine]:
    match effect:
        case effects.Moved(_, moves, detail):
            return [EffectLine("move", effect.subject_text, f"{' → '.join(moves)}  {detail}".rstrip())]
        case effects.Send(broker_id, request):
            shown = tuple(f"{tp} {detail}".rstrip() for tp, detail in request_partitions(request))
            return [EffectLine("send", f"broker {broker_id}", request_name(request), shown)]
        case effects.CreatePartitionStates(states):
            return [EffectLine("create", PartitionState.path(tp), state_text(state)) for tp, state in states.items()]
        case effects.UpdatePartitionStates(states):
            return [
                EffectLine("write", PartitionState.path(tp), f"if version {state.zk_version}  {state_text(state)}")
                for tp, state in states.items()
            ]
        case effects.WriteAssignment(assignment):
            placed = "  ".join(f"{n}: {assignment_text(replicas)}" for n, replicas in assignment.partitions.items())
            return [EffectLine("write", Topic.path(assignment.topic), placed)]
        case effects.Answer(_, value):
            return [EffectLine("answer", value_text(value))]
        case effects.Report(message, level):
            return [EffectLine("report", f"{level}: {message}")]
        case effects.Schedule(event, delay_ms):
            return [EffectLine("later", type(event).__name__, f"in {delay_ms} ms")]
        case effects.Watch(children, nodes):
            return [EffectLine("watch", ", ".join([*(f"{path}/*" for path in children), *nodes]))]
    verb, name = _verb_and_name(type(effect).__name__)
    return [EffectLine(verb, name, values_text(effect))]


def event_text(event: Event) -> str:
    return f"{type(event).__name__}  {values_text(event)}".rstrip()


# --- requests ----------------------------------------------------------------------------------------------------


def request_name(request: Request) -> str:
    name = type(request).__name__.removesuffix("Request")
    if isinstance(request, UpdateMetadataRequest):
        return f"{name}  live={ids_text(broker.id for broker in request.live_brokers)}"
    return name


def request_partitions(request: Request) -> Iterator[tuple[TopicPartition, str]]:
    """Yield the partitions of the request, each with its state."""
    if isinstance(request, LeaderAndIsrRequest):
        for led in request.topic_states:
            for state in led.partition_states:
                detail = (
                    f"leader={state.leader} epoch={state.leader_epoch} "
                    f"isr={ids_text(state.isr)} replicas={ids_text(state.replicas)}"
                    + (f" adding={ids_text(state.adding_replicas)}" if state.adding_replicas else "")
                    + (f" removing={ids_text(state.removing_replicas)}" if state.removing_replicas else "")
                    + (" recovering" if state.leader_recovery_state else "")
                    + (" new" if state.is_new else "")
                )
                yield TopicPartition(led.topic_name, state.partition_index), detail
    elif isinstance(request, StopReplicaRequest):
        for stopped in request.topic_states:
            for replica in stopped.partition_states:
                detail = "delete" if replica.delete_partition else ""
                yield TopicPartition(stopped.topic_name, replica.partition_index), detail
    elif isinstance(request, UpdateMetadataRequest):
        for known in request.topic_states:
            for partition in known.partition_states:
                offline = f" offline={ids_text(partition.offline_replicas)}" if partition.offline_replicas else ""
                detail = f"leader={partition.leader}{offline}"
                yield TopicPartition(known.topic_name, partition.partition_index), detail


# --- values ------------------------------------------------------------------------------------------------------


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
    """Format the fields of an event or effect, without functions."""
    values = ((field.name, getattr(thing, field.name)) for field in fields(thing))
    return "  ".join(
        f"{name}={value_text(value)}" for name, value in values if value is not None and not callable(value)
    )


def value_text(value: Any) -> str:
    """Format a value; sets and mappings in an order that doesn't change."""
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
        case Broker():
            return f"broker {value.id}, epoch {value.epoch}"
    return str(value)


_VERBS = ("Read", "Open", "Close", "Drop", "Delete", "Draw", "Write")


def _verb_and_name(name: str) -> tuple[str, str]:
    """`ReadBrokers` as `read Brokers`."""
    verb = next(verb for verb in _VERBS if name.startswith(verb))
    return verb.lower(), name.removeprefix(verb)

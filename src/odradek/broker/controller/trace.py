"""Trace of the controller, as lines of text: the one place through which every event and effect passes.

    event   BrokersChanged
    move    partition orders-2  ONLINE → OFFLINE → ONLINE  leader 0 → 2
    write   UpdatePartitionStates  orders-2 leader=2 epoch=1 isr=[2, 1] if version 0
    send    broker 1  LeaderAndIsr  orders-2 leader=2 epoch=1

At level debug they are in the broker's log; what a person should know is there at its own level.
"""

from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Any

from odradek.base.logs import get_logger
from odradek.broker.controller.core.effects import (
    Answer,
    CreatePartitionStates,
    Effect,
    Moved,
    Report,
    Schedule,
    Send,
    UpdatePartitionStates,
)
from odradek.broker.controller.core.events import Event
from odradek.model.topology import LeaderAndIsr, TopicPartition
from odradek.protocol.messages.leader_and_isr import LeaderAndIsrRequest
from odradek.protocol.messages.stop_replica import StopReplicaRequest
from odradek.protocol.messages.update_metadata import UpdateMetadataRequest
from odradek.protocol.schema import Request

log = get_logger(__name__)

_SHOWN_MAX = 20
_VERBS = {"Read": "read", "Watch": "watch", "Open": "open", "Close": "close"}


class Trace:
    def event(self, event: Event) -> None:
        log.debug("controller", line=_Lazy(event_line, event))

    def effect(self, effect: Effect) -> None:
        if isinstance(effect, Report):
            getattr(log, effect.level)(effect.message)
        else:
            log.debug("controller", line=_Lazy(effect_line, effect))


class _Lazy:
    """Text that costs nothing unless it is shown."""

    __slots__ = ("_subject", "_text")

    def __init__(self, text: Any, subject: object) -> None:
        self._text = text
        self._subject = subject

    def __str__(self) -> str:
        return str(self._text(self._subject))


def event_line(event: Event) -> str:
    return f"event   {type(event).__name__}{values_text(event)}"


def effect_line(effect: Effect) -> str:
    match effect:
        case Moved():
            return f"move    {effect}"
        case Send(broker_id, request):
            return f"send    broker {broker_id}  {request_text(request)}"
        case CreatePartitionStates(states) | UpdatePartitionStates(states):
            return f"write   {type(effect).__name__}  {_shortened(_states(states))}"
        case Answer(_, value):
            return f"answer  {value}"
        case Report(message, level):
            return f"report  {level}: {message}"
        case Schedule(event, delay_ms):
            return f"later   {type(event).__name__}{values_text(event)} in {delay_ms} ms"
    name = type(effect).__name__
    verb = next((verb for start, verb in _VERBS.items() if name.startswith(start)), "write")
    return f"{verb:<7} {name}{values_text(effect)}"


def request_text(request: Request) -> str:
    shown = _shortened(f"{tp} {detail}".rstrip() for tp, detail in request_partitions(request))
    return f"{type(request).__name__.removesuffix('Request')}  {shown}".rstrip()


def request_partitions(request: Request) -> Iterator[tuple[TopicPartition, str]]:
    """Return the partitions of the request, each with its state."""
    if isinstance(request, LeaderAndIsrRequest):
        for led in request.topic_states:
            for state in led.partition_states:
                new = " new" if state.is_new else ""
                detail = f"leader={state.leader} epoch={state.leader_epoch}{new}"
                yield TopicPartition(led.topic_name, state.partition_index), detail
    elif isinstance(request, StopReplicaRequest):
        for stopped in request.topic_states:
            for replica in stopped.partition_states:
                detail = "delete" if replica.delete_partition else ""
                yield TopicPartition(stopped.topic_name, replica.partition_index), detail
    elif isinstance(request, UpdateMetadataRequest):
        for known in request.topic_states:
            for partition in known.partition_states:
                yield TopicPartition(known.topic_name, partition.partition_index), f"leader={partition.leader}"


def _states(states: Mapping[TopicPartition, LeaderAndIsr]) -> Iterator[str]:
    for tp, state in states.items():
        leader = f"leader={state.leader} epoch={state.leader_epoch} isr={list(state.isr)}"
        yield f"{tp} {leader} if version {state.zk_version}"


def _shortened(parts: Iterator[str]) -> str:
    shown = list(parts)
    more = len(shown) - _SHOWN_MAX
    return ", ".join(shown[:_SHOWN_MAX]) + (f" and {more} more" if more > 0 else "")


def values_text(thing: Any) -> str:
    """Format the values, without functions."""
    values = ((field.name, getattr(thing, field.name)) for field in fields(thing))
    return "".join(
        f"  {name}={_value_text(value)}" for name, value in values if value is not None and not callable(value)
    )


def _value_text(value: Any) -> str:
    """Format sets and lists alike, in an order that doesn't change."""
    if isinstance(value, set | frozenset):
        return f"[{', '.join(sorted(map(str, value)))}]"
    return f"[{', '.join(map(str, value))}]" if isinstance(value, list | tuple) else str(value)

"""The controller's events and effects as entries of the flight recorder.

`ControllerLifecycle` hands each event, and each effect with its result, to `record`; the recorder's thread formats it.
Results are recorded too, because the recorded state of the cluster is computed from them.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from odradek.broker.controller.core import effects, events
from odradek.broker.controller.core.effect_text import ids_text, request_partitions, value_text, values_text
from odradek.broker.controller.core.effects import Effect
from odradek.broker.controller.core.events import Event
from odradek.broker.recorder.core.entry import Kind
from odradek.broker.recorder.recorder import Facts, RecordedEvent, Records
from odradek.model.topology import Broker, LeaderAndIsr, PartitionReplica, TopicAssignment, TopicPartition
from odradek.protocol.messages.elect_leaders import ElectionType

NAMED_MAX = 100
"""Most partitions of a request that are named."""
_TEXT_MAX = 1_000


class ControllerTermRecord:
    """Record of one controller's term. Used by the event thread."""

    def __init__(self, records: Records, controller_epoch: int) -> None:
        self._records = records
        self._epoch = controller_epoch
        self._cause: RecordedEvent | None = None

    def event(self, event: Event) -> None:
        self._cause = self._records.record(describe_event, event, controller_epoch=self._epoch)

    def effect(self, effect: Effect, brought: Any) -> None:
        if isinstance(brought, dict):
            brought = dict(brought)  # the decision may still change it
        self._records.record(describe_effect, effect, brought, controller_epoch=self._epoch, cause=self._cause)

    def failed(self, effect: Effect, error: Exception) -> None:
        self._records.record(describe_failure, effect, error, controller_epoch=self._epoch, cause=self._cause)

    def term_changed(self, what: str, text: str) -> None:
        self._records.record(describe_term, what, text, controller_epoch=self._epoch, cause=self._cause)


def describe_term(what: str, text: str) -> Iterator[Facts]:
    yield {"kind": Kind.TERM, "what": what, "text": text}


def describe_failure(effect: Effect, error: Exception) -> Iterator[Facts]:
    text = f"{type(effect).__name__} was not done: {str(error) or type(error).__name__}"
    yield {"kind": Kind.REPORT, "what": "Failed", "text": text[:_TEXT_MAX]}


# --- events ------------------------------------------------------------------------------------------------------


def describe_event(event: Event) -> Iterator[Facts]:
    facts: Facts = {"kind": Kind.EVENT, "what": type(event).__name__}
    match event:
        case events.IsrChangeAsked(broker_id, _, wanted):
            text = "; ".join(f"{tp} wants isr {ids_text(state.isr)}" for tp, state in _first(wanted.items()))
            facts |= {"peer": broker_id, "text": f"broker {broker_id}: {text}"} | _named(wanted)
        case events.ReassignmentsAsked(targets):
            text = "; ".join(f"{tp} → {'cancel' if to is None else ids_text(to)}" for tp, to in _first(targets.items()))
            facts |= {"text": text} | _named(targets)
        case events.ElectionAsked(partitions, election_type):
            kind = "preferred" if election_type == ElectionType.PREFERRED else "unclean"
            facts |= {"text": f"{kind} leaders"} | ({} if partitions is None else _named(partitions))
        case events.ControlledShutdownAsked(broker_id):
            facts |= {"peer": broker_id, "text": f"broker {broker_id} wants to leave"}
        case events.LeaderAndIsrAnswered(broker_id, errors) | events.StopReplicaAnswered(broker_id, errors):
            wrong = [f"{tp} {error.name}" for tp, error in errors.items() if error]
            facts |= {"peer": broker_id, "text": f"broker {broker_id}: {'; '.join(wrong[:NAMED_MAX]) or 'done'}"}
            facts |= _named(errors)
        case _:
            facts |= {"text": values_text(event) or None}
    yield _bounded(facts)


# --- effects -----------------------------------------------------------------------------------------------------


def describe_effect(effect: Effect, brought: Any) -> Iterator[Facts]:
    match effect:
        case effects.ReadBrokers():
            yield {"kind": Kind.READ, "what": "Brokers", "members": tuple(map(_member, brought.values()))}
        case effects.ReadTopics():
            for topic in brought.values():
                yield from _assignments(Kind.READ, topic)
        case effects.ReadPartitionStates():
            yield from _states(Kind.READ, brought)
        case effects.CreatePartitionStates(states) | effects.UpdatePartitionStates(states):
            yield from _states(Kind.WRITE, brought)
            lost = [tp for tp in states if tp not in brought]
            if lost:
                yield _bounded({"kind": Kind.REPORT, "what": "LostRace", "text": "written by others"} | _named(lost))
        case effects.WriteAssignment(assignment):
            if brought:
                yield from _assignments(Kind.WRITE, assignment)
        case effects.DeleteTopicNodes(topic):
            yield {"kind": Kind.WRITE, "what": "TopicDeleted", "topic": topic}
        case _:
            yield _bounded(_plain(effect))


def _plain(effect: Effect) -> Facts:
    """Return the facts of an effect whose result is no part of the picture."""
    what = type(effect).__name__
    match effect:
        case effects.Moved(PartitionReplica(tp, broker)):
            return {"kind": Kind.MOVE, "what": "Moved", "text": str(effect), **_partition(tp), "peer": broker}
        case effects.Moved(TopicPartition() as tp):
            return {"kind": Kind.MOVE, "what": "Moved", "text": str(effect), **_partition(tp), "peer": None}
        case effects.Send(broker_id, request):
            name = type(request).__name__.removesuffix("Request")
            partitions = list(request_partitions(request))
            shown = "; ".join(f"{tp} {detail}".rstrip() for tp, detail in _first(partitions))
            named = _named([tp for tp, _ in partitions])
            return {"kind": Kind.SEND, "what": name, "peer": broker_id, "text": shown or None} | named
        case effects.OpenChannel(broker):
            return {"kind": Kind.CHANNEL, "what": what, "peer": broker.id}
        case effects.CloseChannel(broker_id):
            return {"kind": Kind.CHANNEL, "what": what, "peer": broker_id}
        case effects.Report(message, level):
            return {"kind": Kind.REPORT, "what": level, "text": message}
        case effects.Answer(_, value):
            return {"kind": Kind.ANSWER, "what": type(value).__name__, "text": value_text(value)}
        case effects.Schedule(event, delay_ms):
            return {"kind": Kind.LATER, "what": type(event).__name__, "text": f"in {delay_ms} ms"}
        case effects.Watch(children, nodes):
            return {"kind": Kind.WATCH, "what": what, "text": " ".join((*children, *nodes))}
    kind = Kind.READ if what.startswith("Read") else Kind.WRITE
    return {"kind": kind, "what": what, "text": values_text(effect) or None}


def _states(kind: Kind, states: Mapping[TopicPartition, LeaderAndIsr]) -> Iterator[Facts]:
    for tp, state in states.items():
        yield {
            "kind": kind,
            "what": "PartitionState",
            "topic": tp.topic,
            "partition": tp.partition,
            "leader": state.leader,
            "leader_epoch": state.leader_epoch,
            "isr": state.isr,
            "version": state.zk_version,
        }


def _assignments(kind: Kind, topic: TopicAssignment) -> Iterator[Facts]:
    for number, assignment in topic.partitions.items():
        yield {
            "kind": kind,
            "what": "Assignment",
            "topic": topic.topic,
            "partition": number,
            "replicas": assignment.replicas,
            "adding": assignment.adding,
            "removing": assignment.removing,
        }


def _member(broker: Broker) -> dict[str, Any]:
    endpoint = broker.endpoints[0] if broker.endpoints else None
    return {
        "id": broker.id,
        "host": None if endpoint is None else endpoint.host,
        "port": None if endpoint is None else endpoint.port,
        "rack": broker.rack,
        "epoch": broker.epoch,
    }


def _partition(tp: TopicPartition) -> Facts:
    return {"topic": tp.topic, "partition": tp.partition}


def _named(partitions: Iterable[TopicPartition]) -> Facts:
    known = list(partitions)
    return {"partitions": tuple(map(str, known[:NAMED_MAX])), "count": len(known)}


def _first(items: Iterable[Any]) -> list[Any]:
    return list(items)[:NAMED_MAX]


def _bounded(facts: Facts) -> Facts:
    text = facts.get("text")
    return facts | {"text": f"{text[:_TEXT_MAX]}…"} if text is not None and len(text) > _TEXT_MAX else facts

"""Rules by which a producer of each kind talks to its brokers: requests in flight, sequences, retries.

The models of the simulator follow them, which is checked in every story; recorded conversations of the real clients are
checked by the same rules, so that neither the models nor the rules say what the real ones don't do.

A recording is made between client and broker. There, an answer is seen before the client has it, and an answer may
never reach a client whose connection closes. So an error counts as known to the client after `grace_ms`, and a batch
may be sent again that was acknowledged on a connection that is closed.
"""

from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

from odradek.base.errors import ErrorCode, KafkaError
from odradek.model.topology import TopicPartition
from odradek.sim.checkers.violation import Violation

IN_FLIGHT_MAX = 5
_STORED = frozenset({ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER})


class ClientKind(Enum):
    JAVA = "java"
    LIBRDKAFKA = "librdkafka"


@dataclass(frozen=True, slots=True)
class BatchSent:
    producer_id: int
    epoch: int
    sequence: int
    count: int


@dataclass(slots=True)
class _Batch:
    count: int
    broker: int = -1  # to which it was sent last
    in_flight: Hashable = None  # the connection
    acknowledged_on: Hashable = None
    refused_ms: int = -1  # time of the last error


@dataclass(slots=True)
class _Sequence:
    """The batches of one partition and epoch, by their sequences, in order."""

    batches: dict[int, _Batch] = field(default_factory=dict)
    end: int = 0
    overtaken: set[int] = field(default_factory=set)  # batches that were sent before the one in front of them


class Conversation:
    def __init__(self, kind: ClientKind, grace_ms: int = 0) -> None:
        self.kind = kind
        self.requests = 0
        self.sent_again = 0
        self._grace_ms = grace_ms
        self._partitions: dict[tuple[int, int, TopicPartition], _Sequence] = defaultdict(_Sequence)
        self._requests: dict[Hashable, dict[Hashable, dict[TopicPartition, BatchSent]]] = defaultdict(dict)
        self._closed: set[Hashable] = set()

    # ---- events

    def sent(
        self,
        connection: Hashable,
        broker: int,
        request: Hashable,
        batches: Mapping[TopicPartition, BatchSent],
        now_ms: int = 0,
    ) -> None:
        self.requests += 1
        if len(self._requests[connection]) >= IN_FLIGHT_MAX:
            raise Violation(f"{self._name}: more than {IN_FLIGHT_MAX} requests are in flight to broker {broker}")
        if self.kind is ClientKind.LIBRDKAFKA and len(batches) > 1:
            raise Violation(f"{self._name}: one request has batches of {list(map(str, batches))}")
        self._requests[connection][request] = dict(batches)
        for tp, sent in batches.items():
            held = self._partitions[sent.producer_id, sent.epoch, tp]
            self._check_sent(tp, held, sent, broker, now_ms)
            batch = held.batches[sent.sequence]
            batch.broker, batch.in_flight, batch.refused_ms = broker, connection, -1

    def answered(
        self, connection: Hashable, request: Hashable, answers: Mapping[TopicPartition, ErrorCode], now_ms: int = 0
    ) -> None:
        for tp, sent in self._requests[connection].pop(request).items():
            held = self._partitions[sent.producer_id, sent.epoch, tp]
            batch = held.batches[sent.sequence]
            batch.in_flight = None
            if answers[tp] not in _STORED:
                batch.refused_ms = now_ms
                continue
            batch.acknowledged_on = connection
            if self.kind is ClientKind.LIBRDKAFKA:
                for sequence, before in held.batches.items():
                    if sequence < sent.sequence and before.acknowledged_on is None:
                        before.acknowledged_on = connection

    def closed(self, connection: Hashable) -> None:
        self._closed.add(connection)
        for batches in self._requests.pop(connection, {}).values():
            for tp, sent in batches.items():
                batch = self._partitions[sent.producer_id, sent.epoch, tp].batches[sent.sequence]
                if batch.in_flight == connection:
                    batch.in_flight = None

    # ---- rules

    @property
    def _name(self) -> str:
        return f"producer of kind {self.kind.value}"

    def _check_sent(self, tp: TopicPartition, held: _Sequence, sent: BatchSent, broker: int, now_ms: int) -> None:
        where = f"{self._name}: sequence {sent.sequence} of {tp}, epoch {sent.epoch},"
        batch = held.batches.get(sent.sequence)
        if batch is None:
            self._check_new(where, held, sent)
            is_new = True
        else:
            self.sent_again += 1
            is_new = False
            if batch.count != sent.count:
                raise Violation(f"{where} has {sent.count} records when it is sent again, {batch.count} before")
            if batch.in_flight is not None:
                raise Violation(f"{where} is sent again while it is in flight")
            if batch.acknowledged_on is not None and batch.acknowledged_on not in self._closed:
                raise Violation(f"{where} is sent again after it was acknowledged")
        if self.kind is ClientKind.JAVA:
            self._check_java(where, held, sent, now_ms, is_new=is_new)
        else:
            self._check_librdkafka(where, held, sent, broker, now_ms, is_new=is_new)

    @staticmethod
    def _check_new(where: str, held: _Sequence, sent: BatchSent) -> None:
        if sent.sequence != held.end:
            if sent.sequence < held.end or sent.epoch == 0:
                raise Violation(f"{where} is new, {held.end} was to be next")
            held.batches[held.end] = _Batch(sent.sequence - held.end)  # numbered anew, and overtaken
        held.batches[sent.sequence] = _Batch(sent.count)
        held.end = sent.sequence + sent.count

    def _check_java(self, where: str, held: _Sequence, sent: BatchSent, now_ms: int, *, is_new: bool) -> None:
        if is_new:
            if waiting := self._waiting(held, sent.sequence, now_ms):
                raise Violation(f"{where} is new, and {waiting} are to be sent again")
            return
        unacknowledged = [s for s, b in held.batches.items() if s < sent.sequence and b.acknowledged_on is None]
        if unacknowledged:
            raise Violation(f"{where} is sent again, and {unacknowledged} before it are not acknowledged")

    def _check_librdkafka(
        self, where: str, held: _Sequence, sent: BatchSent, broker: int, now_ms: int, *, is_new: bool
    ) -> None:
        waiting = self._waiting(held, sent.sequence, now_ms)
        if len(waiting) == 1 and held.batches[waiting[0]].broker != broker:
            held.overtaken.add(sent.sequence)  # the race of its threads when a leader moves
        elif waiting:
            raise Violation(f"{where} is sent, and {waiting} are to be sent before")
        if is_new:
            return
        later = [s for s, b in held.batches.items() if s > sent.sequence and b.in_flight is not None]
        if any(sequence not in held.overtaken for sequence in later):
            raise Violation(f"{where} is sent again while {later} are in flight")

    def _waiting(self, held: _Sequence, before: int, now_ms: int) -> list[int]:
        """Batches before that one which are neither stored nor in flight, as far as the client can know."""
        return [
            sequence
            for sequence, batch in held.batches.items()
            if sequence < before
            and batch.acknowledged_on is None
            and batch.in_flight is None
            and not (batch.refused_ms >= 0 and now_ms - batch.refused_ms < self._grace_ms)
        ]


def error_of(outcome: object) -> ErrorCode:
    return outcome.code if isinstance(outcome, KafkaError) else ErrorCode.NONE


def replay(kind: ClientKind, recorded: Sequence[Mapping[str, object]], grace_ms: int) -> Conversation:
    """Check a recording, event by event; see tests/cluster/faults/conversation_recorder.py for its format."""
    conversation = Conversation(kind, grace_ms)
    for event in closed_at_once(recorded):
        connection, at_ms = event["connection"], _number(event["ms"])
        assert isinstance(connection, int)
        if event["event"] == "closed":
            conversation.closed(connection)
            continue
        request, batches = _number(event["request"]), event["batches"]
        assert isinstance(batches, dict)
        if event["event"] == "sent":
            sent = {_partition(name): BatchSent(*numbers) for name, numbers in batches.items()}
            conversation.sent(connection, _number(event["broker"]), request, sent, at_ms)
        else:
            answers = {_partition(name): ErrorCode(error) for name, error in batches.items()}
            conversation.answered(connection, request, answers, at_ms)
    return conversation


def closed_at_once(recorded: Sequence[Mapping[str, object]]) -> list[Mapping[str, object]]:
    """Put the end of each connection right behind its last request or answer: the client may have closed it then."""
    events = [event for event in recorded if event["event"] != "closed"]
    closed = {event["connection"]: event for event in recorded if event["event"] == "closed"}
    last = {event["connection"]: number for number, event in enumerate(events)}
    ordered: list[Mapping[str, object]] = []
    for number, event in enumerate(events):
        ordered.append(event)
        connection = event["connection"]
        if last[connection] == number and connection in closed:
            ordered.append(closed[connection])
    return ordered


def _number(value: object) -> int:
    assert isinstance(value, int)
    return value


def _partition(name: str) -> TopicPartition:
    topic, _, number = name.rpartition("-")
    return TopicPartition(topic, int(number))

"""Batches of one connection that were refused, and the batches behind them.

A producer has up to five requests in flight. A broker that is about to lead refuses the first one with
NOT_LEADER_OR_FOLLOWER, becomes leader, and finds the second one in the same socket. Its sequence has a gap, and the
answer OUT_OF_ORDER_SEQUENCE_NUMBER makes librdkafka raise its epoch and renumber the unacknowledged records of all its
partitions. A record of another partition that was stored, and whose acknowledgement got lost, is then stored twice: no
broker can recognise it under the new epoch. And where the producer has no state yet, the second batch may look like a
first one, and is acknowledged before the batch that it depends on is stored.

So a batch behind a refused one gets the same retriable error, until the refused batch is sent again. Clients then retry
all of them in order and under the same epoch. The memory belongs to the connection and ends with it: a client that
reconnects sends its unacknowledged batches from the first one on.

When leadership has moved, the batch before the gap may have been refused by the former leader, or lost with it, and be
on its way here: librdkafka may send the batch behind it first. So where leadership may have moved, a gap gets the
benefit of the doubt a few times, as NOT_LEADER_OR_FOLLOWER, before it is out of order. So does the first batch of a
producer that is not known but may have been, before it is accepted. A leader of several replicas can't know that
leadership has not moved: it may have moved away and back before this broker received a request.
"""

from typing import Final, NamedTuple, TypeAlias

from odradek.base.errors import ErrorCode, KafkaError
from odradek.broker.log.core.producer_state import ProducerStates
from odradek.model.topology import TopicPartition
from odradek.protocol.batch_survey import IdempotentProducer, idempotent_producer
from odradek.protocol.record_batch import SEQUENCES

RETRIED: Final = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.CONCURRENT_TRANSACTIONS,
    }
)
"""Errors after which a client sends the same batch again, and which say that it is not in the log."""

REPEATS_MAX: Final = 16
"""More than a client has in flight: one that sends on without the refused batch learns that its sequence is wrong."""

DOUBTS_MAX: Final = 5
"""Number of times that a gap is answered as if the batch before it had been refused here."""

REFUSALS_MAX: Final = 1000


class Refusal(NamedTuple):
    sequence: int
    code: ErrorCode
    message: str
    repeats_left: int
    doubts_left: int = 0
    """Number of times that the batch itself is refused once more: where its producer is not known, and may have
    been."""


Key: TypeAlias = tuple[TopicPartition, int, int]  # partition, producer id, producer epoch


class RefusedBatches(dict[Key, Refusal]):
    """The first refused batch of each producer and partition. Empty, and so false, on nearly every connection."""

    __slots__ = ()

    def check(self, tp: TopicPartition, records: memoryview, states: ProducerStates) -> None:
        """Raise the error of the refused batch if this one comes behind it and nothing tells that it was stored since.

        A producer that is known in the partition is left to the check of its sequence, and to `explain`.
        """
        producer = idempotent_producer(records)
        refusal = self._before(tp, producer)
        if refusal is None or producer is None:
            return
        entry = states.entries.get(producer.id)
        if entry is None or entry.epoch != producer.epoch:
            raise self._repeated(tp, producer, refusal)

    def explain(
        self, tp: TopicPartition, records: memoryview, error: KafkaError, states: ProducerStates | None = None
    ) -> KafkaError:
        """The error to answer with: that of the refused batch where the sequence is wrong only because of it.

        `states` is given where leadership may have moved, and with it the benefit of the doubt.
        """
        if error.code in RETRIED:
            self.note(tp, records, error)
        elif error.code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER and (self or states is not None):
            producer = idempotent_producer(records)
            if producer is None:
                return error
            refusal = self._before(tp, producer)
            if refusal is None and states is not None:
                refusal = _doubt(producer, states.next_sequence(producer.id, producer.epoch))
            if refusal is not None:
                return self._repeated(tp, producer, refusal)
        return error

    def doubt(self, tp: TopicPartition, records: memoryview) -> KafkaError | None:
        """Return the error for a first batch whose producer is not known but may have been; None: it is accepted.

        The batch before it may be on its way. A batch that keeps coming alone is the first one of its producer.
        """
        producer = idempotent_producer(records)
        if producer is None:
            return None
        key = tp, producer.id, producer.epoch
        refusal = self.get(key)
        if refusal is not None and _is_behind(producer.sequence, refusal.sequence):
            return self._repeated(tp, producer, refusal)
        if refusal is None or refusal.sequence != producer.sequence:
            refusal = Refusal(producer.sequence, ErrorCode.NOT_LEADER_OR_FOLLOWER, "", REPEATS_MAX, DOUBTS_MAX)
        if not refusal.doubts_left:
            return None
        self[key] = refusal._replace(doubts_left=refusal.doubts_left - 1)
        return KafkaError(refusal.code, refusal.message)

    def note(self, tp: TopicPartition, records: memoryview, error: KafkaError) -> None:
        """Remember the refused batch, unless one before it is remembered."""
        producer = idempotent_producer(records)
        if producer is None or error.code not in RETRIED or self._before(tp, producer) is not None:
            return
        if len(self) >= REFUSALS_MAX:
            self.pop(next(iter(self)), None)
        self[tp, producer.id, producer.epoch] = Refusal(producer.sequence, error.code, error.message, REPEATS_MAX)

    def forget(self, tp: TopicPartition, records: memoryview) -> None:
        """Forget the producer's refused batches: one of its batches is in the log, so that they were sent again or are
        not missed."""
        if (producer := idempotent_producer(records)) is not None:
            self.pop((tp, producer.id, producer.epoch), None)

    def _before(self, tp: TopicPartition, producer: IdempotentProducer | None) -> Refusal | None:
        """The refused batch that this one comes behind."""
        if producer is None:
            return None
        refusal = self.get((tp, producer.id, producer.epoch))
        return refusal if refusal is not None and _is_behind(producer.sequence, refusal.sequence) else None

    def _repeated(self, tp: TopicPartition, producer: IdempotentProducer, refusal: Refusal) -> KafkaError:
        key = tp, producer.id, producer.epoch
        if refusal.repeats_left:
            self[key] = refusal._replace(repeats_left=refusal.repeats_left - 1)
            return KafkaError(refusal.code, refusal.message)
        return KafkaError(
            ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
            f"Producer {producer.id} with epoch {producer.epoch} sent sequence {producer.sequence}, "
            f"{refusal.sequence} was refused with {refusal.code.name} and not sent again",
        )


def _doubt(producer: IdempotentProducer, next_sequence: int) -> Refusal | None:
    """Treat the batch before the gap as refused; None: there is no gap, the sequence was there before."""
    if not _is_behind(producer.sequence, next_sequence):
        return None
    return Refusal(next_sequence, ErrorCode.NOT_LEADER_OR_FOLLOWER, "", DOUBTS_MAX)


def _is_behind(sequence: int, other: int) -> bool:
    return 0 < (sequence - other) % SEQUENCES < SEQUENCES // 2

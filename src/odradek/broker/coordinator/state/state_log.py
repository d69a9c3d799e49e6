"""An internal topic as a coordinator uses it: the partition of a key, appending, reading back."""

from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import Final, TypeAlias

from odradek.base.clock import Clock
from odradek.base.errors import ErrorCode, KafkaError
from odradek.base.value_classes import dataclass
from odradek.broker.coordinator.state.core.state_batch import TransactionalProducer, state_batch
from odradek.broker.log.core.append_result import AppendResult
from odradek.broker.log.core.verification import VERIFICATION_OFF, VerificationGuard
from odradek.broker.log.files.partition_log import PartitionLog
from odradek.broker.replication.leader.transactional_appends import TransactionalProduce
from odradek.broker.replication.partition_table import PartitionTable
from odradek.model.metadata_image import MetadataCache
from odradek.model.topology import TopicPartition
from odradek.protocol.compression import Codec
from odradek.protocol.record_batch import BatchHeader, batches

_HASHED_MAX: Final = 10_000

EncodedRecord: TypeAlias = tuple[bytes, bytes | None]
"""A key and its value; None takes away what the key had."""


@dataclass(frozen=True, slots=True)
class StateTopic:
    """Settings of an internal topic."""

    name: str
    partitions_to_be: int
    """Number of partitions that the topic will be created with, for questions before that."""
    acks: int
    timeout_ms: int
    codec: Codec
    load_bytes: int


class StateLog:
    def __init__(self, topic: StateTopic, replicas: PartitionTable, metadata: MetadataCache, clock: Clock) -> None:
        self.topic = topic.name
        self._settings = topic
        self._replicas = replicas
        self._metadata = metadata
        self._clock = clock

    def partition_for(self, key: str) -> int:
        topic = self._metadata.image.topics.get(self.topic)
        count = self._settings.partitions_to_be if topic is None else len(topic.partitions)
        hashed = java_hash(key)
        return 0 if hashed == -(2**31) else abs(hashed) % count

    def append(
        self,
        partition: int,
        records: Iterable[EncodedRecord],
        done: Callable[[ErrorCode], None],
        producer: TransactionalProducer | None = None,
        guard: VerificationGuard | None = None,
    ) -> None:
        """Append the records, all or none. `done` is called once, now or later, when it is known whether they are there
        to stay."""
        batch = state_batch(records, self._clock.now_ms(), self._settings.codec, producer)
        self._replicas.append_own(
            TopicPartition(self.topic, partition),
            memoryview(batch),
            acks=self._settings.acks,
            timeout_ms=self._settings.timeout_ms,
            done=lambda error, _: done(error),
            guard=guard,
        )

    def verify(
        self,
        partition: int,
        producer: TransactionalProducer,
        done: Callable[[ErrorCode, VerificationGuard | None], None],
        *,
        add: bool,
    ) -> None:
        """Ask the producer's coordinator whether the partition is part of its transaction, or with `add` to make it so,
        unless that is known.
        `done` is called once; a guard that it gets is to be used by `append`, or given back by `abandon`."""
        try:
            found = self._replicas.find(TopicPartition(self.topic, partition))
        except KafkaError as error:
            done(error.code, None)
            return
        transaction = TransactionalProduce(
            producer.transactional_id, producer.producer_id, producer.producer_epoch, adds_partitions=add
        )
        self._replicas.transactions.verify_own(found, transaction, done)

    def abandon(self, partition: int, producer: TransactionalProducer, guard: VerificationGuard | None) -> None:
        if guard is not None and guard is not VERIFICATION_OFF:
            found = self._replicas.partitions.get(TopicPartition(self.topic, partition))
            if found is not None:
                found.end_verification(producer.producer_id, guard)

    def is_new(self, partition: int) -> bool:
        """Return whether nothing was ever written to it, as far as is known."""
        found = self._replicas.partitions.get(TopicPartition(self.topic, partition))
        return found is not None and found.log.log_end_offset == 0

    def when_committed(self, partition: int, done: Callable[[ErrorCode], None]) -> None:
        """Call `done` once, now or later: when the records that the log has now are committed, or with an error, when
        this broker doesn't lead the partition any more."""

        def settled(error: ErrorCode, _: AppendResult | None) -> None:
            if error is ErrorCode.REQUEST_TIMED_OUT:
                self.when_committed(partition, done)
            elif error is ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND:
                done(ErrorCode.NONE)  # on the whole ISR, of whatever size
            else:
                done(error)

        tp = TopicPartition(self.topic, partition)
        self._replicas.await_commit(tp, timeout_ms=self._settings.timeout_ms, done=settled)

    def read(self, partition: int) -> Iterator[tuple[bytes, int, BatchHeader]]:
        """Every batch up to the end of the log, a piece at a time."""
        return _read(self._replicas.find(TopicPartition(self.topic, partition)).log, self._settings.load_bytes)


def _read(partition_log: PartitionLog, max_bytes: int) -> Iterator[tuple[bytes, int, BatchHeader]]:
    offset = partition_log.log_start_offset
    while offset < (end := partition_log.log_end_offset):
        buf = partition_log.read(offset, max_bytes, upper_bound=end).records.read()
        before = offset
        for pos, header in batches(buf, partial_tail=True):
            yield buf, pos, header
            offset = header.next_offset
        if offset == before:
            if buf:
                raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"No batch at offset {offset} of {partition_log.partition}")
            break


@lru_cache(maxsize=_HASHED_MAX)  # called with each request of a key
def java_hash(text: str) -> int:
    """Java's String.hashCode: every broker of a cluster must find the same partition for a key."""
    hashed = 0
    units = text.encode("utf-16-be")
    for high, low in zip(units[::2], units[1::2], strict=True):
        hashed = (31 * hashed + (high << 8 | low)) & 0xFFFF_FFFF
    return hashed - (hashed >> 31 << 32)

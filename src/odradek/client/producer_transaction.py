"""A transaction of a producer of ours: begun with an id, written to by `RecordSender`s, then committed or aborted.

Several processes may write to it, each to partitions of its own: they get a `TransactionHandle`, and the process that
began it ends it.

Requests that brokers of Kafka 3.9 know, so that it works with brokers of either kind and either version of
transactions: partitions are named before they are written to.
"""

from collections.abc import Collection, Mapping
from functools import partial
from typing import NamedTuple

from odradek.base.errors import ErrorCode, KafkaError
from odradek.client.cluster_client import ClusterClient
from odradek.client.group_admin import find_coordinator
from odradek.model.topology import TopicPartition
from odradek.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from odradek.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
)
from odradek.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from odradek.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from odradek.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from odradek.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
)

_TRANSACTION = 1
_ADD_VERSION = 3  # later ones are for brokers
_OFFSETS_VERSION = 3
_END_VERSION = 4  # later ones begin the next transaction


class ProducerId(NamedTuple):
    id: int
    epoch: int


class TransactionHandle(NamedTuple):
    """A transaction that another process has begun and will end."""

    transactional_id: str
    producer: ProducerId


# Answers to a producer that has lost its transaction: a newer producer has begun one, or its time was up.
FENCED = frozenset(
    {
        ErrorCode.PRODUCER_FENCED,
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
        ErrorCode.INVALID_TXN_STATE,
    }
)


class ProducerTransaction:
    def __init__(
        self, client: ClusterClient, transactional_id: str, timeout_ms: int, producer: ProducerId | None = None
    ) -> None:
        """Fence a former producer of the id, and abort its open transaction. With `producer`, joins its transaction."""
        self._client = client
        self.transactional_id = transactional_id
        self._partitions: set[TopicPartition] = set()
        self._is_shared = False
        self.producer = client.retrying(partial(self._init, timeout_ms)) if producer is None else producer

    def share(self) -> TransactionHandle:
        """The transaction as a value, for other processes to write in."""
        self._is_shared = True
        return TransactionHandle(self.transactional_id, self.producer)

    def add(self, partitions: Collection[TopicPartition]) -> None:
        """Make the partitions part of the transaction, before they are written to."""
        if new := set(partitions) - self._partitions:
            self._client.retrying(partial(self._add, new))
            self._partitions |= new

    def end(self, *, commit: bool) -> None:
        if self._partitions or self._is_shared:
            self._client.retrying(partial(self._end, commit=commit))

    def commit_offsets(self, group: str, offsets: Mapping[TopicPartition, int], metadata: str) -> None:
        """Commit these offsets of the group with the transaction."""
        topics: dict[str, list[TxnOffsetCommitRequestPartition]] = {}
        for tp, offset in offsets.items():
            position = TxnOffsetCommitRequestPartition(
                partition_index=tp.partition, committed_offset=offset, committed_metadata=metadata
            )
            topics.setdefault(tp.topic, []).append(position)
        request = TxnOffsetCommitRequest(
            transactional_id=self.transactional_id,
            group_id=group,
            producer_id=self.producer.id,
            producer_epoch=self.producer.epoch,
            member_id="",
            topics=[TxnOffsetCommitRequestTopic(name=name, partitions=found) for name, found in topics.items()],
        )
        self._client.retrying(partial(self._add_offsets, group))
        self._client.retrying(partial(self._commit_offsets, group, request))

    def _init(self, timeout_ms: int) -> ProducerId:
        request = InitProducerIdRequest(
            transactional_id=self.transactional_id, transaction_timeout_ms=timeout_ms, producer_id=-1, producer_epoch=-1
        )
        answer = self._client.ask_broker(self._coordinator(), request, InitProducerIdResponse)
        self._check(answer.error_code)
        return ProducerId(answer.producer_id, answer.producer_epoch)

    def _add(self, partitions: set[TopicPartition]) -> None:
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.transactional_id,
            v3_and_below_producer_id=self.producer.id,
            v3_and_below_producer_epoch=self.producer.epoch,
            v3_and_below_topics=[
                AddPartitionsToTxnTopic(name=name, partitions=[tp.partition for tp in partitions if tp.topic == name])
                for name in {tp.topic for tp in partitions}
            ],
        )
        answer = self._client.ask_broker(self._coordinator(), request, AddPartitionsToTxnResponse, _ADD_VERSION)
        codes = [
            each.partition_error_code for t in answer.results_by_topic_v3_and_below for each in t.results_by_partition
        ]
        # where one is refused, the others are answered OPERATION_NOT_ATTEMPTED
        for code in sorted(codes, key=lambda code: code == ErrorCode.OPERATION_NOT_ATTEMPTED):
            self._check(code)

    def _add_offsets(self, group: str) -> None:
        request = AddOffsetsToTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=self.producer.id,
            producer_epoch=self.producer.epoch,
            group_id=group,
        )
        answer = self._client.ask_broker(self._coordinator(), request, AddOffsetsToTxnResponse, _OFFSETS_VERSION)
        self._check(answer.error_code)

    def _commit_offsets(self, group: str, request: TxnOffsetCommitRequest) -> None:
        coordinator = find_coordinator(self._client, group)
        answer = self._client.ask_broker(coordinator, request, TxnOffsetCommitResponse, _OFFSETS_VERSION)
        for topic in answer.topics:
            for partition in topic.partitions:
                self._check(partition.error_code)

    def _end(self, *, commit: bool) -> None:
        request = EndTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=self.producer.id,
            producer_epoch=self.producer.epoch,
            committed=commit,
        )
        self._check(self._client.ask_broker(self._coordinator(), request, EndTxnResponse, _END_VERSION).error_code)

    def _coordinator(self) -> int:
        asked = FindCoordinatorRequest(key_type=_TRANSACTION, coordinator_keys=[self.transactional_id])
        (found,) = self._client.ask_any(asked, FindCoordinatorResponse).coordinators
        self._check(found.error_code)
        return found.node_id

    def _check(self, error_code: int) -> None:
        if error_code:
            code = ErrorCode(error_code)
            raise KafkaError(code, f"transactional id '{self.transactional_id}': {code.name}")

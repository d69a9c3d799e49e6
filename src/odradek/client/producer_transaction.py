"""A transaction of a producer of ours: begun with an id, written to by `RecordSender`s, then committed or aborted.

Requests that brokers of Kafka 3.9 know, so that it works with brokers of either kind and either version of
transactions: partitions are named before they are written to.
"""

from collections.abc import Collection
from functools import partial
from typing import NamedTuple

from odradek.base.errors import ErrorCode, KafkaError
from odradek.client.cluster_client import ClusterClient
from odradek.model.topology import TopicPartition
from odradek.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
)
from odradek.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from odradek.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from odradek.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

_TRANSACTION = 1
_ADD_VERSION = 3  # later ones are for brokers
_END_VERSION = 4  # later ones begin the next transaction


class ProducerId(NamedTuple):
    id: int
    epoch: int


class ProducerTransaction:
    def __init__(self, client: ClusterClient, transactional_id: str, timeout_ms: int) -> None:
        """Fences a former producer of the id, and aborts what it left open."""
        self._client = client
        self.transactional_id = transactional_id
        self._partitions: set[TopicPartition] = set()
        self.producer = client.retrying(partial(self._init, timeout_ms))

    def add(self, partitions: Collection[TopicPartition]) -> None:
        """Make the partitions part of the transaction, before they are written to."""
        if new := set(partitions) - self._partitions:
            self._client.retrying(partial(self._add, new))
            self._partitions |= new

    def end(self, *, commit: bool) -> None:
        if self._partitions:
            self._client.retrying(partial(self._end, commit=commit))

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
        for topic in answer.results_by_topic_v3_and_below:
            for each in topic.results_by_partition:
                self._check(each.partition_error_code)

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

"""Requests of a transactional producer, each by hand."""

from collections.abc import Callable
from typing import Any

from odradek.base.errors import ErrorCode
from odradek.client.broker_client import BrokerClient
from odradek.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from odradek.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from odradek.protocol.messages.describe_producers import DescribeProducersRequest, TopicRequest
from odradek.protocol.messages.describe_transactions import DescribeTransactionsRequest
from odradek.protocol.messages.end_txn import EndTxnRequest
from odradek.protocol.messages.find_coordinator import FindCoordinatorRequest
from odradek.protocol.messages.init_producer_id import InitProducerIdRequest
from odradek.protocol.messages.list_transactions import ListTransactionsRequest
from odradek.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopics
from odradek.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from odradek.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from waiting import eventually

from .own_broker import batch_of, produce_request

PATIENCE_S = 30
TRY_AGAIN = {
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.NOT_ENOUGH_REPLICAS,
}


class TransactionalClient:
    """The id and epoch are those of the last InitProducerId, or of the last EndTxn that answered some."""

    def __init__(self, client: BrokerClient, topic: str, name: str) -> None:
        self.client, self.topic, self.name = client, topic, name
        self.id = self.epoch = -1

    def find(self, kind: int, key: str) -> ErrorCode:
        def ask() -> ErrorCode:
            answer = self.client.send(FindCoordinatorRequest(key_type=kind, coordinator_keys=[key]))
            return ErrorCode(answer.coordinators[0].error_code)

        return settled(ask)

    def init(self, name: str | None = None, timeout_ms: int = 60_000, version: int = 5, **expected: int) -> ErrorCode:
        request = InitProducerIdRequest(
            transactional_id=self.name if name is None else name, transaction_timeout_ms=timeout_ms, **expected
        )

        def ask() -> ErrorCode:
            answer = self.client.send(request, version)
            if not answer.error_code:
                self.id, self.epoch = answer.producer_id, answer.producer_epoch
            return ErrorCode(answer.error_code)

        return settled(ask)

    def add(
        self,
        *partitions: int,
        version: int = 3,
        epoch: int | None = None,
        id: int | None = None,
        name: str | None = None,
    ) -> list[ErrorCode]:
        topic = AddPartitionsToTxnTopic(name=self.topic, partitions=list(partitions))
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.name if name is None else name,
            v3_and_below_producer_id=self.id if id is None else id,
            v3_and_below_producer_epoch=self.epoch if epoch is None else epoch,
            v3_and_below_topics=[topic],
        )

        def ask() -> list[ErrorCode]:
            answer = self.client.send(request, version)
            results = answer.results_by_topic_v3_and_below[0].results_by_partition
            return [ErrorCode(each.partition_error_code) for each in sorted(results, key=lambda e: e.partition_index)]

        return settled(ask)

    def verify(self, *partitions: int, version: int = 5, epoch: int | None = None) -> list[ErrorCode]:
        transaction = AddPartitionsToTxnTransaction(
            transactional_id=self.name,
            producer_id=self.id,
            producer_epoch=self.epoch if epoch is None else epoch,
            verify_only=True,
            topics=[AddPartitionsToTxnTopic(name=self.topic, partitions=list(partitions))],
        )
        answer = self.client.send(AddPartitionsToTxnRequest(transactions=[transaction]), version)
        results = answer.results_by_transaction[0].topic_results[0].results_by_partition
        return [ErrorCode(each.partition_error_code) for each in sorted(results, key=lambda e: e.partition_index)]

    def add_offsets(self, group: str, version: int = 4, epoch: int | None = None) -> ErrorCode:
        request = AddOffsetsToTxnRequest(
            transactional_id=self.name,
            producer_id=self.id,
            producer_epoch=self.epoch if epoch is None else epoch,
            group_id=group,
        )
        return settled(lambda: ErrorCode(self.client.send(request, version).error_code))

    def commit_offsets(self, group: str, *partitions: int, version: int = 4, **member: Any) -> list[ErrorCode]:
        positions = [
            TxnOffsetCommitRequestPartition(partition_index=index, committed_offset=7, committed_metadata="")
            for index in partitions
        ]
        request = TxnOffsetCommitRequest(
            transactional_id=self.name,
            group_id=group,
            producer_id=self.id,
            producer_epoch=member.pop("epoch", self.epoch),
            topics=[TxnOffsetCommitRequestTopic(name=self.topic, partitions=positions)],
            **member,
        )

        def ask() -> list[ErrorCode]:
            answer = self.client.send(request, version)
            results = answer.topics[0].partitions
            return [ErrorCode(each.error_code) for each in sorted(results, key=lambda e: e.partition_index)]

        return settled(ask)

    def committed(self, group: str, *, stable: bool) -> tuple[int, ErrorCode]:
        asked = OffsetFetchRequestGroup(
            group_id=group, topics=[OffsetFetchRequestTopics(name=self.topic, partition_indexes=[0])]
        )
        answer = self.client.send(OffsetFetchRequest(groups=[asked], require_stable=stable), 8)
        found = answer.groups[0].topics[0].partitions[0]
        return found.committed_offset, ErrorCode(found.error_code)

    def end(self, *, commit: bool, version: int = 4, epoch: int | None = None, id: int | None = None) -> ErrorCode:
        request = EndTxnRequest(
            transactional_id=self.name,
            producer_id=self.id if id is None else id,
            producer_epoch=self.epoch if epoch is None else epoch,
            committed=commit,
        )

        def ask() -> ErrorCode:
            answer = self.client.send(request, version)
            if answer.producer_id >= 0:
                self.id, self.epoch = answer.producer_id, answer.producer_epoch
            return ErrorCode(answer.error_code)

        return settled(ask)

    def write(
        self,
        value: str,
        sequence: int,
        *,
        partition: int = 0,
        version: int = 11,
        epoch: int | None = None,
        id: int | None = None,
        named: bool = True,
        **batch: bool,
    ) -> ErrorCode:
        """`named`: the request has the transactional id. `batch`: transactional, control."""
        records = batch_of(
            value.encode(),
            producer_id=self.id if id is None else id,
            producer_epoch=self.epoch if epoch is None else epoch,
            base_sequence=sequence,
            **{"transactional": True, **batch},
        )
        request = produce_request(self.topic, records, partition)
        request.transactional_id = self.name if named else None

        def ask() -> ErrorCode:
            answer = self.client.send(request, version)
            return ErrorCode(answer.responses[0].partition_responses[0].error_code)

        return settled(ask)

    def mark(
        self,
        *partitions: int,
        commit: bool,
        id: int | None = None,
        epoch: int | None = None,
        coordinator_epoch: int = 0,
        topic: str | None = None,
    ) -> list[ErrorCode]:
        """A marker, as if this were the coordinator."""
        marker = WritableTxnMarker(
            producer_id=self.id if id is None else id,
            producer_epoch=self.epoch if epoch is None else epoch,
            transaction_result=commit,
            topics=[WritableTxnMarkerTopic(name=topic or self.topic, partition_indexes=list(partitions))],
            coordinator_epoch=coordinator_epoch,
        )
        answer = self.client.send(WriteTxnMarkersRequest(markers=[marker]), 1)
        results = answer.markers[0].topics[0].partitions
        return [ErrorCode(each.error_code) for each in sorted(results, key=lambda e: e.partition_index)]

    def producers(self, topic: str, partition: int) -> tuple[ErrorCode, int]:
        """The error, and how many producers the partition's leader knows."""
        asked = TopicRequest(name=topic, partition_indexes=[partition])
        (found,) = self.client.send(DescribeProducersRequest(topics=[asked])).topics[0].partitions
        return ErrorCode(found.error_code), len(found.active_producers)

    def described(self, name: str) -> tuple[ErrorCode, str, int, list[tuple[str, list[int]]]]:
        (found,) = self.client.send(DescribeTransactionsRequest(transactional_ids=[name])).transaction_states
        topics = [(each.topic.replace(self.topic, "TOPIC"), sorted(each.partitions)) for each in found.topics]
        return ErrorCode(found.error_code), found.transaction_state, found.transaction_timeout_ms, topics

    def epoch_of(self, name: str) -> int:
        (found,) = self.client.send(DescribeTransactionsRequest(transactional_ids=[name])).transaction_states
        return found.producer_epoch

    def listed(self, **filters: Any) -> tuple[list[str], list[str]]:
        answer = self.client.send(ListTransactionsRequest(**filters))
        ours = [each.transaction_state for each in answer.transaction_states if each.transactional_id == self.name]
        return ours, answer.unknown_state_filters


def settled(ask: Callable[[], Any]) -> Any:
    """The answer once it isn't any more that the client should ask again."""
    answers: list[Any] = []

    def is_settled() -> bool:
        answers.append(ask())
        last = answers[-1]
        return not TRY_AGAIN & set(last if isinstance(last, list) else [last])

    eventually(is_settled, PATIENCE_S)
    return answers[-1]

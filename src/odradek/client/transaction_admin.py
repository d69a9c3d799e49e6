"""Transactions, for the tools: list, describe, and abort; find hanging transactions, which no coordinator will end."""

from collections.abc import Iterable
from functools import partial

from odradek.base.errors import ErrorCode, KafkaError
from odradek.base.value_classes import dataclass
from odradek.client.cluster_client import ClusterClient
from odradek.model.topology import TopicPartition
from odradek.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    ProducerState,
    TopicRequest,
)
from odradek.protocol.messages.describe_transactions import DescribeTransactionsRequest, DescribeTransactionsResponse
from odradek.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from odradek.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from odradek.protocol.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse
from odradek.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

_TRANSACTION = 1


@dataclass(frozen=True, slots=True)
class TransactionListing:
    transactional_id: str
    coordinator: int
    producer_id: int
    state: str


@dataclass(frozen=True, slots=True)
class TransactionDescription:
    transactional_id: str
    coordinator: int
    producer_id: int
    producer_epoch: int
    state: str
    timeout_ms: int
    start_ms: int
    partitions: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class OpenTransaction:
    """An open transaction of a producer in a partition, as the partition's leader knows it."""

    partition: TopicPartition
    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    start_offset: int
    last_timestamp_ms: int


def list_transactions(
    client: ClusterClient,
    states: list[str] | None = None,
    producer_ids: list[int] | None = None,
    duration_ms: int | None = None,
) -> list[TransactionListing]:
    """List the transactional ids of all brokers, by name. `duration_ms`: of transactions that are open for longer."""
    request = ListTransactionsRequest(
        state_filters=states or [],
        producer_id_filters=producer_ids or [],
        duration_filter=-1 if duration_ms is None else duration_ms,
    )
    found: list[TransactionListing] = []
    for broker in client.brokers():
        answer = client.retrying(partial(_listed, client, broker, request))
        found += [
            TransactionListing(each.transactional_id, broker, each.producer_id, each.transaction_state)
            for each in answer.transaction_states
        ]
    return sorted(found, key=lambda each: each.transactional_id)


def _listed(client: ClusterClient, broker: int, request: ListTransactionsRequest) -> ListTransactionsResponse:
    answer = client.ask_broker(broker, request, ListTransactionsResponse)
    if answer.error_code:
        raise KafkaError(ErrorCode(answer.error_code))
    return answer


def describe_transaction(client: ClusterClient, transactional_id: str) -> TransactionDescription:
    """Ask the coordinator of the id. KafkaError TRANSACTIONAL_ID_NOT_FOUND: it doesn't know the id."""
    return client.retrying(partial(_described, client, transactional_id))


def _described(client: ClusterClient, transactional_id: str) -> TransactionDescription:
    asked = FindCoordinatorRequest(key_type=_TRANSACTION, coordinator_keys=[transactional_id])
    (coordinator,) = client.ask_any(asked, FindCoordinatorResponse).coordinators
    if coordinator.error_code:
        raise KafkaError(ErrorCode(coordinator.error_code))
    request = DescribeTransactionsRequest(transactional_ids=[transactional_id])
    (found,) = client.ask_broker(coordinator.node_id, request, DescribeTransactionsResponse).transaction_states
    if found.error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
        raise KafkaError(
            ErrorCode.TRANSACTIONAL_ID_NOT_FOUND,
            f"transactional id '{transactional_id}' is unknown",
        )
    if found.error_code:
        raise KafkaError(ErrorCode(found.error_code))
    return TransactionDescription(
        transactional_id,
        coordinator.node_id,
        found.producer_id,
        found.producer_epoch,
        found.transaction_state,
        found.transaction_timeout_ms,
        found.transaction_start_time_ms,
        tuple(TopicPartition(each.topic, index) for each in found.topics for index in each.partitions),
    )


def describe_producers(client: ClusterClient, tp: TopicPartition, replica: int | None = None) -> list[ProducerState]:
    """List the producers that a replica of the partition remembers; its leader, unless one is given."""
    return client.retrying(partial(_producers, client, tp, replica))


def _producers(client: ClusterClient, tp: TopicPartition, replica: int | None) -> list[ProducerState]:
    if replica is None:
        (replica,) = client.leaders([tp])
    request = DescribeProducersRequest(topics=[TopicRequest(name=tp.topic, partition_indexes=[tp.partition])])
    (topic,) = client.ask_broker(replica, request, DescribeProducersResponse).topics
    (found,) = topic.partitions
    if found.error_code:
        raise KafkaError(ErrorCode(found.error_code), found.error_message or "")
    return list(found.active_producers)


def open_transactions(client: ClusterClient, tp: TopicPartition, replica: int | None = None) -> list[OpenTransaction]:
    """List the open transactions that a replica of the partition knows; the leader, unless a broker is given."""
    return [_open(tp, each) for each in describe_producers(client, tp, replica) if each.current_txn_start_offset >= 0]


def _open(tp: TopicPartition, producer: ProducerState) -> OpenTransaction:
    return OpenTransaction(
        tp,
        producer.producer_id,
        producer.producer_epoch,
        max(producer.coordinator_epoch, 0),
        producer.current_txn_start_offset,
        producer.last_timestamp,
    )


def all_open_transactions(client: ClusterClient, partitions: Iterable[TopicPartition]) -> list[OpenTransaction]:
    """List the open transactions of many partitions, one request to each leader. Partitions that can't be described are
    left out."""
    found: list[OpenTransaction] = []
    for leader, held in client.leaders(partitions).items():
        topics: dict[str, list[int]] = {}
        for tp in held:
            topics.setdefault(tp.topic, []).append(tp.partition)
        wanted = [TopicRequest(name=name, partition_indexes=numbers) for name, numbers in topics.items()]
        answer = client.ask_broker(leader, DescribeProducersRequest(topics=wanted), DescribeProducersResponse)
        for topic in answer.topics:
            for partition in topic.partitions:
                tp = TopicPartition(topic.name, partition.partition_index)
                found += [_open(tp, each) for each in partition.active_producers if each.current_txn_start_offset >= 0]
    return found


def fence_producer(client: ClusterClient, transactional_id: str) -> None:
    """Have the coordinator abort the open transaction of the id and fence its producer, as a new producer of the same
    id does. KafkaError: refused."""
    client.retrying(partial(_fence, client, transactional_id))


def _fence(client: ClusterClient, transactional_id: str) -> None:
    asked = FindCoordinatorRequest(key_type=_TRANSACTION, coordinator_keys=[transactional_id])
    (coordinator,) = client.ask_any(asked, FindCoordinatorResponse).coordinators
    if coordinator.error_code:
        raise KafkaError(ErrorCode(coordinator.error_code))
    request = InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=client.timeout_ms)
    answer = client.ask_broker(coordinator.node_id, request, InitProducerIdResponse)
    if answer.error_code:
        raise KafkaError(ErrorCode(answer.error_code))


def hanging_transactions(client: ClusterClient, found: list[OpenTransaction]) -> list[OpenTransaction]:
    """Choose the open transactions that no coordinator knows of: no marker will ever end them."""
    ids = sorted({each.producer_id for each in found})
    known = {each.producer_id: each for each in list_transactions(client, producer_ids=ids)} if ids else {}
    return [each for each in found if not _is_known(client, each, known.get(each.producer_id))]


def _is_known(client: ClusterClient, each: OpenTransaction, listing: TransactionListing | None) -> bool:
    if listing is None:
        return False
    try:
        return each.partition in describe_transaction(client, listing.transactional_id).partitions
    except KafkaError as error:
        if error.code is ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
            return False
        raise


def abort_transaction(client: ClusterClient, found: OpenTransaction) -> None:
    """Have an abort marker written by the partition's leader. KafkaError: refused."""
    client.retrying(partial(_abort, client, found))


def _abort(client: ClusterClient, found: OpenTransaction) -> None:
    (leader,) = client.leaders([found.partition])
    topic = WritableTxnMarkerTopic(name=found.partition.topic, partition_indexes=[found.partition.partition])
    marker = WritableTxnMarker(
        producer_id=found.producer_id,
        producer_epoch=found.producer_epoch,
        transaction_result=False,
        topics=[topic],
        coordinator_epoch=found.coordinator_epoch,
    )
    answer = client.ask_broker(leader, WriteTxnMarkersRequest(markers=[marker]), WriteTxnMarkersResponse)
    code = answer.markers[0].topics[0].partitions[0].error_code
    if code:
        raise KafkaError(ErrorCode(code))

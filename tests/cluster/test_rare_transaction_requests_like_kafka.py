"""Requests about transactions that no client library sends: Odradek answers as Apache Kafka does."""

from collections.abc import Callable
from typing import Any

import pytest

from odradek.base.errors import ErrorCode
from odradek.model.topic_names import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from odradek.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from odradek.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from odradek.protocol.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from odradek.protocol.messages.describe_transactions import DescribeTransactionsRequest
from odradek.protocol.messages.end_txn import EndTxnRequest
from odradek.protocol.messages.find_coordinator import FindCoordinatorRequest
from odradek.protocol.messages.init_producer_id import InitProducerIdRequest
from odradek.protocol.messages.list_offsets import LATEST, ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
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

from .conftest import unused_name
from .kafka_pair import KafkaPair
from .transactional_client import PATIENCE_S, TransactionalClient, settled

UNKNOWN = "no-such-name"


class RareClient(TransactionalClient):
    @property
    def group(self) -> str:
        return f"group-{self.name}"


def add_request(me: RareClient, *topics: tuple[str, list[int]], **producer: Any) -> AddPartitionsToTxnRequest:
    return AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=producer.get("name", me.name),
        v3_and_below_producer_id=producer.get("id", me.id),
        v3_and_below_producer_epoch=producer.get("epoch", me.epoch),
        v3_and_below_topics=[AddPartitionsToTxnTopic(name=name, partitions=ids) for name, ids in topics],
    )


def added(me: RareClient, *topics: tuple[str, list[int]], version: int = 3, **producer: Any) -> Any:
    def ask() -> list[ErrorCode]:
        answer = me.client.send(add_request(me, *topics, **producer), version)
        return [
            ErrorCode(each.partition_error_code)
            for topic in sorted(answer.results_by_topic_v3_and_below, key=lambda topic: topic.name)
            for each in sorted(topic.results_by_partition, key=lambda each: each.partition_index)
        ]

    return settled(ask)


def batched(me: RareClient, *transactions: tuple[str, int, int, bool, dict[str, list[int]]]) -> Any:
    """Several transactions in one request, as brokers ask: id, producer's id and epoch, whether to verify only."""
    asked = [
        AddPartitionsToTxnTransaction(
            transactional_id=name,
            producer_id=producer_id,
            producer_epoch=epoch,
            verify_only=verify_only,
            topics=[AddPartitionsToTxnTopic(name=topic, partitions=ids) for topic, ids in topics.items()],
        )
        for name, producer_id, epoch, verify_only, topics in transactions
    ]
    answer = me.client.send(AddPartitionsToTxnRequest(transactions=asked), 4)
    return ErrorCode(answer.error_code), sorted(
        (
            result.transactional_id == me.name,
            topic.name.replace(me.topic, "TOPIC"),
            each.partition_index,
            ErrorCode(each.partition_error_code),
        )
        for result in answer.results_by_transaction
        for topic in result.topic_results
        for each in topic.results_by_partition
    )


def committed_offsets(me: RareClient, version: int = 3, **changed: Any) -> Any:
    """The answer to a TxnOffsetCommit that is right but for what is changed."""
    metadata, offset = changed.pop("metadata", ""), changed.pop("offset", 7)
    topics = {name: [0] for name in changed.pop("topics", (me.topic,))}
    values = {
        "transactional_id": me.name,
        "group_id": me.group,
        "producer_id": me.id,
        "producer_epoch": me.epoch,
        "topics": [
            TxnOffsetCommitRequestTopic(
                name=name,
                partitions=[
                    TxnOffsetCommitRequestPartition(
                        partition_index=index, committed_offset=offset, committed_metadata=metadata
                    )
                    for index in ids
                ],
            )
            for name, ids in topics.items()
        ],
        **changed,
    }

    def ask() -> list[ErrorCode]:
        answer = me.client.send(TxnOffsetCommitRequest(**values), version)
        return [ErrorCode(each.error_code) for topic in answer.topics for each in topic.partitions]

    return settled(ask)


def marked(me: RareClient, *markers: tuple[int, int, dict[str, list[int]]]) -> list[tuple[int, ErrorCode]]:
    asked = [
        WritableTxnMarker(
            producer_id=producer_id,
            producer_epoch=epoch,
            transaction_result=True,
            topics=[WritableTxnMarkerTopic(name=name, partition_indexes=ids) for name, ids in topics.items()],
            coordinator_epoch=0,
        )
        for producer_id, epoch, topics in markers
    ]
    answer = me.client.send(WriteTxnMarkersRequest(markers=asked), 1)
    return sorted(
        (each.partition_index, ErrorCode(each.error_code))
        for result in answer.markers
        for topic in result.topics
        for each in topic.partitions
    )


def ended(me: RareClient, version: int = 4, **changed: Any) -> ErrorCode:
    values = {"transactional_id": me.name, "producer_id": me.id, "producer_epoch": me.epoch, "committed": True}
    request = EndTxnRequest(**{**values, **changed})
    return settled(lambda: ErrorCode(me.client.send(request, version).error_code))  # type: ignore[no-any-return]


def offsets_added(me: RareClient, version: int = 3, **changed: Any) -> ErrorCode:
    values = {"transactional_id": me.name, "producer_id": me.id, "producer_epoch": me.epoch, "group_id": me.group}
    request = AddOffsetsToTxnRequest(**{**values, **changed})
    return settled(lambda: ErrorCode(me.client.send(request, version).error_code))  # type: ignore[no-any-return]


def nameless(me: RareClient, version: int) -> list[ErrorCode | int]:
    request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=-5, producer_id=7, producer_epoch=3)

    def ask() -> list[ErrorCode | int]:
        answer = me.client.send(request, version)
        return [ErrorCode(answer.error_code), answer.producer_epoch]

    return settled(ask)  # type: ignore[no-any-return]


def stable(me: RareClient, partition: int) -> int:
    """The last stable offset."""
    asked = ListOffsetsPartition(partition_index=partition, timestamp=LATEST)
    topics = [ListOffsetsTopic(name=me.topic, partitions=[asked])]
    answer = me.client.send(ListOffsetsRequest(replica_id=-1, isolation_level=1, topics=topics))
    return int(answer.topics[0].partitions[0].offset)


def story_of_partitions(me: RareClient) -> dict[str, Any]:
    topic = me.topic
    told: dict[str, Any] = {"find": me.find(1, me.name)}
    several = FindCoordinatorRequest(key_type=1, coordinator_keys=[me.name, "", me.name])
    told["find several"] = [each.error_code for each in me.client.send(several).coordinators]
    third_kind = FindCoordinatorRequest(key_type=2, coordinator_keys=["k"])
    told["find a third kind"] = [each.error_code for each in me.client.send(third_kind).coordinators]
    told["a nameless producer that goes on"] = [nameless(me, version) for version in (3, 4, 5)]
    told["init"] = [me.init(version=version) for version in range(6)]
    told["init below"] = [me.init(producer_id=-2, producer_epoch=-2), me.init(producer_id=5, producer_epoch=-2)]
    told["add nothing"] = [added(me), added(me, (topic, []))]
    told["add"] = [added(me, (topic, [0]), (topic, [1])), me.described(me.name)]
    told["add below"] = [added(me, (topic, [-1])), added(me, (topic, [0]), id=-1, epoch=-1)]
    told["internal topics"] = [
        added(me, (TRANSACTIONS_TOPIC, [0])),
        added(me, (OFFSETS_TOPIC, [0]), (topic, [0])),
        added(me, (OFFSETS_TOPIC, [999]), (topic, [0]), name=UNKNOWN),
    ]
    for version in range(4):
        told[f"mistakes v{version}"] = [
            added(me, (topic, [0]), (UNKNOWN, [0]), version=version),
            added(me, (topic, [0]), version=version, name=UNKNOWN),
            added(me, (topic, [0]), version=version, id=me.id + 1),
            added(me, (topic, [0]), version=version, epoch=me.epoch - 1),
        ]
    told["batched"] = [
        batched(me, (me.name, me.id, me.epoch, False, {topic: [0, 1]})),
        batched(me, (me.name, me.id, me.epoch, True, {topic: [0]}), (UNKNOWN, 5, 0, True, {topic: [0]})),
        batched(me, ("", 5, 0, True, {topic: [0]})),
        batched(me, (me.name, me.id + 1, me.epoch, True, {topic: [0]})),
        batched(me, (me.name, me.id, me.epoch - 1, True, {topic: [0]})),
        batched(me, (me.name, me.id, me.epoch - 1, False, {topic: [0]})),
        batched(me, (me.name, me.id, me.epoch, False, {topic: [0], UNKNOWN: [0]})),
    ]
    told["abort"] = ended(me, committed=False)
    return told


def story_of_offsets(me: RareClient) -> dict[str, Any]:
    told: dict[str, Any] = {"init": [me.find(1, me.name), me.find(0, me.group), me.init(), me.init()]}
    told["group of nobody"] = [
        [offsets_added(me, version, transactional_id=UNKNOWN) for version in range(4)],
        [offsets_added(me, version, producer_id=me.id + 1) for version in range(4)],
        [offsets_added(me, version, producer_epoch=me.epoch - 1) for version in range(4)],
        offsets_added(me, transactional_id=""),
    ]
    told["before the group is added"] = [committed_offsets(me, version) for version in range(5)]
    told["offsets"] = [offsets_added(me), committed_offsets(me), committed_offsets(me, 4)]
    told["mistakes"] = [
        committed_offsets(me, metadata="m" * 4_097),
        committed_offsets(me, metadata=None),
        committed_offsets(me, offset=-5),
        committed_offsets(me, topics=(UNKNOWN, me.topic)),
        committed_offsets(me, topics=()),
        committed_offsets(me, transactional_id=""),
        committed_offsets(me, member_id="m"),
        committed_offsets(me, member_id="m", generation_id=0),
        committed_offsets(me, group_instance_id="i", member_id="m"),
    ]
    told["pending"] = [me.committed(me.group, stable=stable) for stable in (False, True)]
    told["commit"] = ended(me)
    eventually(lambda: me.described(me.name)[1] == "CompleteCommit", PATIENCE_S)
    eventually(lambda: me.committed(me.group, stable=True)[1] is ErrorCode.NONE, PATIENCE_S)
    told["committed"] = me.committed(me.group, stable=True)
    return told


def story_of_ends(me: RareClient) -> dict[str, Any]:
    told: dict[str, Any] = {"init": [me.find(1, me.name), me.init(), me.init()]}
    told["add"] = added(me, (me.topic, [0, 1]))
    told["written"] = [me.write("a", 0), me.write("b", 0, partition=1), me.write("b", 0, partition=1)]
    told["stable"] = [stable(me, partition) for partition in (0, 1)]
    told["records deleted"] = [deleted(me, 0, -1), stable(me, 0), me.write("c", 1), stable(me, 0), deleted(me, 0, 99)]
    told["end of nobody"] = [
        [ended(me, version, transactional_id=UNKNOWN) for version in range(5)],
        [ended(me, version, producer_id=me.id + 1) for version in range(5)],
        [ended(me, version, producer_epoch=me.epoch - 1) for version in range(5)],
        [ended(me, transactional_id=""), ended(me, producer_id=-1, producer_epoch=-1)],
    ]
    told["end"] = [ended(me, version) for version in (0, 3, 4)]
    eventually(lambda: me.described(me.name)[1] == "CompleteCommit", PATIENCE_S)
    told["stable again"] = [stable(me, partition) for partition in (0, 1)]
    told["end of the other kind"] = [ended(me, version, committed=False) for version in range(5)]
    told["markers"] = [
        marked(me),
        marked(me, (me.id + 90, 0, {})),
        marked(me, (me.id + 90, 0, {me.topic: [0, 1, 7], UNKNOWN: [0]})),
        marked(me, (me.id + 91, 0, {me.topic: [0]}), (me.id + 92, 0, {me.topic: [1]})),
    ]
    twice = DescribeTransactionsRequest(transactional_ids=[me.name, me.name, UNKNOWN])
    told["described twice"] = [
        (each.error_code, each.transactional_id == me.name, each.transaction_state)
        for each in me.client.send(twice).transaction_states
    ]
    told["described, nothing"] = me.client.send(DescribeTransactionsRequest(transactional_ids=[])).transaction_states
    states = ("CompleteCommit", "completecommit", "Dead", "PrepareEpochFence", "")
    told["listed"] = [me.listed(state_filters=[state]) for state in states]
    told["listed by producer"] = [me.listed(producer_id_filters=[-1]), me.listed(duration_filter=0)]
    return told


def deleted(me: RareClient, partition: int, offset: int) -> list[tuple[int, ErrorCode]]:
    asked = DeleteRecordsPartition(partition_index=partition, offset=offset)
    topics = [DeleteRecordsTopic(name=me.topic, partitions=[asked])]
    answer = me.client.send(DeleteRecordsRequest(topics=topics, timeout_ms=30_000))
    return [(each.low_watermark, ErrorCode(each.error_code)) for topic in answer.topics for each in topic.partitions]


@pytest.mark.parametrize("story", [story_of_partitions, story_of_offsets, story_of_ends])
def test_every_rare_request_gets_what_apache_kafka_says(
    pair: KafkaPair, story: Callable[[RareClient], dict[str, Any]]
) -> None:
    name = unused_name()
    ours, theirs = (story(RareClient(each, pair.topic, name)) for each in (pair.ours, pair.theirs))
    assert [(step, answer, theirs[step]) for step, answer in ours.items() if theirs[step] != answer] == []


def test_verification_asks_for_the_transaction_and_not_for_the_topics(pair: KafkaPair) -> None:
    """A coordinator that has just moved may know the transaction before its topics. Apache Kafka's then refuses them
    all. It never answers a request without transactions."""
    name = unused_name()
    seen = []
    for client in (pair.ours, pair.theirs):
        me = RareClient(client, pair.topic, name)
        assert [me.find(1, name), me.init(), *me.add(0)] == [ErrorCode.NONE] * 3
        _, results = batched(me, (name, me.id, me.epoch, True, {me.topic: [0], UNKNOWN: [0]}))
        seen.append({topic: error for _, topic, _, error in results})
        assert me.end(commit=False) is ErrorCode.NONE
    ours, theirs = seen
    assert ours == {"TOPIC": ErrorCode.NONE, UNKNOWN: ErrorCode.TRANSACTION_ABORTABLE}
    assert theirs == {"TOPIC": ErrorCode.OPERATION_NOT_ATTEMPTED, UNKNOWN: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    assert batched(RareClient(pair.ours, pair.topic, name)) == (ErrorCode.NONE, [])

"""Transactions request by request: Odradek answers as Apache Kafka does, and keeps the same records."""

from collections.abc import Callable
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer
from confluent_kafka import TopicPartition as Position

from odradek.base.errors import ErrorCode
from odradek.broker.coordinator.transactions.core.transaction_records import (
    decode_key,
    decode_transaction,
    encode_key,
    encode_transaction,
)
from odradek.client.broker_client import BrokerClient
from odradek.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from odradek.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
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
from waiting import eventually

from .conftest import unused_name
from .kafka_pair import KafkaPair
from .own_broker import batch_of, produce_request

PATIENCE_S = 30
TRY_AGAIN = {
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.NOT_COORDINATOR,
}


class TransactionalClient:
    """Requests of a transactional producer, each by hand."""

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
        return settled(lambda: ErrorCode(self.client.send(request, version).error_code))

    def described(self, name: str) -> tuple[ErrorCode, str, int, list[tuple[str, list[int]]]]:
        (found,) = self.client.send(DescribeTransactionsRequest(transactional_ids=[name])).transaction_states
        topics = [(each.topic.replace(self.topic, "TOPIC"), sorted(each.partitions)) for each in found.topics]
        return ErrorCode(found.error_code), found.transaction_state, found.transaction_timeout_ms, topics

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


def story(me: TransactionalClient) -> dict[str, Any]:
    """Everything that a client can do wrong, and what becomes of it."""
    told: dict[str, Any] = {"find": [me.find(1, me.name), me.find(0, "g")], "find ''": me.find(1, "")}
    for bad in (0, -1, 900_001):
        told[f"timeout {bad}"] = me.init(timeout_ms=bad)
    told["init without a name"] = me.init("")
    told["init without an epoch"] = me.init(producer_id=5)
    told["unknown id"] = [me.add(0, id=5, epoch=0), me.add_offsets("g", epoch=0), me.end(commit=True, id=5, epoch=0)]
    told["no name"] = me.add(0, id=5, epoch=0, name="")
    told["init"] = [me.init(), me.epoch]
    told["end of nothing"] = [me.end(commit=True), me.end(commit=False)]
    told["verify nothing"] = [me.verify(0), me.verify(0, version=4)]
    for version in (1, 3):
        told[f"add v{version}"] = [
            me.add(0, id=me.id + 1, version=version),
            me.add(0, epoch=me.epoch + 1, version=version),
            me.add(0, 9, version=version),
        ]
    told["offsets of no transaction"] = [me.commit_offsets("g", 0, version=3), me.commit_offsets("g", 0, version=4)]
    told["add"] = [me.add(0), me.add(0)]
    told["described"] = me.described(me.name)
    told["listed"] = [me.listed(), me.listed(state_filters=["Empty"]), me.listed(state_filters=["Ongoing", "Foo"])]
    told["listed by duration"] = [me.listed(duration_filter=3_600_000), me.listed(producer_id_filters=[me.id])]
    told["verify"] = [me.verify(0, 1), me.verify(0, epoch=me.epoch + 1), me.verify(0, 1, version=4)]
    told["end of another"] = [me.end(commit=True, epoch=me.epoch + 1), me.end(commit=True, id=me.id + 1)]
    told["end v1"] = me.end(commit=True, epoch=me.epoch + 1, version=1)
    old = me.epoch
    told["fencing"] = [me.init(), me.epoch - old]
    told["fenced"] = [me.add(0, epoch=old), me.end(commit=True, epoch=old), me.add_offsets("g", epoch=old)]
    told["fenced v1"] = [me.add(0, epoch=old, version=1), me.add_offsets("g", epoch=old, version=1)]
    told["add offsets"] = me.add_offsets("g")
    told["offsets"] = [
        # first: Kafka forgets for a refused commit what the transaction committed before
        me.commit_offsets("g", 0, epoch=old),
        me.commit_offsets("g", 0, 9),
        me.commit_offsets("g", 0, member_id="m", generation_id=5),
        me.commit_offsets("g", 0, generation_id=5),
        me.commit_offsets("g", 0, group_instance_id="i"),
    ]
    told["pending"] = [me.committed("g", stable=False), me.committed("g", stable=True)]
    told["commit"] = [me.end(commit=True), me.end(commit=True), me.end(commit=False)]
    told["committed"] = me.committed("g", stable=True)
    told["completed"] = me.described(me.name)
    told["begin again"] = [me.add(1), me.end(commit=False), me.end(commit=False), me.end(commit=True)]
    id, epoch = me.id, me.epoch
    told["go on"] = [me.init(producer_id=id, producer_epoch=epoch), me.epoch - epoch]
    told["go on, repeated"] = [me.init(producer_id=id, producer_epoch=epoch), me.epoch - epoch]
    told["go on, fenced"] = [
        me.init(producer_id=id, producer_epoch=epoch + 5),
        me.init(producer_id=id + 1, producer_epoch=epoch, version=3),
    ]
    told["not described"] = [me.described(unused_name())[0], me.described("")[0]]
    return told


def test_every_wrong_request_gets_what_apache_kafka_says(pair: KafkaPair) -> None:
    name = unused_name()
    ours, theirs = (story(TransactionalClient(each, pair.topic, name)) for each in (pair.ours, pair.theirs))
    assert [(step, answer, theirs[step]) for step, answer in ours.items() if theirs[step] != answer] == []


def test_nobody_but_the_coordinator_writes_its_topic(pair: KafkaPair) -> None:
    for client in (pair.ours, pair.theirs):
        TransactionalClient(client, pair.topic, "t").find(1, "t")
    answers = pair.ask(produce_request("__transaction_state", batch_of(b"state")))
    results = [answer.responses[0].partition_responses[0].error_code for answer in answers]
    assert results == [ErrorCode.INVALID_TOPIC_EXCEPTION] * 2


def test_records_of_transaction_state_are_those_of_apache_kafka(pair: KafkaPair) -> None:
    name = unused_name()
    kept: list[list[str]] = []
    for client in (pair.ours, pair.theirs):
        me = TransactionalClient(client, pair.topic, name)
        assert me.find(1, name) is ErrorCode.NONE
        assert [me.init(), *me.add(0), me.end(commit=True)] == [ErrorCode.NONE] * 3
        assert [me.init(), *me.add(1), me.end(commit=False)] == [ErrorCode.NONE] * 3
        eventually(lambda me=me: me.described(me.name)[1] == "CompleteAbort", PATIENCE_S)  # type: ignore[misc]
        kept.append(states_kept(client.address, name))
    assert kept[0] == kept[1]


def states_kept(servers: str, name: str) -> list[str]:
    """The states of the id's records. Each record is, byte for byte, as Odradek writes it."""
    consumer = Consumer({"bootstrap.servers": servers, "group.id": unused_name()})
    try:
        partitions = consumer.list_topics("__transaction_state", PATIENCE_S).topics["__transaction_state"].partitions
        consumer.assign([Position("__transaction_state", index, OFFSET_BEGINNING) for index in partitions])
        found: list[str] = []

        def is_complete() -> bool:
            record = consumer.poll(1)
            if record is not None and not record.error():
                key, value = record.key(), record.value()
                assert isinstance(key, bytes)
                assert isinstance(value, bytes)
                if decode_key(key) == name:
                    transaction = decode_transaction(name, value)
                    assert (encode_key(name), encode_transaction(transaction, 0)) == (key, value)
                    found.append(f"{transaction.state.label} {transaction.producer_epoch} {transaction.start_ms > 0}")
            return bool(found) and found[-1].startswith("CompleteAbort")

        eventually(is_complete, PATIENCE_S)
        return found
    finally:
        consumer.close()

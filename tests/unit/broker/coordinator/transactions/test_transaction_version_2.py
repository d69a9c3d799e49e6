"""Version 2 of transactions (KIP-890, part 2) in the coordinator, and for leaders that have partitions added."""

import threading
from collections.abc import Callable, Iterator, Mapping

import pytest
from transaction_stage import KEPT_IN, ORDERS, PAYMENTS, WAIT_S, Stage

from odradek.base.errors import ErrorCode
from odradek.broker.coordinator.state.state_log_writer import StateLogWriter, Write
from odradek.broker.coordinator.transactions.core.decisions import Producer
from odradek.broker.coordinator.transactions.core.transaction import EPOCH_MAX, Transaction, TransactionState
from odradek.broker.coordinator.transactions.core.transaction_records import decode_transaction
from odradek.broker.coordinator.transactions.partition_verifier import PartitionVerifier
from odradek.broker.coordinator.transactions.transaction_entry import TransactionEntry
from odradek.client.broker_client import BrokerClient, ConnectionFailed
from odradek.model.metadata_image import MetadataImage, PartitionImage, TopicImage
from odradek.model.topology import ZERO_UUID, Broker, TopicPartition
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopicResult,
)

E, S = ErrorCode, TransactionState


@pytest.fixture
def stage() -> Iterator[Stage]:
    made = Stage()
    yield made
    made.stop()


def begun(stage: Stage) -> Producer:
    error, producer = stage.init()
    assert error is E.NONE
    assert add(stage, producer) is E.NONE
    return producer


def add(stage: Stage, producer: Producer) -> ErrorCode:
    answers: list[ErrorCode] = []
    stage.coordinator.add_partitions("t", producer, [ORDERS], answers.append, client_version=2)
    return answers[0]


def test_the_next_epoch_is_in_the_answer_and_in_the_markers(stage: Stage) -> None:
    producer = begun(stage)
    after = Producer(producer.id, producer.epoch + 1)
    assert stage.end(producer, version=2) == (E.NONE, after)
    ((marker, _),) = stage.markers.asked
    assert (marker.producer_epoch, marker.bumps_epoch) == (after.epoch, True)
    assert add(stage, producer) is E.PRODUCER_FENCED
    assert add(stage, after) is E.NONE
    assert stage.end(producer, version=2)[0] is E.PRODUCER_FENCED, "late"


def test_the_next_leader_knows_a_repeated_end(stage: Stage) -> None:
    """Values of version 2 have tagged fields, so that nothing is lost with the memory."""
    producer = begun(stage)
    ended = stage.end(producer, version=2)
    kept = [value for _, value in stage.log.written if value is not None]
    assert [value[1] for value in kept] == [0, 1, 1, 1], "the first record is InitProducerId's"
    assert decode_transaction("t", kept[-1]).client_version == 2
    stage.resign(1)
    stage.lead(2)
    assert stage.end(producer, version=2) == ended
    assert stage.end(producer, version=2, commit=False)[0] is E.INVALID_TXN_STATE


def test_the_last_epoch_ends_with_a_new_producer_id(stage: Stage) -> None:
    producer = begun(stage)
    entry = stage.coordinator._table.find("t")
    assert entry is not None
    entry.transaction = entry.transaction.move_to(S.ONGOING, producer_epoch=EPOCH_MAX - 1)
    error, after = stage.end(Producer(producer.id, EPOCH_MAX - 1), version=2)
    assert (error, after.epoch) == (E.NONE, 0)
    assert after.id != producer.id
    assert [marker.producer_epoch for marker, _ in stage.markers.asked] == [EPOCH_MAX]
    assert stage.end(Producer(producer.id, EPOCH_MAX - 1), version=2) == (E.NONE, after), "repeated"
    assert add(stage, after) is E.NONE


def verifier(stage: Stage) -> PartitionVerifier:
    def unreachable(broker: int) -> BrokerClient:
        raise ConnectionFailed(f"broker {broker} is not there")

    topics = {
        tp.topic: TopicImage(tp.topic, ZERO_UUID, {0: PartitionImage(0, 0, (0,), (0,))}) for tp in (KEPT_IN, ORDERS)
    }
    stage.metadata.publish(MetadataImage(controller_id=0, brokers={0: Broker(0, ())}, topics=topics))
    verifier = PartitionVerifier(0, stage.metadata, stage.reaper, stage.clock, unreachable)
    verifier.start(stage.coordinator)
    return verifier


def asked(verifier: PartitionVerifier, producer: Producer) -> list[dict[TopicPartition, ErrorCode]]:
    answers: list[dict[TopicPartition, ErrorCode]] = []
    verifier.verify("t", producer.id, producer.epoch, [ORDERS], answers.append, add=True)
    return answers


def test_a_leader_has_its_partition_added_when_the_former_transaction_is_over(stage: Stage) -> None:
    asking = verifier(stage)
    producer = begun(stage)
    stage.markers.at_once = False
    after = stage.end(producer, version=2)[1]
    answers = asked(asking, after)
    stage.passes(5)
    assert answers == [], "its markers are being written"
    stage.markers.settle()
    stage.passes(5)
    assert answers == [{ORDERS: E.NONE}]
    assert stage.state() is S.ONGOING
    assert asked(asking, producer) == [{ORDERS: E.INVALID_PRODUCER_EPOCH}]


def test_a_leader_waits_for_the_former_transaction_for_a_while_only(stage: Stage) -> None:
    asking = verifier(stage)
    producer = begun(stage)
    stage.markers.at_once = False
    answers = asked(asking, stage.end(producer, version=2)[1])
    stage.passes(200)
    assert answers == [{ORDERS: E.CONCURRENT_TRANSACTIONS}]


def test_a_partition_without_metadata_is_not_added_by_its_own_leader(stage: Stage) -> None:
    """It may lead before it has the metadata. The marker would be dropped, as for a deleted topic."""
    asking = verifier(stage)
    producer = begun(stage)
    stage.publish(leader=0, topics=("orders",))
    answers: list[dict[TopicPartition, ErrorCode]] = []
    asking.verify("t", producer.id, producer.epoch, [ORDERS, PAYMENTS], answers.append, add=True)
    assert answers == [{ORDERS: E.OPERATION_NOT_ATTEMPTED, PAYMENTS: E.UNKNOWN_TOPIC_OR_PARTITION}]
    assert stage.coordinator.describe("t").partitions == {ORDERS}
    stage.publish(leader=0)
    asking.verify("t", producer.id, producer.epoch, [ORDERS, PAYMENTS], answers.append, add=True)
    assert answers[1:] == [{ORDERS: E.NONE, PAYMENTS: E.NONE}]


class OtherCoordinator:
    """Says yes, but to the third request: it is gone then."""

    def __init__(self) -> None:
        self.requests = 0

    def best_version(self, key: ApiKey) -> int:
        return 5

    def send(self, request: AddPartitionsToTxnRequest, version: int) -> AddPartitionsToTxnResponse:
        self.requests += 1
        if self.requests == 3:
            raise ConnectionFailed("it is gone")
        found = [AddPartitionsToTxnPartitionResult(partition_index=0)]
        topics = [AddPartitionsToTxnTopicResult(name="orders", results_by_partition=found)]
        return AddPartitionsToTxnResponse(
            results_by_transaction=[
                AddPartitionsToTxnResult(transactional_id=each.transactional_id, topic_results=topics)
                for each in request.transactions
            ]
        )

    def close(self) -> None:
        pass

    abort = close


def test_each_question_is_answered_once_if_the_connection_breaks_between_two_of_one_transaction(stage: Stage) -> None:
    """A Produce and a TxnOffsetCommit may ask at one time. Who gets two answers would write its records twice."""
    connecting, all_asked, all_answered = threading.Event(), threading.Event(), threading.Event()
    answers: list[tuple[str, ErrorCode]] = []

    def connect(broker: int, connected: Callable[[BrokerClient], None]) -> BrokerClient:
        connecting.set()
        assert all_asked.wait(WAIT_S)
        return OtherCoordinator()  # type: ignore[return-value]

    asking = PartitionVerifier(1, stage.metadata, stage.reaper, stage.clock, connect)
    asking.start(stage.coordinator)

    def ask(name: str, transactional_id: str) -> None:
        def answered(errors: Mapping[TopicPartition, ErrorCode]) -> None:
            answers.append((name, errors[ORDERS]))
            if name == "commit":
                all_answered.set()

        asking.verify(transactional_id, 1, 0, [ORDERS], answered, add=False)

    ask("connects", "s")
    assert connecting.wait(WAIT_S)  # what is asked meanwhile is asked together
    ask("produce", "t")
    ask("commit", "t")
    all_asked.set()
    assert all_answered.wait(WAIT_S)
    asking.stop()
    assert answers == [("connects", E.NONE), ("produce", E.NONE), ("commit", E.NETWORK_EXCEPTION)]


def test_records_of_answers_are_written_in_the_same_round(stage: Stage) -> None:
    """Or they would wait for the thread's next request."""
    writer = StateLogWriter()
    first, second = (TransactionEntry(_transaction(stage), stage.log, 0) for _ in range(2))
    settled: list[str] = []

    def go_on(error: ErrorCode) -> None:
        write = Write(second, [(b"2", b"")], lambda error: settled.append("second"))
        first.answers.append(lambda: writer.turn(second, lambda: writer.append(write)))

    with writer.deferred() as end_round:
        writer.turn(first, lambda: writer.append(Write(first, [(b"1", b"")], go_on)))
        end_round()
        assert settled == ["second"]


def _transaction(stage: Stage) -> Transaction:
    stage.init()
    return stage.coordinator.describe("t")

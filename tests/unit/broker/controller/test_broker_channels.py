"""The controller's channels, to brokers on real sockets."""

import queue
import threading
from collections.abc import Callable, Iterator
from uuid import UUID

import pytest
from fake_brokers import LISTENER, PATIENCE_SECONDS, FakeBroker, response_to

from odradek.base.errors import ErrorCode
from odradek.broker.controller.broker_channels import MERGE_ABOVE, BrokerChannels
from odradek.broker.controller.core.events import Event, LeaderAndIsrAnswered, StopReplicaAnswered
from odradek.broker.controller.core.request_merge import merged
from odradek.broker.controller.request_answers import event_of
from odradek.broker.network.setup_timeout import SetupTimeout
from odradek.model.topology import Broker, TopicPartition
from odradek.protocol.messages.leader_and_isr import (
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    LeaderAndIsrTopicState,
)
from odradek.protocol.messages.stop_replica import (
    StopReplicaPartitionState,
    StopReplicaRequest,
    StopReplicaResponse,
    StopReplicaTopicState,
)
from odradek.protocol.messages.update_metadata import (
    UPDATE_OF_ALL,
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
    UpdateMetadataTopicState,
)
from odradek.protocol.schema import Request

ORDERS_ID = UUID(int=7)
Events = queue.Queue[Event]


@pytest.fixture
def broker() -> Iterator[FakeBroker]:
    fake = FakeBroker(1)
    yield fake
    fake.close()


@pytest.fixture
def answers() -> Events:
    return queue.Queue()


@pytest.fixture
def channels(answers: Events) -> Iterator[BrokerChannels]:
    opened = BrokerChannels(
        0,
        LISTENER,
        timeout_ms=PATIENCE_SECONDS * 1000,
        setup_timeout=lambda: SetupTimeout(10_000, 30_000),
        answered=answers.put,
    )
    yield opened
    opened.close_all()


def lead(partition: int, leader: int = 1, *, epoch: int = 0, is_new: bool = False) -> LeaderAndIsrRequest:
    state = LeaderAndIsrPartitionState(partition_index=partition, leader=leader, leader_epoch=epoch, is_new=is_new)
    topic = LeaderAndIsrTopicState(topic_name="orders", topic_id=ORDERS_ID, partition_states=[state])
    return LeaderAndIsrRequest(controller_epoch=3, broker_epoch=9, topic_states=[topic])


def know(partition: int, leader: int = 1) -> UpdateMetadataRequest:
    state = UpdateMetadataPartitionState(partition_index=partition, leader=leader)
    topic = UpdateMetadataTopicState(topic_name="orders", topic_id=ORDERS_ID, partition_states=[state])
    return UpdateMetadataRequest(controller_epoch=3, broker_epoch=9, topic_states=[topic])


def stop(*partitions: int, delete: bool) -> StopReplicaRequest:
    states = [StopReplicaPartitionState(partition_index=p, delete_partition=delete) for p in partitions]
    topic = StopReplicaTopicState(topic_name="orders", partition_states=states)
    return StopReplicaRequest(controller_epoch=3, broker_epoch=9, topic_states=[topic])


def at_least(count: int) -> Callable[[list[object]], bool]:
    return lambda told: len(told) >= count


def test_requests_arrive_in_order_and_answers_come_back(
    broker: FakeBroker, channels: BrokerChannels, answers: Events
) -> None:
    channels.open(broker.broker)
    sent = [know(0), lead(0), stop(1, delete=False), stop(2, delete=True), lead(3)]
    for request in sent:
        channels.send(1, request)
    assert broker.wait_for(at_least(5)) == sent
    assert [answers.get(timeout=PATIENCE_SECONDS) for _ in range(3)] == [
        LeaderAndIsrAnswered(1, {TopicPartition("orders", 0): ErrorCode.NONE}),
        StopReplicaAnswered(1, {TopicPartition("orders", 2): ErrorCode.NONE}),
        LeaderAndIsrAnswered(1, {TopicPartition("orders", 3): ErrorCode.NONE}),
    ]


def test_a_request_is_sent_again_until_it_is_answered(
    broker: FakeBroker, channels: BrokerChannels, answers: Events
) -> None:
    broker.hang_ups = 2
    channels.open(broker.broker)
    channels.send(1, lead(0))
    channels.send(1, lead(1))
    assert broker.wait_for(at_least(2)) == [lead(0), lead(1)]
    assert isinstance(answers.get(timeout=PATIENCE_SECONDS), LeaderAndIsrAnswered)


def test_a_broker_can_tell_what_was_sent_first(broker: FakeBroker, channels: BrokerChannels) -> None:
    """Through all connections, and channels: what the network held back is known by its number."""
    broker.hang_ups = 2
    channels.open(broker.broker)
    channels.send(1, know(0))
    broker.wait_for(at_least(1))
    channels.open(broker.broker)
    channels.send(1, know(1))
    broker.wait_for(at_least(2))
    assert broker.correlation_ids == sorted(set(broker.correlation_ids))


def test_a_broker_that_is_silent_for_long_gets_the_newest(broker: FakeBroker, channels: BrokerChannels) -> None:
    broker.fall_silent()
    channels.open(broker.broker)
    for epoch in range(1000):
        channels.send(1, lead(0, epoch=epoch, is_new=epoch == 0))
        channels.send(1, know(0, leader=epoch))
    broker.speak()
    newest = [lead(0, epoch=999), know(0, leader=999)]
    told = broker.wait_for(lambda told: all(request in told for request in newest))
    assert len(told) <= MERGE_ABOVE + 1


def test_a_new_replica_is_told_after_all_metadata_that_waits(broker: FakeBroker, channels: BrokerChannels) -> None:
    """By which it is on other brokers: the broker would set it aside, and nobody would tell it again."""
    broker.fall_silent()
    channels.open(broker.broker)
    everything = know(0)
    everything.type = UPDATE_OF_ALL
    for request in (lead(0), lead(1), everything, *([know(1)] * MERGE_ABOVE), lead(2, is_new=True)):
        channels.send(1, request)
    broker.speak()

    def places(told: list[Request]) -> list[int]:
        return [i for i, each in enumerate(told) if isinstance(each, LeaderAndIsrRequest) and 2 in partitions(each)]

    told = broker.wait_for(lambda told: bool(places(told)))
    assert everything in told[: places(told)[0]]


def partitions(request: LeaderAndIsrRequest) -> set[int]:
    return {state.partition_index for topic in request.topic_states for state in topic.partition_states}


def test_a_closed_channel_is_silent_and_its_successor_speaks(
    broker: FakeBroker, channels: BrokerChannels, answers: Events
) -> None:
    broker.fall_silent()
    channels.open(broker.broker)
    channels.send(1, lead(0))
    successor = FakeBroker(1)
    try:
        channels.open(successor.broker)
        channels.send(1, lead(1))
        assert successor.wait_for(at_least(1)) == [lead(1)]
        broker.speak()
        assert answers.get(timeout=PATIENCE_SECONDS) == LeaderAndIsrAnswered(
            1, {TopicPartition("orders", 1): ErrorCode.NONE}
        )
    finally:
        successor.close()


def test_a_broker_that_cannot_be_reached_is_reported_and_does_no_harm(
    broker: FakeBroker, channels: BrokerChannels, capsys: pytest.CaptureFixture[str]
) -> None:
    channels.open(Broker(2, ()))
    channels.send(2, lead(0))
    reported = "".join(capsys.readouterr())
    assert "controller failed to connect to broker broker=2" in reported
    assert "controller request not sent, broker is offline broker=2" in reported
    channels.open(broker.broker)
    channels.send(1, lead(1))
    assert broker.wait_for(at_least(1)) == [lead(1)]


def test_what_answers_mean() -> None:
    tp = TopicPartition("orders", 0)
    failed = response_to(lead(0), ErrorCode.KAFKA_STORAGE_ERROR)
    assert event_of(1, lead(0), failed) == LeaderAndIsrAnswered(1, {tp: ErrorCode.KAFKA_STORAGE_ERROR})
    stale = LeaderAndIsrResponse(error_code=ErrorCode.STALE_CONTROLLER_EPOCH)
    assert event_of(1, lead(0), stale) is None
    refused = StopReplicaResponse(error_code=ErrorCode.STALE_CONTROLLER_EPOCH)
    assert event_of(1, stop(0, delete=True), refused) == StopReplicaAnswered(1, {tp: ErrorCode.STALE_CONTROLLER_EPOCH})
    assert event_of(1, stop(0, delete=False), refused) is None
    of_former_registration = StopReplicaResponse(error_code=ErrorCode.STALE_BROKER_EPOCH)
    assert event_of(1, stop(0, delete=True), of_former_registration) is None
    unknown = response_to(stop(0, delete=True))
    assert isinstance(unknown, StopReplicaResponse)
    unknown.partition_errors[0].error_code = 9999
    assert event_of(1, stop(0, delete=True), unknown) == StopReplicaAnswered(1, {tp: ErrorCode.UNKNOWN_SERVER_ERROR})


def test_merged_requests_tell_the_newer_of_each_partition() -> None:
    both = merged(lead(0, epoch=1, is_new=True), lead(0, epoch=2))
    assert both == lead(0, epoch=2, is_new=True)
    both = merged(know(0, leader=1), know(1, leader=2))
    assert isinstance(both, UpdateMetadataRequest)
    assert [state.leader for state in both.topic_states[0].partition_states] == [1, 2]
    assert merged(know(0), lead(0)) is None
    later = lead(0)
    later.broker_epoch = 10
    assert merged(lead(0), later) is None


def test_a_channel_whose_thread_can_not_be_started_loses_no_request(
    broker: FakeBroker, channels: BrokerChannels, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as full:
        full.setattr(threading.Thread, "start", fail)
        channels.open(broker.broker)
        channels.send(1, lead(0))
    channels.send(1, lead(1))
    assert broker.wait_for(at_least(2)) == [lead(0), lead(1)]

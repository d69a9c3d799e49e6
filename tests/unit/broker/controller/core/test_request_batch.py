"""Requests to brokers: one of a kind for each, with all that a Kafka broker checks."""

from uuid import UUID

from odradek.broker.controller.core.context import ControllerContext
from odradek.broker.controller.core.effects import Send
from odradek.broker.controller.core.request_batch import RequestBatch
from odradek.model.topology import Broker, ControllerTerm, Endpoint, LeaderAndIsr, ReplicaAssignment, TopicPartition
from odradek.protocol.messages.leader_and_isr import (
    LeaderAndIsrLiveLeader,
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    LeaderAndIsrTopicState,
)
from odradek.protocol.messages.stop_replica import StopReplicaPartitionState, StopReplicaRequest, StopReplicaTopicState
from odradek.protocol.messages.update_metadata import UpdateMetadataRequest

ORDERS, ORDERS_1 = TopicPartition("orders", 0), TopicPartition("orders", 1)
INTERNAL = "INTERNAL"


def cluster() -> ControllerContext:
    context = ControllerContext(0, INTERNAL, term=ControllerTerm(5, 5))
    for broker in (0, 1):
        endpoints = (
            Endpoint("PUBLIC", "SSL", "example.org", 9000 + broker),
            Endpoint(INTERNAL, "PLAINTEXT", "10.0.0.1", 9100 + broker),
        )
        context.brokers[broker] = Broker(broker, endpoints, "rack", epoch=70 + broker)
    context.topic_ids["orders"] = UUID(int=9)
    context.set_assignment(ORDERS, ReplicaAssignment((1, 0, 2), adding=(0,), removing=(2,)))
    context.set_assignment(ORDERS_1, ReplicaAssignment((0, 1)))
    context.states = {ORDERS: LeaderAndIsr(1, 3, (1, 2), 4, 8), ORDERS_1: LeaderAndIsr(0, 1, (0,), 4, 2)}
    return context


def sends(batch: RequestBatch, kind: type) -> dict[int, object]:
    found = [send for send in batch.flush() if isinstance(send, Send) and isinstance(send.request, kind)]
    assert len({send.broker_id for send in found}) == len(found), "one request of a kind for each"
    return {send.broker_id: send.request for send in found}


def test_leader_and_isr_as_a_broker_gets_it() -> None:
    batch = RequestBatch(cluster())
    batch.add_leader_and_isr((0, 2), ORDERS, is_new=True)
    batch.add_leader_and_isr((0,), ORDERS)  # what is new stays new
    told = LeaderAndIsrPartitionState(
        topic_name="orders",
        partition_index=0,
        controller_epoch=4,
        leader=1,
        leader_epoch=3,
        isr=[1, 2],
        partition_epoch=8,
        replicas=[1, 0, 2],
        adding_replicas=[0],
        removing_replicas=[2],
        is_new=True,
    )
    assert sends(batch, LeaderAndIsrRequest) == {
        0: LeaderAndIsrRequest(  # broker 2 isn't alive
            controller_id=0,
            controller_epoch=5,
            broker_epoch=70,
            topic_states=[LeaderAndIsrTopicState(topic_name="orders", topic_id=UUID(int=9), partition_states=[told])],
            live_leaders=[LeaderAndIsrLiveLeader(broker_id=1, host_name="10.0.0.1", port=9101)],
        )
    }


def test_all_live_brokers_learn_of_every_new_leader() -> None:
    batch = RequestBatch(cluster())
    batch.add_leader_and_isr((0,), ORDERS)
    told = sends(batch, UpdateMetadataRequest)
    assert told.keys() == {0, 1}
    request = told[1]
    assert isinstance(request, UpdateMetadataRequest)
    assert (request.controller_epoch, request.broker_epoch) == (5, 71)
    (topic,) = request.topic_states
    (partition,) = topic.partition_states
    assert (topic.topic_id, partition.leader, partition.isr, partition.offline_replicas) == (
        UUID(int=9),
        1,
        [1, 2],
        [2],
    )
    assert [
        (b.id, b.rack, [(e.listener, e.security_protocol, e.port) for e in b.endpoints]) for b in request.live_brokers
    ] == [
        (0, "rack", [("PUBLIC", 1, 9000), (INTERNAL, 0, 9100)]),
        (1, "rack", [("PUBLIC", 1, 9001), (INTERNAL, 0, 9101)]),
    ]


def test_a_topic_that_goes_has_no_leader_and_no_epoch() -> None:
    context = cluster()
    context.to_delete.add("orders")
    batch = RequestBatch(context)
    batch.add_update_metadata((0,), (ORDERS,))
    batch.add_stop_replica((0,), ORDERS, delete=True)
    batch.add_stop_replica((0,), ORDERS, delete=False)  # what is to be deleted stays so
    metadata, stop = (send.request for send in batch.flush())
    assert isinstance(metadata, UpdateMetadataRequest)
    assert metadata.topic_states[0].partition_states[0].leader == -2
    stopped = StopReplicaPartitionState(partition_index=0, leader_epoch=-2, delete_partition=True)
    assert stop == StopReplicaRequest(
        controller_id=0,
        controller_epoch=5,
        broker_epoch=70,
        topic_states=[StopReplicaTopicState(topic_name="orders", partition_states=[stopped])],
    )


def test_a_flushed_batch_is_empty() -> None:
    batch = RequestBatch(cluster())
    batch.add_leader_and_isr((0, 1), ORDERS_1)
    batch.add_stop_replica((0,), ORDERS, delete=False)
    assert batch.flush()
    assert batch.flush() == []

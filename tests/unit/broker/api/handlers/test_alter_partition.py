"""AlterPartition names topics by id. The controller decides which topic that is, not its broker's metadata."""

from types import SimpleNamespace
from typing import Any
from uuid import UUID

from odradek.base.errors import ErrorCode
from odradek.broker.api.context import RequestContext
from odradek.broker.api.handlers.alter_partition import alter_partition
from odradek.broker.controller.core.events import IsrChangeAsked
from odradek.model.topology import LeaderAndIsr, TopicPartition
from odradek.protocol.framing import RequestHeader
from odradek.protocol.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    BrokerState,
    PartitionData,
    TopicData,
)

VERSION = 3
NEW_ID, FORMER_ID = UUID(int=2), UUID(int=1)
ORDERS = TopicPartition("orders", 0)


class Asked:
    """What the controller is asked by a leader of the topic of that id, and what the leader is answered."""

    def __init__(self, topic_id: UUID, in_metadata: dict[UUID, str]) -> None:
        self.events: list[IsrChangeAsked] = []
        self.answers: list[Any] = []
        services: Any = SimpleNamespace(
            authorizer=None,
            controller=SimpleNamespace(topic_ids=lambda: {"orders": NEW_ID}, submit=self.events.append),
            metadata=SimpleNamespace(image=SimpleNamespace(topic_names=in_metadata)),
        )
        inbound: Any = SimpleNamespace(connection=SimpleNamespace(id="1"))
        timings: Any = None
        header = RequestHeader(56, VERSION, 7, "broker-1", 0)
        ctx = RequestContext(services, header, inbound, timings, lambda _, response: self.answers.append(response))
        partition = PartitionData(partition_index=0, leader_epoch=0, partition_epoch=0)
        partition.new_isr_with_epochs = [BrokerState(broker_id=1, broker_epoch=5), BrokerState(broker_id=2)]
        topics = [TopicData(topic_id=topic_id, partitions=[partition])]
        alter_partition(AlterPartitionRequest(broker_id=1, broker_epoch=5, topics=topics), ctx)

    def answer(self, states: dict[TopicPartition, LeaderAndIsr]) -> int:
        self.events[0].answer(states)
        response: AlterPartitionResponse = self.answers[0]
        return response.topics[0].partitions[0].error_code


def test_a_topic_that_the_brokers_metadata_does_not_have_yet() -> None:
    asked = Asked(NEW_ID, in_metadata={})
    assert asked.events[0].wanted[ORDERS].isr == (1, 2)
    assert asked.answer({ORDERS: LeaderAndIsr(1, 0, (1, 2), 1, 1)}) == ErrorCode.NONE


def test_a_leader_of_the_former_topic_of_that_name_changes_nothing_in_the_new_one() -> None:
    asked = Asked(FORMER_ID, in_metadata={FORMER_ID: "orders"})
    assert not asked.events[0].wanted
    assert asked.answer({}) == ErrorCode.UNKNOWN_TOPIC_ID

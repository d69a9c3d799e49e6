"""Brokers of a scenario: they answer the controller at once, unless they are silent."""

from collections.abc import Callable
from dataclasses import dataclass, field

from odradek.base.errors import ErrorCode
from odradek.broker.controller.core import effects
from odradek.broker.controller.core.context import ControllerContext
from odradek.broker.controller.core.events import Event, LeaderAndIsrAnswered, StopReplicaAnswered
from odradek.model.topology import TopicPartition
from odradek.protocol.messages.leader_and_isr import LeaderAndIsrPartitionState, LeaderAndIsrRequest
from odradek.protocol.messages.stop_replica import StopReplicaRequest
from odradek.protocol.messages.update_metadata import UpdateMetadataPartitionState, UpdateMetadataRequest


@dataclass
class BrokerInMemory:
    """State of one incarnation of a broker."""

    epoch: int
    roles: dict[TopicPartition, LeaderAndIsrPartitionState] = field(default_factory=dict)
    metadata: dict[TopicPartition, UpdateMetadataPartitionState] = field(default_factory=dict)
    failed: set[TopicPartition] = field(default_factory=set)
    is_silent: bool = False
    unsent: list[Callable[[], None]] = field(default_factory=list)
    """Answers of a silent broker."""

    def lead_and_follow(self, request: LeaderAndIsrRequest) -> dict[TopicPartition, ErrorCode]:
        errors = {}
        for topic in request.topic_states:
            for state in topic.partition_states:
                tp = TopicPartition(topic.topic_name, state.partition_index)
                known = self.roles.get(tp)
                assert known is None or known.leader_epoch <= state.leader_epoch, f"{tp}: the leader epoch goes back"
                self.roles[tp] = state
                errors[tp] = ErrorCode.KAFKA_STORAGE_ERROR if tp in self.failed else ErrorCode.NONE
        return errors

    def stop(self, request: StopReplicaRequest) -> dict[TopicPartition, ErrorCode]:
        """Stop the replicas, and answer for the ones to be deleted."""
        errors = {}
        for topic in request.topic_states:
            for state in topic.partition_states:
                tp = TopicPartition(topic.topic_name, state.partition_index)
                self.roles.pop(tp, None)
                if state.delete_partition:
                    errors[tp] = ErrorCode.KAFKA_STORAGE_ERROR if tp in self.failed else ErrorCode.NONE
        return errors

    def learn(self, request: UpdateMetadataRequest) -> None:
        for topic in request.topic_states:
            for state in topic.partition_states:
                self.metadata[TopicPartition(topic.topic_name, state.partition_index)] = state

    def speak(self) -> None:
        self.is_silent = False
        unsent, self.unsent = self.unsent, []
        for send in unsent:
            send()


class BrokersInMemory:
    """Channels of the controller to brokers in memory; requests for an earlier incarnation come to nothing."""

    def __init__(self) -> None:
        self.by_id: dict[int, BrokerInMemory] = {}

    def send(self, context: ControllerContext, effect: effects.Send, answered: Callable[[Event], None]) -> None:
        broker, request = self.by_id.get(effect.broker_id), effect.request
        if broker is None or request.broker_epoch != broker.epoch:
            return
        answer: Event | None = None
        if isinstance(request, LeaderAndIsrRequest):
            answer = LeaderAndIsrAnswered(effect.broker_id, broker.lead_and_follow(request))
        elif isinstance(request, StopReplicaRequest):
            errors = broker.stop(request)
            answer = StopReplicaAnswered(effect.broker_id, errors) if errors else None
        elif isinstance(request, UpdateMetadataRequest):
            broker.learn(request)
        if answer is not None and broker.is_silent:
            held = answer
            broker.unsent.append(lambda: answered(held))
        elif answer is not None:
            answered(answer)

    def close(self, context: ControllerContext, broker_id: int) -> None:
        """Nothing waits in the channel: requests are answered at once."""

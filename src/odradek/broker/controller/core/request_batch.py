"""Requests to brokers at the end of a decision, gathered so that each gets one request of a kind.

The requests are built from the context when the batch is flushed. Every LeaderAndIsr is followed by an
UpdateMetadata of the same partitions to all live brokers. Requests to brokers that aren't live are dropped: such a
broker gets the complete state when it returns. Pure; used inside decisions only.
"""

from collections.abc import Iterable

from odradek.base.config.listeners import SecurityProtocol
from odradek.broker.controller.core.context import ControllerContext
from odradek.broker.controller.core.effects import Send
from odradek.model.topology import (
    EPOCH_DURING_DELETE,
    LEADER_DURING_DELETE,
    ZERO_UUID,
    PartitionReplica,
    TopicPartition,
)
from odradek.protocol.messages.leader_and_isr import (
    LeaderAndIsrLiveLeader,
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    LeaderAndIsrTopicState,
)
from odradek.protocol.messages.stop_replica import StopReplicaPartitionState, StopReplicaRequest, StopReplicaTopicState
from odradek.protocol.messages.update_metadata import (
    UPDATE_OF_ALL,
    UPDATE_UNKNOWN,
    UpdateMetadataBroker,
    UpdateMetadataEndpoint,
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
    UpdateMetadataTopicState,
)
from odradek.protocol.primitives import SharedList

NO_EPOCH_KNOWN = -1


class RequestBatch:
    def __init__(self, context: ControllerContext) -> None:
        self._context = context
        self._to_lead_or_follow: dict[int, dict[TopicPartition, bool]] = {}  # → is it new there
        self._to_stop: dict[int, dict[TopicPartition, bool]] = {}  # → delete its log
        self._to_update: set[int] = set()
        self._updated: dict[TopicPartition, None] = {}  # in the order in which they came
        self._is_full = False

    def add_leader_and_isr(self, brokers: Iterable[int], tp: TopicPartition, *, is_new: bool = False) -> None:
        """Add the partitions; those without a state are left out."""
        if tp not in self._context.states:
            return
        for broker in brokers:
            partitions = self._to_lead_or_follow.setdefault(broker, {})
            partitions[tp] = is_new or partitions.get(tp, False)
        self.add_update_metadata(self._context.brokers, (tp,))

    def add_stop_replica(self, brokers: Iterable[int], tp: TopicPartition, *, delete: bool) -> None:
        for broker in brokers:
            partitions = self._to_stop.setdefault(broker, {})
            partitions[tp] = delete or partitions.get(tp, False)

    def add_update_metadata(self, brokers: Iterable[int], tps: Iterable[TopicPartition] = ()) -> None:
        """Send UpdateMetadata for the partitions; without partitions it carries the live brokers alone."""
        self._to_update.update(brokers)
        for tp in tps:
            if tp in self._context.states:
                self._updated[tp] = None

    def add_full_metadata(self, brokers: Iterable[int], tps: Iterable[TopicPartition]) -> None:
        """Send all partitions of the cluster to brokers: they remove others. A broker may have missed that a topic was
        deleted, while its session was lost or between two controllers."""
        self._is_full = True
        self.add_update_metadata(brokers, tps)

    def flush(self) -> list[Send]:
        sends = [*self._leader_and_isr_requests(), *self._update_metadata_requests(), *self._stop_replica_requests()]
        self._to_lead_or_follow.clear()
        self._to_stop.clear()
        self._to_update.clear()
        self._updated.clear()
        self._is_full = False
        return sends

    # --- LeaderAndIsr --------------------------------------------------------------------------------------------

    def _leader_and_isr_requests(self) -> Iterable[Send]:
        built: dict[tuple[TopicPartition, bool], LeaderAndIsrPartitionState] = {}
        for broker in sorted(self._to_lead_or_follow.keys() & self._context.brokers.keys()):
            topics: dict[str, LeaderAndIsrTopicState] = {}
            leaders = set()
            for tp, is_new in self._to_lead_or_follow[broker].items():
                state = built.get((tp, is_new))
                if state is None:
                    state = built[tp, is_new] = self._directive(tp, is_new)
                leaders.add(state.leader)
                topic = topics.get(tp.topic)
                if topic is None:
                    topic_id = self._context.topic_ids.get(tp.topic, ZERO_UUID)
                    topic = topics[tp.topic] = LeaderAndIsrTopicState(topic_name=tp.topic, topic_id=topic_id)
                topic.partition_states.append(state)
            yield Send(
                broker,
                LeaderAndIsrRequest(
                    controller_id=self._context.broker_id,
                    controller_epoch=self._context.term.epoch,
                    broker_epoch=self._context.brokers[broker].epoch,
                    topic_states=list(topics.values()),
                    live_leaders=self._live_leaders(leaders),
                ),
            )

    def _directive(self, tp: TopicPartition, is_new: bool) -> LeaderAndIsrPartitionState:
        state = self._context.states[tp]
        assignment = self._context.assignment(tp)
        return LeaderAndIsrPartitionState(
            topic_name=tp.topic,
            partition_index=tp.partition,
            controller_epoch=state.controller_epoch,
            leader=state.leader,
            leader_epoch=state.leader_epoch,
            isr=list(state.isr),
            partition_epoch=state.zk_version,
            replicas=list(assignment.replicas),
            adding_replicas=list(assignment.adding),
            removing_replicas=list(assignment.removing),
            is_new=is_new,
            leader_recovery_state=int(state.recovering),
        )

    def _live_leaders(self, leaders: set[int]) -> list[LeaderAndIsrLiveLeader]:
        found = []
        for broker in sorted(leaders & self._context.brokers.keys()):
            endpoint = self._context.brokers[broker].endpoint(self._context.inter_broker_listener)
            if endpoint is not None:
                found.append(LeaderAndIsrLiveLeader(broker_id=broker, host_name=endpoint.host, port=endpoint.port))
        return found

    # --- UpdateMetadata ------------------------------------------------------------------------------------------

    def _update_metadata_requests(self) -> Iterable[Send]:
        recipients = sorted(self._to_update & self._context.brokers.keys())
        if not recipients:
            return
        topics: dict[str, UpdateMetadataTopicState] = {}
        for tp in self._updated:
            topic = topics.get(tp.topic)
            if topic is None:
                topic_id = self._context.topic_ids.get(tp.topic, ZERO_UUID)
                topic = topics[tp.topic] = UpdateMetadataTopicState(topic_name=tp.topic, topic_id=topic_id)
            topic.partition_states.append(self._metadata(tp))
        states, live_brokers = SharedList(topics.values()), SharedList(self._live_brokers())
        for broker in recipients:
            yield Send(
                broker,
                UpdateMetadataRequest(
                    type=UPDATE_OF_ALL if self._is_full else UPDATE_UNKNOWN,
                    controller_id=self._context.broker_id,
                    controller_epoch=self._context.term.epoch,
                    broker_epoch=self._context.brokers[broker].epoch,
                    topic_states=states,
                    live_brokers=live_brokers,
                ),
            )

    def _metadata(self, tp: TopicPartition) -> UpdateMetadataPartitionState:
        state = self._context.states[tp]
        replicas = self._context.assignment(tp).replicas
        deleted = self._context.is_being_deleted(tp.topic)
        return UpdateMetadataPartitionState(
            topic_name=tp.topic,
            partition_index=tp.partition,
            controller_epoch=state.controller_epoch,
            leader=LEADER_DURING_DELETE if deleted else state.leader,
            leader_epoch=0 if deleted else state.leader_epoch,
            isr=list(state.isr),
            zk_version=0 if deleted else state.zk_version,
            replicas=list(replicas),
            offline_replicas=[b for b in replicas if not self._context.is_online(PartitionReplica(tp, b))],
        )

    def _live_brokers(self) -> list[UpdateMetadataBroker]:
        return [
            UpdateMetadataBroker(
                id=broker.id,
                endpoints=[
                    UpdateMetadataEndpoint(
                        host=endpoint.host,
                        port=endpoint.port,
                        listener=endpoint.listener,
                        security_protocol=SecurityProtocol[endpoint.security_protocol].value,
                    )
                    for endpoint in broker.endpoints
                    if endpoint.security_protocol in SecurityProtocol.__members__
                ],
                rack=broker.rack,
            )
            for _, broker in sorted(self._context.brokers.items())
        ]

    # --- StopReplica ---------------------------------------------------------------------------------------------

    def _stop_replica_requests(self) -> Iterable[Send]:
        for broker in sorted(self._to_stop.keys() & self._context.brokers.keys()):
            topics: dict[str, StopReplicaTopicState] = {}
            for tp, delete in self._to_stop[broker].items():
                topic = topics.setdefault(tp.topic, StopReplicaTopicState(topic_name=tp.topic))
                topic.partition_states.append(
                    StopReplicaPartitionState(
                        partition_index=tp.partition, leader_epoch=self._leader_epoch(tp), delete_partition=delete
                    )
                )
            yield Send(
                broker,
                StopReplicaRequest(
                    controller_id=self._context.broker_id,
                    controller_epoch=self._context.term.epoch,
                    broker_epoch=self._context.brokers[broker].epoch,
                    topic_states=list(topics.values()),
                ),
            )

    def _leader_epoch(self, tp: TopicPartition) -> int:
        """Return the leader epoch of a StopReplica; a topic that is deleted is stopped at every epoch."""
        if self._context.is_being_deleted(tp.topic):
            return EPOCH_DURING_DELETE
        state = self._context.states.get(tp)
        return NO_EPOCH_KNOWN if state is None else state.leader_epoch

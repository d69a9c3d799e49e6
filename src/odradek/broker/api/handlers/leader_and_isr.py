"""LeaderAndIsr (key 4): the controller makes replicas of this broker leaders, or followers of a given leader.

Versions 0-7. v2 groups by topic, v3 adds reassignments, v5 adds topic ids and the kind of the request. Differs from
Kafka: a partition whose name no topic can have is refused, since its directory would be another one, or could not be
made, which is taken for a failure of the disk. Not done: requests of a KRaft controller during a migration.
"""

from collections.abc import Callable, Iterable
from uuid import UUID

from odradek.base.config.topic_config import TopicConfig
from odradek.base.errors import ErrorCode
from odradek.base.logs import get_logger
from odradek.broker.api.authorization import authorized_on_cluster
from odradek.broker.api.context import RequestContext
from odradek.broker.api.registry import LATER, Outcome, handles
from odradek.model.acls import AclOperation
from odradek.model.topic_names import name_fault
from odradek.model.topology import ZERO_UUID, Endpoint, LeaderAndIsr, PartitionDirective, TopicPartition
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.messages.leader_and_isr import (
    LeaderAndIsrPartitionError,
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    LeaderAndIsrTopicError,
)

log = get_logger(__name__)

FIRST_BY_TOPIC = 2
FIRST_WITH_TOPIC_IDS = 5

Named = tuple[str, UUID, LeaderAndIsrPartitionState]


@handles(ApiKey.LEADER_AND_ISR, versions="0-7", may_block=False)
def leader_and_isr(request: LeaderAndIsrRequest, ctx: RequestContext) -> LeaderAndIsrResponse | Outcome:
    named = list(_named(request, ctx.version))
    if not authorized_on_cluster(ctx, AclOperation.CLUSTER_ACTION):
        return _refused(named, ErrorCode.CLUSTER_AUTHORIZATION_FAILED, ctx.version)

    def response(refusal: ErrorCode) -> LeaderAndIsrResponse:
        if refusal:
            return _refused(named, refusal, ctx.version)
        refused = _impossible(named)
        directives = [each for each in _directives(named, request, ctx) if each.partition not in refused]
        errors = ctx.broker.roles.become(
            directives,
            _config_of(directives, ctx),
            controller_id=request.controller_id,
            controller_epoch=request.controller_epoch,
        )
        return _response(named, {**errors, **refused}, ErrorCode.NONE, ctx.version)

    ctx.broker.control.submit(request, ctx.header.correlation_id, ctx.reply_with(response))
    return LATER


def _named(request: LeaderAndIsrRequest, version: int) -> Iterable[Named]:
    if version < FIRST_BY_TOPIC:
        for state in request.ungrouped_partition_states:
            yield state.topic_name, ZERO_UUID, state
        return
    for topic in request.topic_states:
        for state in topic.partition_states:
            yield topic.topic_name, topic.topic_id, state


def _impossible(named: list[Named]) -> dict[TopicPartition, ErrorCode]:
    """Partitions that can't be, with their error."""
    names = {name for name in {name for name, _, _ in named} if name_fault(name)}
    refused = [
        TopicPartition(name, state.partition_index)
        for name, _, state in named
        if name in names or state.partition_index < 0
    ]
    if refused:
        log.warning("partitions of impossible names refused", partitions=len(refused), first=str(refused[0])[:300])
    return dict.fromkeys(refused, ErrorCode.INVALID_TOPIC_EXCEPTION)


def _directives(named: list[Named], request: LeaderAndIsrRequest, ctx: RequestContext) -> list[PartitionDirective]:
    listener = ctx.broker.config.inter_broker_listener_name
    leaders = {
        leader.broker_id: Endpoint(listener, listener, leader.host_name, leader.port) for leader in request.live_leaders
    }
    return [
        PartitionDirective(
            TopicPartition(name, state.partition_index),
            topic_id,
            LeaderAndIsr(
                state.leader, state.leader_epoch, tuple(state.isr), state.controller_epoch, state.partition_epoch
            ),
            tuple(state.replicas),
            is_new=state.is_new,
            adding=tuple(state.adding_replicas),
            removing=tuple(state.removing_replicas),
            leader_endpoint=leaders.get(state.leader) if state.leader != ctx.broker.id else None,
        )
        for name, topic_id, state in named
    ]


def _config_of(directives: list[PartitionDirective], ctx: RequestContext) -> Callable[[str], TopicConfig]:
    """Return the configuration of a topic; the overrides of a topic that is new here are read first."""
    hosted = ctx.broker.replicas.partitions
    if new := {d.partition.topic for d in directives if d.partition not in hosted}:
        ctx.broker.configs.look_up(new)
    return ctx.broker.configs.effective


def _refused(named: list[Named], code: ErrorCode, version: int) -> LeaderAndIsrResponse:
    return _response(
        named, {TopicPartition(name, state.partition_index): code for name, _, state in named}, code, version
    )


def _response(
    named: list[Named], errors: dict[TopicPartition, ErrorCode], code: ErrorCode, version: int
) -> LeaderAndIsrResponse:
    response = LeaderAndIsrResponse(error_code=code)
    topics: dict[UUID, LeaderAndIsrTopicError] = {}
    for name, topic_id, state in named:
        error = LeaderAndIsrPartitionError(
            topic_name=name,
            partition_index=state.partition_index,
            error_code=errors.get(TopicPartition(name, state.partition_index), ErrorCode.NONE),
        )
        if version < FIRST_WITH_TOPIC_IDS:
            response.partition_errors.append(error)
            continue
        if topic_id not in topics:
            topics[topic_id] = LeaderAndIsrTopicError(topic_id=topic_id)
            response.topics.append(topics[topic_id])
        topics[topic_id].partition_errors.append(error)
    return response

"""UpdateMetadata (key 6): the controller sends live brokers and partition leaders to every broker, for its clients.

Versions 0-8. v5 groups by topic, v7 adds topic ids. A partition with leader -2 is being deleted and is removed. Every
request contains all live brokers, but only the partitions that changed. Not done: requests of a KRaft controller during
a migration.
"""

from collections.abc import Iterable
from uuid import UUID

from odradek.base.config.listeners import SecurityProtocol
from odradek.base.errors import ErrorCode
from odradek.base.logs import get_logger
from odradek.broker.api.authorization import authorized_on_cluster
from odradek.broker.api.context import RequestContext
from odradek.broker.api.registry import LATER, Outcome, handles
from odradek.model.acls import AclOperation
from odradek.model.metadata_image import PartitionImage, TopicUpdate
from odradek.model.topology import LEADER_DURING_DELETE, ZERO_UUID, Broker, Endpoint
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.messages.update_metadata import (
    UPDATE_OF_ALL,
    UpdateMetadataBroker,
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
    UpdateMetadataResponse,
)

log = get_logger(__name__)

FIRST_BY_TOPIC = 5


@handles(ApiKey.UPDATE_METADATA, versions="0-8", may_block=False)
def update_metadata(request: UpdateMetadataRequest, ctx: RequestContext) -> UpdateMetadataResponse | Outcome:
    if not authorized_on_cluster(ctx, AclOperation.CLUSTER_ACTION):
        return UpdateMetadataResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)

    def response(refusal: ErrorCode) -> UpdateMetadataResponse:
        return UpdateMetadataResponse(error_code=refusal or _publish(request, ctx))

    ctx.broker.control.submit(request, ctx.header.correlation_id, ctx.reply_with(response))
    return LATER


def _publish(request: UpdateMetadataRequest, ctx: RequestContext) -> ErrorCode:
    cache = ctx.broker.metadata
    before = cache.image
    try:
        brokers = {broker.id: _broker(broker, ctx.version) for broker in request.live_brokers}
    except ValueError as error:
        log.warning("invalid UpdateMetadata ignored", error=str(error))
        return ErrorCode.INVALID_REQUEST
    news = list(_news(request, ctx.version))
    is_full = request.type == UPDATE_OF_ALL
    after = before.updated(request.controller_id, brokers, news, is_full=is_full)
    cache.publish(after)
    if is_full:
        ctx.broker.roles.set_strays_aside()
    for name in after.deleted_since(before):
        ctx.broker.groups.forget_topic(name)
    return ErrorCode.NONE


def _broker(broker: UpdateMetadataBroker, version: int) -> Broker:
    if version == 0:
        return Broker(broker.id, (Endpoint("PLAINTEXT", "PLAINTEXT", broker.v0_host, broker.v0_port),))
    endpoints = tuple(
        Endpoint(
            endpoint.listener if version >= 3 else SecurityProtocol(endpoint.security_protocol).name,
            SecurityProtocol(endpoint.security_protocol).name,
            endpoint.host,
            endpoint.port,
        )
        for endpoint in broker.endpoints
    )
    return Broker(broker.id, endpoints, broker.rack)


def _news(request: UpdateMetadataRequest, version: int) -> Iterable[TopicUpdate]:
    if version >= FIRST_BY_TOPIC:
        for topic in request.topic_states:
            yield _topic(topic.topic_name, topic.topic_id, topic.partition_states)
        return
    by_topic: dict[str, list[UpdateMetadataPartitionState]] = {}
    for state in request.ungrouped_partition_states:
        by_topic.setdefault(state.topic_name, []).append(state)
    for name, states in by_topic.items():
        yield _topic(name, ZERO_UUID, states)


def _topic(name: str, topic_id: UUID, states: Iterable[UpdateMetadataPartitionState]) -> TopicUpdate:
    return TopicUpdate(name, topic_id, {state.partition_index: _partition(state) for state in states})


def _partition(state: UpdateMetadataPartitionState) -> PartitionImage | None:
    if state.leader == LEADER_DURING_DELETE:
        return None
    return PartitionImage(
        state.leader, state.leader_epoch, tuple(state.replicas), tuple(state.isr), tuple(state.offline_replicas)
    )

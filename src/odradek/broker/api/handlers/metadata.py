"""Metadata (key 3): the brokers, the controller, and the leaders of partitions.

Versions 0-12. v0 asks for all topics with an empty list, v1+ with null; v4 lets the client forbid auto-creation; v10
adds topic ids, v12 asks by them (earlier, that is an INVALID_REQUEST). A topic that is to be created by asking is
created in the background and answered with LEADER_NOT_AVAILABLE, so that the client asks again. A topic that is named
many times is answered once: its partitions are more than its name. Not done: nothing.
"""

from uuid import UUID

from odradek.base.errors import ErrorCode, KafkaError
from odradek.base.value_classes import dataclass
from odradek.broker.api.authorization import (
    NONE_DENIED,
    NOT_ASKED,
    authorized_on_cluster,
    authorized_operations,
    denied_topics,
    operations_on_cluster,
)
from odradek.broker.api.context import RequestContext
from odradek.broker.api.registry import handles
from odradek.model.acls import AclOperation, ResourceType
from odradek.model.metadata_image import MetadataImage, PartitionImage, TopicImage
from odradek.model.topic_names import check_topic_name, is_internal
from odradek.model.topology import NO_LEADER, ZERO_UUID
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

FIRST_BY_ID = 12
FIRST_WITH_LISTENER_ERROR = 6


@handles(ApiKey.METADATA, versions="0-12", may_block=False)
def metadata(request: MetadataRequest, ctx: RequestContext) -> MetadataResponse:
    image = ctx.broker.metadata.image
    wants_all = request.topics is None or (ctx.version == 0 and not request.topics)
    if wants_all:
        hidden = denied_topics(ctx, AclOperation.DESCRIBE, image.topics, log_denied=False)
        topics = [_known(topic, request, image, ctx) for topic in image.topics.values() if topic.name not in hidden]
    else:
        denied = _denied(request, image, ctx)
        asked = {(topic.name, topic.topic_id): topic for topic in request.topics or ()}
        topics = [_asked(topic, request, image, denied, ctx) for topic in asked.values()]
    return MetadataResponse(
        brokers=_brokers(image, ctx),
        cluster_id=image.cluster_id,
        controller_id=image.controller_id,
        topics=topics,
        cluster_authorized_operations=(
            operations_on_cluster(ctx) if request.include_cluster_authorized_operations else NOT_ASKED
        ),
    )


def _brokers(image: MetadataImage, ctx: RequestContext) -> list[MetadataResponseBroker]:
    return [
        MetadataResponseBroker(node_id=broker.id, host=endpoint.host, port=endpoint.port, rack=broker.rack)
        for broker, endpoint in image.reached_by(ctx.connection.listener_name)
    ]


@dataclass(frozen=True, slots=True)
class _Denied:
    """Names that the principal may not describe, whether they exist or not, and missing ones it may not create."""

    describe: frozenset[str] = NONE_DENIED
    create: frozenset[str] = NONE_DENIED


def _denied(request: MetadataRequest, image: MetadataImage, ctx: RequestContext) -> _Denied:
    if ctx.broker.authorizer is None:
        return _Denied()
    asked = (
        topic.name if topic.name is not None else image.topic_names.get(topic.topic_id)
        for topic in request.topics or ()
    )
    names = dict.fromkeys(name for name in asked if name is not None)
    describe = denied_topics(ctx, AclOperation.DESCRIBE, names)
    missing = [name for name in names if name not in describe and name not in image.topics]
    create = NONE_DENIED
    if missing and _may_create(request, ctx) and not authorized_on_cluster(ctx, AclOperation.CREATE, log_denied=False):
        create = denied_topics(ctx, AclOperation.CREATE, missing)
    return _Denied(describe, create)


def _may_create(request: MetadataRequest, ctx: RequestContext) -> bool:
    return ctx.broker.config.auto_create_topics_enable and (ctx.version < 4 or request.allow_auto_topic_creation)


def _asked(
    asked: MetadataRequestTopic, request: MetadataRequest, image: MetadataImage, denied: _Denied, ctx: RequestContext
) -> MetadataResponseTopic:
    if ctx.version < FIRST_BY_ID and (asked.name is None or asked.topic_id != ZERO_UUID):
        return _unknown(asked.name or "", ErrorCode.INVALID_REQUEST)
    if asked.name is None:
        return _by_id(asked.topic_id, request, image, denied, ctx)
    if asked.name in denied.describe:
        return _unknown(asked.name, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    if asked.name in denied.create:
        refused = _unknown(asked.name, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        refused.is_internal = is_internal(asked.name)
        return refused
    topic = image.topics.get(asked.name)
    if topic is not None:
        return _known(topic, request, image, ctx)
    return MetadataResponseTopic(
        error_code=_missing(asked.name, request, ctx),
        name=asked.name,
        is_internal=is_internal(asked.name),
        topic_authorized_operations=_rights(asked.name, request, ctx),
    )


def _by_id(
    topic_id: UUID, request: MetadataRequest, image: MetadataImage, denied: _Denied, ctx: RequestContext
) -> MetadataResponseTopic:
    name = image.topic_names.get(topic_id)
    if name is None:
        return _unknown(None, ErrorCode.UNKNOWN_TOPIC_ID, topic_id)
    if name in denied.describe:
        return _unknown(None, ErrorCode.TOPIC_AUTHORIZATION_FAILED, topic_id)
    return _known(image.topics[name], request, image, ctx)


def _missing(name: str, request: MetadataRequest, ctx: RequestContext) -> ErrorCode:
    try:
        check_topic_name(name)
    except KafkaError as error:
        return error.code
    if _may_create(request, ctx) and ctx.broker.topics.create_soon(name):
        return ErrorCode.LEADER_NOT_AVAILABLE
    return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def _unknown(name: str | None, error: ErrorCode, topic_id: UUID | None = None) -> MetadataResponseTopic:
    topic = MetadataResponseTopic(error_code=error, name=name)
    if topic_id is not None:
        topic.topic_id = topic_id
    return topic


def _known(
    topic: TopicImage, request: MetadataRequest, image: MetadataImage, ctx: RequestContext
) -> MetadataResponseTopic:
    return MetadataResponseTopic(
        name=topic.name,
        topic_id=topic.id,
        is_internal=is_internal(topic.name),
        topic_authorized_operations=_rights(topic.name, request, ctx),
        partitions=[_partition(index, partition, image, ctx) for index, partition in topic.partitions.items()],
    )


def _rights(name: str, request: MetadataRequest, ctx: RequestContext) -> int:
    """Authorized operations on a topic name, also of a topic that doesn't exist."""
    asked = request.include_topic_authorized_operations
    return authorized_operations(ctx, ResourceType.TOPIC, name) if asked else NOT_ASKED


def _partition(
    index: int, partition: PartitionImage, image: MetadataImage, ctx: RequestContext
) -> MetadataResponsePartition:
    """A leader that the client can't reach is none to it."""
    leader, replicas, isr, error = partition.leader, partition.replicas, partition.isr, ErrorCode.NONE
    if ctx.version == 0:
        replicas, isr = (tuple(b for b in ids if _is_reachable(b, image, ctx)) for ids in (replicas, isr))
        if len(replicas) < len(partition.replicas) or len(isr) < len(partition.isr):
            error = ErrorCode.REPLICA_NOT_AVAILABLE
    if not _is_reachable(leader, image, ctx):
        is_listener_missing = leader in image.brokers and ctx.version >= FIRST_WITH_LISTENER_ERROR
        error = ErrorCode.LISTENER_NOT_FOUND if is_listener_missing else ErrorCode.LEADER_NOT_AVAILABLE
        leader = NO_LEADER
    return MetadataResponsePartition(
        error_code=error,
        partition_index=index,
        leader_id=leader,
        leader_epoch=partition.leader_epoch,
        replica_nodes=list(replicas),
        isr_nodes=list(isr),
        offline_replicas=list(partition.offline),
    )


def _is_reachable(broker_id: int, image: MetadataImage, ctx: RequestContext) -> bool:
    broker = image.brokers.get(broker_id)
    return broker is not None and broker.endpoint(ctx.connection.listener_name) is not None

"""Metadata (key 3): the brokers, the controller, and who leads which partition.

Versions 0-12. v0 asks for all topics with an empty list, v1+ with null; v4 lets the client forbid auto-creation; v10
adds topic ids, v12 asks by them (earlier, that is an INVALID_REQUEST). A topic that is to be created by asking is
created in the background and answered with LEADER_NOT_AVAILABLE, so that the client asks again. Not done: nothing; who
may do what comes with authorization.
"""

from uuid import UUID

from odradek.api.context import RequestContext
from odradek.api.registry import handles
from odradek.base.errors import ErrorCode, KafkaError
from odradek.model.metadata_image import MetadataImage, TopicImage
from odradek.model.operations import ALL_ON_CLUSTER, ALL_ON_TOPIC, NOT_ASKED
from odradek.model.topic_names import check_topic_name, is_internal
from odradek.model.topology import ZERO_UUID
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


@handles(ApiKey.METADATA, versions="0-12", may_block=False)
def metadata(request: MetadataRequest, ctx: RequestContext) -> MetadataResponse:
    image = ctx.broker.metadata.image
    wants_all = request.topics is None or (ctx.version == 0 and not request.topics)
    if wants_all:
        topics = [_known(topic, request) for topic in image.topics.values()]
    else:
        topics = [_asked(topic, request, image, ctx) for topic in request.topics or ()]
    return MetadataResponse(
        brokers=_brokers(image, ctx),
        cluster_id=image.cluster_id,
        controller_id=image.controller_id,
        topics=topics,
        cluster_authorized_operations=ALL_ON_CLUSTER if request.include_cluster_authorized_operations else NOT_ASKED,
    )


def _brokers(image: MetadataImage, ctx: RequestContext) -> list[MetadataResponseBroker]:
    return [
        MetadataResponseBroker(node_id=broker.id, host=endpoint.host, port=endpoint.port, rack=broker.rack)
        for broker, endpoint in image.reached_by(ctx.connection.listener_name)
    ]


def _asked(
    asked: MetadataRequestTopic, request: MetadataRequest, image: MetadataImage, ctx: RequestContext
) -> MetadataResponseTopic:
    if ctx.version < FIRST_BY_ID and (asked.name is None or asked.topic_id != ZERO_UUID):
        return _unknown(asked.name or "", ErrorCode.INVALID_REQUEST)
    if asked.name is None:
        return _by_id(asked.topic_id, request, image)
    topic = image.topics.get(asked.name)
    if topic is not None:
        return _known(topic, request)
    return _unknown(asked.name, _missing(asked.name, request, ctx))


def _by_id(topic_id: UUID, request: MetadataRequest, image: MetadataImage) -> MetadataResponseTopic:
    name = image.topic_names.get(topic_id)
    if name is None:
        return _unknown(None, ErrorCode.UNKNOWN_TOPIC_ID, topic_id)
    return _known(image.topics[name], request)


def _missing(name: str, request: MetadataRequest, ctx: RequestContext) -> ErrorCode:
    try:
        check_topic_name(name)
    except KafkaError as error:
        return error.code
    may_create = ctx.version < 4 or request.allow_auto_topic_creation
    if may_create and ctx.broker.config.auto_create_topics_enable and ctx.broker.topics.create_soon(name):
        return ErrorCode.LEADER_NOT_AVAILABLE
    return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def _unknown(name: str | None, error: ErrorCode, topic_id: UUID | None = None) -> MetadataResponseTopic:
    topic = MetadataResponseTopic(error_code=error, name=name)
    if topic_id is not None:
        topic.topic_id = topic_id
    return topic


def _known(topic: TopicImage, request: MetadataRequest) -> MetadataResponseTopic:
    return MetadataResponseTopic(
        name=topic.name,
        topic_id=topic.id,
        is_internal=is_internal(topic.name),
        topic_authorized_operations=ALL_ON_TOPIC if request.include_topic_authorized_operations else NOT_ASKED,
        partitions=[
            MetadataResponsePartition(
                error_code=ErrorCode.NONE if partition.leader >= 0 else ErrorCode.LEADER_NOT_AVAILABLE,
                partition_index=index,
                leader_id=partition.leader,
                leader_epoch=partition.leader_epoch,
                replica_nodes=list(partition.replicas),
                isr_nodes=list(partition.isr),
                offline_replicas=list(partition.offline),
            )
            for index, partition in topic.partitions.items()
        ],
    )

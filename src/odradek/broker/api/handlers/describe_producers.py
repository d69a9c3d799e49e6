"""DescribeProducers (key 61): the idempotent and transactional producers that the leader of a partition remembers.

Versions 0-0. Differs from Kafka: a partition that is named very often is described at most 10 times. Not done: nothing.
"""

from odradek.base.errors import ErrorCode, KafkaError
from odradek.broker.api.authorization import denial, denied_topics
from odradek.broker.api.context import RequestContext
from odradek.broker.api.registry import handles
from odradek.broker.api.repetitions import Repetitions
from odradek.model.acls import AclOperation
from odradek.model.topic_names import check_topic_name
from odradek.model.topology import TopicPartition
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)


@handles(ApiKey.DESCRIBE_PRODUCERS, versions="0-0", may_block=True)
def describe_producers(request: DescribeProducersRequest, ctx: RequestContext) -> DescribeProducersResponse:
    denied = denied_topics(ctx, AclOperation.READ, [topic.name for topic in request.topics])
    repetitions = Repetitions()
    return DescribeProducersResponse(
        topics=[
            TopicResponse(
                name=topic.name,
                partitions=[
                    _partition(TopicPartition(topic.name, index), denied, ctx)
                    for index in topic.partition_indexes
                    if repetitions.may_answer((topic.name, index))
                ],
            )
            for topic in request.topics
        ]
    )


def _partition(tp: TopicPartition, denied: frozenset[str], ctx: RequestContext) -> PartitionResponse:
    response = PartitionResponse(partition_index=tp.partition)
    try:
        if tp.topic in denied:
            raise denial(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        response.active_producers = _producers(tp, ctx)
    except KafkaError as error:
        response.error_code, response.error_message = error.code, error.message or None
    return response


def _producers(tp: TopicPartition, ctx: RequestContext) -> list[ProducerState]:
    check_topic_name(tp.topic)
    if tp.topic not in ctx.broker.metadata.image.topics:
        message = "This server does not host this topic-partition."
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, message)
    partition = ctx.broker.replicas.find(tp)
    if not partition.is_leader:
        raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    return [
        ProducerState(
            producer_id=entry.producer_id,
            producer_epoch=entry.epoch,
            last_sequence=entry.last_sequence,
            last_timestamp=entry.last_timestamp,
            coordinator_epoch=entry.coordinator_epoch,
            current_txn_start_offset=entry.txn_first_offset,
        )
        for entry in partition.log.producers.entries.copy().values()
    ]

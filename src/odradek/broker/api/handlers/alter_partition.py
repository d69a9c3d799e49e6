"""AlterPartition (key 56): a leader asks the controller to change the ISR of its partitions.

Versions 0-3. v1 has the recovery state after an unclean election; v2 names topics by id and knows INELIGIBLE_REPLICA;
v3 names the brokers of the ISR with their epochs: one that has restarted since the leader saw it doesn't join.
Not done: nothing.
"""

from collections.abc import Mapping
from uuid import UUID

from odradek.base.errors import ErrorCode, KafkaError
from odradek.broker.api.authorization import authorized_on_cluster
from odradek.broker.api.context import RequestContext
from odradek.broker.api.controller_requests import ask_controller
from odradek.broker.api.registry import Outcome, handles
from odradek.broker.controller.core.events import IsrChangeAsked
from odradek.model.acls import AclOperation
from odradek.model.topology import LeaderAndIsr, TopicPartition
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    PartitionData,
    PartitionResult,
    TopicData,
    TopicResult,
)

FIRST_BY_ID = 2
FIRST_WITH_BROKER_EPOCHS = 3
RECOVERED, RECOVERING = 0, 1

Answers = dict[TopicPartition, LeaderAndIsr | KafkaError]


@handles(ApiKey.ALTER_PARTITION, versions="0-3", may_block=False)
def alter_partition(request: AlterPartitionRequest, ctx: RequestContext) -> AlterPartitionResponse | Outcome:
    if not authorized_on_cluster(ctx, AclOperation.CLUSTER_ACTION):
        return AlterPartitionResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    ids = ctx.broker.controller.topic_ids() if ctx.version >= FIRST_BY_ID else {}
    named = [(topic, _name(topic, ids, ctx)) for topic in request.topics]
    wanted = {
        TopicPartition(name, partition.partition_index): _wanted(partition, request.broker_id, ctx.version)
        for topic, name in named
        if name is not None
        for partition in topic.partitions
    }

    seen = {
        TopicPartition(name, partition.partition_index): {
            broker.broker_id: broker.broker_epoch for broker in partition.new_isr_with_epochs
        }
        for topic, name in named
        if name is not None
        for partition in topic.partitions
    }

    def response(answers: Answers | KafkaError) -> AlterPartitionResponse:
        if isinstance(answers, KafkaError):
            return AlterPartitionResponse(error_code=answers.code)
        return AlterPartitionResponse(topics=[_topic(topic, name, answers, ctx.version) for topic, name in named])

    return ask_controller(
        ctx, lambda answer: IsrChangeAsked(request.broker_id, request.broker_epoch, wanted, answer, seen), response
    )


def _name(topic: TopicData, ids: Mapping[str, UUID], ctx: RequestContext) -> str | None:
    """Return the name of the topic as the controller knows it. Its broker's metadata may be late: without a new topic,
    or with the former one of that name."""
    if ctx.version < FIRST_BY_ID:
        return topic.topic_name
    name = ctx.broker.metadata.image.topic_names.get(topic.topic_id)
    if name is not None and ids.get(name, topic.topic_id) == topic.topic_id:
        return name
    return next((name for name, topic_id in ids.items() if topic_id == topic.topic_id), None)


def _wanted(partition: PartitionData, leader: int, version: int) -> LeaderAndIsr:
    isr = (
        tuple(broker.broker_id for broker in partition.new_isr_with_epochs)
        if version >= FIRST_WITH_BROKER_EPOCHS
        else tuple(partition.new_isr)
    )
    recovering = partition.leader_recovery_state == RECOVERING
    return LeaderAndIsr(leader, partition.leader_epoch, isr, -1, partition.partition_epoch, recovering=recovering)


def _topic(topic: TopicData, name: str | None, answers: Answers, version: int) -> TopicResult:
    result = TopicResult(topic_name=name or "", topic_id=topic.topic_id)
    for partition in topic.partitions:
        answer: LeaderAndIsr | KafkaError = KafkaError(ErrorCode.UNKNOWN_TOPIC_ID)
        if name is not None:
            answer = answers[TopicPartition(name, partition.partition_index)]
        result.partitions.append(_partition(partition.partition_index, answer, version))
    return result


def _partition(index: int, answer: LeaderAndIsr | KafkaError, version: int) -> PartitionResult:
    if isinstance(answer, KafkaError):
        unknown_to_it = answer.code is ErrorCode.INELIGIBLE_REPLICA and version < FIRST_BY_ID
        code = ErrorCode.OPERATION_NOT_ATTEMPTED if unknown_to_it else answer.code
        return PartitionResult(partition_index=index, error_code=code)
    return PartitionResult(
        partition_index=index,
        leader_id=answer.leader,
        leader_epoch=answer.leader_epoch,
        isr=list(answer.isr),
        leader_recovery_state=RECOVERING if answer.recovering else RECOVERED,
        partition_epoch=answer.zk_version,
    )

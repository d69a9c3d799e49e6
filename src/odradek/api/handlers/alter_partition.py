"""AlterPartition (key 56): a leader asks the controller to change the ISR of its partitions.

Versions 0-3. v2 names topics by id, v3 the brokers of the ISR with their epochs, which ZooKeeper mode doesn't look at.
Not done: the recovery state after an unclean election, which is always "recovered".
"""

from odradek.api.context import RequestContext
from odradek.api.controller_door import ask_controller
from odradek.api.registry import Outcome, handles
from odradek.base.errors import ErrorCode, KafkaError
from odradek.controller.events import IsrChangeAsked
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

Answers = dict[TopicPartition, LeaderAndIsr | KafkaError]


@handles(ApiKey.ALTER_PARTITION, versions="0-3", may_block=False)
def alter_partition(request: AlterPartitionRequest, ctx: RequestContext) -> Outcome:
    named = [(topic, _name(topic, ctx)) for topic in request.topics]
    wanted = {
        TopicPartition(name, partition.partition_index): _wanted(partition, request.broker_id, ctx.version)
        for topic, name in named
        if name is not None
        for partition in topic.partitions
    }

    def response(answers: Answers | KafkaError) -> AlterPartitionResponse:
        if isinstance(answers, KafkaError):
            return AlterPartitionResponse(error_code=answers.code)
        return AlterPartitionResponse(topics=[_topic(topic, name, answers) for topic, name in named])

    return ask_controller(
        ctx, lambda answer: IsrChangeAsked(request.broker_id, request.broker_epoch, wanted, answer), response
    )


def _name(topic: TopicData, ctx: RequestContext) -> str | None:
    return ctx.broker.metadata.image.topic_names.get(topic.topic_id) if ctx.version >= FIRST_BY_ID else topic.topic_name


def _wanted(partition: PartitionData, leader: int, version: int) -> LeaderAndIsr:
    isr = (
        tuple(broker.broker_id for broker in partition.new_isr_with_epochs)
        if version >= FIRST_WITH_BROKER_EPOCHS
        else tuple(partition.new_isr)
    )
    return LeaderAndIsr(leader, partition.leader_epoch, isr, -1, partition.partition_epoch)


def _topic(topic: TopicData, name: str | None, answers: Answers) -> TopicResult:
    result = TopicResult(topic_name=name or "", topic_id=topic.topic_id)
    for partition in topic.partitions:
        answer: LeaderAndIsr | KafkaError = KafkaError(ErrorCode.UNKNOWN_TOPIC_ID)
        if name is not None:
            answer = answers[TopicPartition(name, partition.partition_index)]
        result.partitions.append(_partition(partition.partition_index, answer))
    return result


def _partition(index: int, answer: LeaderAndIsr | KafkaError) -> PartitionResult:
    if isinstance(answer, KafkaError):
        return PartitionResult(partition_index=index, error_code=answer.code)
    return PartitionResult(
        partition_index=index,
        leader_id=answer.leader,
        leader_epoch=answer.leader_epoch,
        isr=list(answer.isr),
        partition_epoch=answer.zk_version,
    )

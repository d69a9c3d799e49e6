"""AddOffsetsToTxn (key 25): a group whose offsets a transaction is about to commit.

Versions 0-4. The partition of __consumer_offsets that has the group becomes part of the transaction. v2 has
PRODUCER_FENCED. Not done: nothing.
"""

from odradek.base.errors import ErrorCode, KafkaError
from odradek.broker.api.authorization import authorized
from odradek.broker.api.context import RequestContext
from odradek.broker.api.registry import LATER, Outcome, handles
from odradek.broker.api.transactional_errors import as_known_to
from odradek.broker.coordinator.transactions.core.decisions import Producer
from odradek.model.acls import AclOperation, ResourceType
from odradek.model.topic_names import OFFSETS_TOPIC
from odradek.model.topology import TopicPartition
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse


@handles(ApiKey.ADD_OFFSETS_TO_TXN, versions="0-4", may_block=False)
def add_offsets_to_txn(request: AddOffsetsToTxnRequest, ctx: RequestContext) -> AddOffsetsToTxnResponse | Outcome:
    def answer(error: ErrorCode) -> AddOffsetsToTxnResponse:
        return AddOffsetsToTxnResponse(error_code=as_known_to(error, ctx.version, fenced_since=2))

    if not authorized(ctx, AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID, request.transactional_id):
        return answer(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    if not authorized(ctx, AclOperation.READ, ResourceType.GROUP, request.group_id):
        return answer(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    partition = TopicPartition(OFFSETS_TOPIC, ctx.broker.groups.partition_for(request.group_id))
    producer = Producer(request.producer_id, request.producer_epoch)
    try:
        ctx.broker.transactions.add_partitions(request.transactional_id, producer, [partition], ctx.reply_with(answer))
    except KafkaError as error:
        return answer(error.code)
    return LATER

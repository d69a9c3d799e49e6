"""DescribeTransactions (key 65): the state of transactional ids, as their coordinator has it.

Versions 0-0. Differs from Kafka: an id that is named very often is described at most 10 times. Not done: nothing.
"""

from itertools import groupby

from odradek.base.errors import ErrorCode, KafkaError
from odradek.broker.api.authorization import authorized, denied_topics
from odradek.broker.api.context import RequestContext
from odradek.broker.api.registry import handles
from odradek.broker.api.repetitions import Repetitions
from odradek.model.acls import AclOperation, ResourceType
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TopicData,
    TransactionState,
)


@handles(ApiKey.DESCRIBE_TRANSACTIONS, versions="0-0", may_block=False)
def describe_transactions(request: DescribeTransactionsRequest, ctx: RequestContext) -> DescribeTransactionsResponse:
    repetitions = Repetitions()
    return DescribeTransactionsResponse(
        transaction_states=[_state(each, ctx) for each in request.transactional_ids if repetitions.may_answer(each)]
    )


def _state(transactional_id: str, ctx: RequestContext) -> TransactionState:
    if not authorized(ctx, AclOperation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, transactional_id):
        return TransactionState(
            error_code=ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, transactional_id=transactional_id
        )
    try:
        found = ctx.broker.transactions.describe(transactional_id)
    except KafkaError as error:
        return TransactionState(error_code=error.code, transactional_id=transactional_id)
    hidden = denied_topics(ctx, AclOperation.DESCRIBE, [tp.topic for tp in found.partitions], log_denied=False)
    shown = sorted(tp for tp in found.partitions if tp.topic not in hidden)
    return TransactionState(
        transactional_id=transactional_id,
        transaction_state=found.state.label,
        transaction_timeout_ms=found.timeout_ms,
        transaction_start_time_ms=found.start_ms,
        producer_id=found.producer_id,
        producer_epoch=found.producer_epoch,
        topics=[
            TopicData(topic=topic, partitions=[tp.partition for tp in tps])
            for topic, tps in groupby(shown, key=lambda tp: tp.topic)
        ],
    )

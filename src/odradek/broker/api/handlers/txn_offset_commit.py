"""TxnOffsetCommit (key 28): a group's positions that count only if the transaction commits.

Versions 0-5. The transaction is verified at its coordinator before the positions are written. v2 leader epochs, v3 the
member for which the producer commits, v4 TRANSACTION_ABORTABLE. v5 adds the group to the transaction (KIP-890, part 2).
Not done: nothing.
"""

from collections.abc import Iterable
from functools import partial

from odradek.base.errors import ErrorCode, KafkaError
from odradek.broker.api.authorization import authorized, refused_commits
from odradek.broker.api.context import RequestContext
from odradek.broker.api.registry import LATER, Outcome, handles
from odradek.broker.coordinator.groups.core.group_records import CommittedOffset
from odradek.broker.coordinator.groups.core.member_checks import Committer
from odradek.broker.coordinator.state.core.state_batch import TransactionalProducer
from odradek.model.acls import AclOperation, ResourceType
from odradek.model.topology import TopicPartition
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)

ABORTABLE_SINCE = 4
ADDING_SINCE = 5
LOADING_SINCE = 2


@handles(ApiKey.TXN_OFFSET_COMMIT, versions="0-5", may_block=False)
def txn_offset_commit(request: TxnOffsetCommitRequest, ctx: RequestContext) -> TxnOffsetCommitResponse | Outcome:
    now_ms = ctx.broker.clock.now_ms()
    image = ctx.broker.metadata.image
    commits = {
        TopicPartition(topic.name, each.partition_index): CommittedOffset(
            each.committed_offset, each.committed_leader_epoch, each.committed_metadata or "", now_ms
        )
        for topic in request.topics
        for each in topic.partitions
    }
    refused = _refused(request, commits, ctx)
    known = {tp: each for tp, each in commits.items() if tp not in refused and image.partition(tp) is not None}
    if not known:
        return _response(request, ctx.version, refused, {})
    producer = TransactionalProducer(request.transactional_id, request.producer_id, request.producer_epoch)
    try:
        ctx.broker.groups.offsets.commit_in_transaction(
            request.group_id,
            Committer(request.member_id, request.group_instance_id, request.generation_id),
            producer,
            known,
            ctx.reply_with(partial(_response, request, ctx.version, refused)),
            add=ctx.version >= ADDING_SINCE,
        )
    except KafkaError as error:
        return _response(request, ctx.version, refused, dict.fromkeys(known, error.code))
    return LATER


def _refused(
    request: TxnOffsetCommitRequest, commits: Iterable[TopicPartition], ctx: RequestContext
) -> dict[TopicPartition, ErrorCode]:
    """Partitions that the principal may not commit; all if it may not use the transactional id or the group."""
    if ctx.broker.authorizer is None:
        return {}
    if not authorized(ctx, AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID, request.transactional_id):
        return dict.fromkeys(commits, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    return refused_commits(ctx, request.group_id, [topic.name for topic in request.topics], commits)


def _response(
    request: TxnOffsetCommitRequest,
    version: int,
    refused: dict[TopicPartition, ErrorCode],
    outcomes: dict[TopicPartition, ErrorCode],
) -> TxnOffsetCommitResponse:
    errors, unknown = refused | outcomes, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return TxnOffsetCommitResponse(
        topics=[
            TxnOffsetCommitResponseTopic(
                name=topic.name,
                partitions=[
                    TxnOffsetCommitResponsePartition(
                        partition_index=each.partition_index,
                        error_code=_as_known_to(
                            errors.get(TopicPartition(topic.name, each.partition_index), unknown), version
                        ),
                    )
                    for each in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def _as_known_to(error: ErrorCode, version: int) -> ErrorCode:
    """Old producers fail for good where newer ones try again, and know fewer errors."""
    if version < LOADING_SINCE and error is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    if version < ABORTABLE_SINCE and error is ErrorCode.TRANSACTION_ABORTABLE:
        return ErrorCode.INVALID_TXN_STATE
    return error

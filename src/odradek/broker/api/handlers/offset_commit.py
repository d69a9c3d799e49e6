"""OffsetCommit (key 8): a group's positions in partitions, to be remembered.

Versions 0-9. v1 says who commits, v2-4 may ask for a retention of their own, v6 leader epochs, v7 static members.
v0 is of clients before Kafka 0.8.2, which know no coordinator: any broker writes it to ZooKeeper, where OffsetFetch v0
reads it. Not done: nothing.
"""

from collections.abc import Iterable
from functools import partial

from odradek.base.errors import ErrorCode, KafkaError
from odradek.broker.api.authorization import refused_commits
from odradek.broker.api.context import RequestContext
from odradek.broker.api.registry import LATER, Outcome, handles
from odradek.broker.coordinator.groups.core.group_records import CommittedOffset
from odradek.broker.coordinator.groups.core.member_checks import Committer
from odradek.broker.log.core.check_budget import TakesLong
from odradek.model.topology import TopicPartition
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from odradek.protocol.record_batch import NO_TIMESTAMP

_LATEST_MS = (1 << 63) - 1


@handles(ApiKey.OFFSET_COMMIT, versions="0-9", may_block=False)
def offset_commit(request: OffsetCommitRequest, ctx: RequestContext) -> OffsetCommitResponse | Outcome:
    commits = _commits(request, ctx)
    refused = _refused(request, commits, ctx)
    image = ctx.broker.metadata.image
    known = {tp: each for tp, each in commits.items() if tp not in refused and image.partition(tp) is not None}
    if not known:
        return _response(request, refused, {})
    if ctx.version == 0:
        return _response(request, refused, _commit_to_zookeeper(request.group_id, known, ctx))
    try:
        ctx.broker.groups.offsets.commit(
            request.group_id,
            Committer(request.member_id, request.group_instance_id, request.generation_id_or_member_epoch),
            known,
            ctx.reply_with(partial(_response, request, refused)),
        )
    except KafkaError as error:
        return _response(request, refused, dict.fromkeys(known, error.code))
    return LATER


def _commit_to_zookeeper(
    group_id: str, commits: dict[TopicPartition, CommittedOffset], ctx: RequestContext
) -> dict[TopicPartition, ErrorCode]:
    """Raises TakesLong on a network thread. Metadata is checked, and lost."""
    if not ctx.may_block:
        raise TakesLong
    length_max = ctx.broker.config.offset_metadata_max_bytes
    fitting = {tp: each.offset for tp, each in commits.items() if len(each.metadata) <= length_max}
    result = ErrorCode.NONE
    try:
        ctx.broker.zookeeper_offsets.commit(group_id, fitting)
    except KafkaError as error:
        result = error.code
    return dict.fromkeys(commits, ErrorCode.OFFSET_METADATA_TOO_LARGE) | dict.fromkeys(fitting, result)


def _refused(
    request: OffsetCommitRequest, commits: Iterable[TopicPartition], ctx: RequestContext
) -> dict[TopicPartition, ErrorCode]:
    """Partitions that the principal may not commit, or all if it may not use the group."""
    if ctx.broker.authorizer is None:
        return {}
    return refused_commits(ctx, request.group_id, [topic.name for topic in request.topics], commits)


def _commits(request: OffsetCommitRequest, ctx: RequestContext) -> dict[TopicPartition, CommittedOffset]:
    now_ms, retention_ms = ctx.broker.clock.now_ms(), request.retention_time_ms
    expires_ms = NO_TIMESTAMP if retention_ms < 0 else min(now_ms + retention_ms, _LATEST_MS)
    return {
        TopicPartition(topic.name, each.partition_index): CommittedOffset(
            each.committed_offset,
            each.committed_leader_epoch,
            each.committed_metadata or "",
            now_ms if each.commit_timestamp == NO_TIMESTAMP else each.commit_timestamp,
            expires_ms,
        )
        for topic in request.topics
        for each in topic.partitions
    }


def _response(
    request: OffsetCommitRequest, refused: dict[TopicPartition, ErrorCode], errors: dict[TopicPartition, ErrorCode]
) -> OffsetCommitResponse:
    errors = errors | refused
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return OffsetCommitResponse(
        topics=[
            OffsetCommitResponseTopic(
                name=topic.name,
                partitions=[
                    OffsetCommitResponsePartition(
                        partition_index=each.partition_index,
                        error_code=errors.get(TopicPartition(topic.name, each.partition_index), unknown),
                    )
                    for each in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )

"""OffsetCommit (key 8): a group's positions in partitions, to be remembered.

Versions 0-9. v1 says who commits, v2-4 may ask for a retention of their own, v6 leader epochs, v7 static members.
Differs from Kafka: v0, which Kafka keeps in ZooKeeper, is kept with all others, and read back by OffsetFetch v0.
"""

from odradek.api.context import RequestContext
from odradek.api.registry import handles
from odradek.base.errors import ErrorCode, KafkaError
from odradek.coordinator.group_records import NO_TIMESTAMP, CommittedOffset
from odradek.model.topology import TopicPartition
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)


@handles(ApiKey.OFFSET_COMMIT, versions="0-9", may_block=False)
def offset_commit(request: OffsetCommitRequest, ctx: RequestContext) -> OffsetCommitResponse:
    commits = _commits(request, ctx)
    known = {tp: each for tp, each in commits.items() if ctx.broker.metadata.image.partition(tp) is not None}
    errors = dict.fromkeys(commits, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    if known:
        errors |= _commit(request, known, ctx)
    return OffsetCommitResponse(
        topics=[
            OffsetCommitResponseTopic(
                name=topic.name,
                partitions=[
                    OffsetCommitResponsePartition(
                        partition_index=each.partition_index,
                        error_code=errors[TopicPartition(topic.name, each.partition_index)],
                    )
                    for each in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def _commits(request: OffsetCommitRequest, ctx: RequestContext) -> dict[TopicPartition, CommittedOffset]:
    now_ms = ctx.broker.clock.now_ms()
    expires_ms = NO_TIMESTAMP if request.retention_time_ms < 0 else now_ms + request.retention_time_ms
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


def _commit(
    request: OffsetCommitRequest, commits: dict[TopicPartition, CommittedOffset], ctx: RequestContext
) -> dict[TopicPartition, ErrorCode]:
    try:
        return ctx.broker.groups.commit(
            request.group_id,
            request.member_id,
            request.group_instance_id,
            request.generation_id_or_member_epoch,
            commits,
        )
    except KafkaError as error:
        return dict.fromkeys(commits, error.code)

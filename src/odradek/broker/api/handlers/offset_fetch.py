"""OffsetFetch (key 9): the positions that groups have committed.

Versions 0-9. v0-1 report a group's error at each partition; v2 asks for all by null; v5 leader epochs; v7 may ask for
stable offsets only: one that is about to change gets UNSTABLE_OFFSET_COMMIT; v8 asks for many groups; v9 names members
of the newer protocol, which ZooKeeper mode doesn't have. v0 is of clients before Kafka 0.8.2, which know no
coordinator: any broker reads from ZooKeeper what OffsetCommit v0 has written. Differs from Kafka: a position that many
questions of a request ask for is answered at most 10 times.
"""

from collections.abc import Collection, Iterable, Sequence
from itertools import groupby

from odradek.base.errors import ErrorCode, KafkaError
from odradek.broker.api.authorization import authorized, denied_topics
from odradek.broker.api.context import RequestContext
from odradek.broker.api.registry import handles
from odradek.broker.api.repetitions import Repetitions
from odradek.broker.coordinator.groups.core.group_records import CommittedOffset
from odradek.broker.coordinator.groups.group_offsets import UNSTABLE
from odradek.broker.log.core.check_budget import TakesLong
from odradek.model.acls import AclOperation, ResourceType
from odradek.model.topology import TopicPartition
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)

Found = dict[TopicPartition, CommittedOffset | None]

_NOTHING = CommittedOffset(-1, -1, "", -1)
_DENIED = CommittedOffset(-1, -1, "", -1)
"""The offset of a topic that the principal may not describe; recognized by identity."""
_UNKNOWN = CommittedOffset(-1, -1, "", -1)
"""No offset in ZooKeeper, or no such partition; recognized by identity."""


@handles(ApiKey.OFFSET_FETCH, versions="0-9", may_block=False)
def offset_fetch(request: OffsetFetchRequest, ctx: RequestContext) -> OffsetFetchResponse:
    if ctx.version >= 8:
        return OffsetFetchResponse(
            groups=[_group(group, ctx, stable=request.require_stable) for group in _asked(request.groups)]
        )
    error = ErrorCode.NONE
    asked = _partitions(request.topics)
    found: Found = dict.fromkeys(asked or ())
    try:
        if ctx.version == 0:
            found = _from_zookeeper(request.group_id, asked or [], ctx)
        else:
            found = _committed(request.group_id, asked, ctx, stable=request.require_stable)
    except KafkaError as refusal:
        error = refusal.code
        if ctx.version >= 2:
            found = {}
    return OffsetFetchResponse(topics=_topics(found, error), error_code=error)


def _asked(groups: Iterable[OffsetFetchRequestGroup]) -> Iterable[OffsetFetchRequestGroup]:
    """Remove repeated requests: for all positions of a group, or for one, whose metadata may be 4 KB."""
    repetitions = Repetitions()
    for group in groups:
        if group.topics is not None:
            for topic in group.topics:
                topic.partition_indexes = [
                    index
                    for index in dict.fromkeys(topic.partition_indexes)
                    if repetitions.may_answer((group.group_id, topic.name, index))
                ]
            yield group
        elif repetitions.may_answer(group.group_id):
            yield group


def _partitions(
    topics: Sequence[OffsetFetchRequestTopic] | Sequence[OffsetFetchRequestTopics] | None,
) -> list[TopicPartition] | None:
    if topics is None:
        return None
    return [TopicPartition(topic.name, index) for topic in topics for index in topic.partition_indexes]


def _group(group: OffsetFetchRequestGroup, ctx: RequestContext, *, stable: bool) -> OffsetFetchResponseGroup:
    try:
        found = _committed(group.group_id, _partitions(group.topics), ctx, stable=stable)
    except KafkaError as error:
        return OffsetFetchResponseGroup(group_id=group.group_id, error_code=error.code)
    return OffsetFetchResponseGroup(
        group_id=group.group_id,
        topics=[
            OffsetFetchResponseTopics(
                name=topic,
                partitions=[
                    OffsetFetchResponsePartitions(
                        partition_index=index,
                        committed_offset=committed.offset,
                        committed_leader_epoch=committed.leader_epoch,
                        metadata=committed.metadata,
                        error_code=_error(committed),
                    )
                    for index, committed in partitions
                ],
            )
            for topic, partitions in _by_topic(found)
        ],
    )


def _committed(group_id: str, asked: list[TopicPartition] | None, ctx: RequestContext, *, stable: bool) -> Found:
    """Topics that the principal may not describe are hidden among all offsets, and refused where they are named."""
    if not authorized(ctx, AclOperation.DESCRIBE, ResourceType.GROUP, group_id):
        raise KafkaError(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    if asked is None:
        found = ctx.broker.groups.offsets.committed(group_id, None, stable=stable)
        denied = denied_topics(ctx, AclOperation.DESCRIBE, {tp.topic for tp in found})
        return {tp: offset for tp, offset in found.items() if tp.topic not in denied} if denied else found
    denied = denied_topics(ctx, AclOperation.DESCRIBE, dict.fromkeys(tp.topic for tp in asked))
    allowed = [tp for tp in asked if tp.topic not in denied]
    found = ctx.broker.groups.offsets.committed(group_id, allowed, stable=stable)
    return {**found, **{tp: _DENIED for tp in asked if tp.topic in denied}}


def _from_zookeeper(group_id: str, asked: Collection[TopicPartition], ctx: RequestContext) -> Found:
    """Raises TakesLong on a network thread."""
    if not ctx.may_block:
        raise TakesLong
    if not authorized(ctx, AclOperation.DESCRIBE, ResourceType.GROUP, group_id):
        raise KafkaError(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    denied = denied_topics(ctx, AclOperation.DESCRIBE, dict.fromkeys(tp.topic for tp in asked))
    image = ctx.broker.metadata.image
    known = {tp for tp in asked if tp.topic not in denied and image.partition(tp) is not None}
    offsets = ctx.broker.zookeeper_offsets.committed(group_id, known) if known else {}
    found: Found = {tp: CommittedOffset(offset, -1, "", -1) for tp, offset in offsets.items()}
    return {tp: _DENIED if tp.topic in denied else found.get(tp, _UNKNOWN) for tp in asked}


def _topics(found: Found, error: ErrorCode) -> list[OffsetFetchResponseTopic]:
    return [
        OffsetFetchResponseTopic(
            name=topic,
            partitions=[
                OffsetFetchResponsePartition(
                    partition_index=index,
                    committed_offset=committed.offset,
                    committed_leader_epoch=committed.leader_epoch,
                    metadata=committed.metadata,
                    error_code=error or _error(committed),
                )
                for index, committed in partitions
            ],
        )
        for topic, partitions in _by_topic(found)
    ]


def _by_topic(found: Found) -> Iterable[tuple[str, list[tuple[int, CommittedOffset]]]]:
    for topic, partitions in groupby(sorted(found), key=lambda tp: tp.topic):
        yield topic, [(tp.partition, found[tp] or _NOTHING) for tp in partitions]


def _error(committed: CommittedOffset) -> ErrorCode:
    if committed is _DENIED:
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    if committed is _UNKNOWN:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return ErrorCode.UNSTABLE_OFFSET_COMMIT if committed is UNSTABLE else ErrorCode.NONE

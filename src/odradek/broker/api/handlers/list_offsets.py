"""ListOffsets (key 2): where a log starts and ends, and which offset belongs to a time.

Versions 0-9. v0 asks for the last n starts of segments that were written to before a time, later versions for one
record; v4 fences by leader epoch; v7 adds the offset of the largest timestamp; v8 the earliest local offset (the
earliest, since nothing is tiered); v9 the last tiered one (none). Consumers see up to the high watermark, followers up
to the log's end. A new leader whose watermark has not reached the start of its epoch says so to consumers (v5
OFFSET_NOT_AVAILABLE): an offset from before would go back. From v1 on, a partition that is named twice is refused: a
search costs more than its question. Differs from Kafka: v0 answers it 10 times at most. Not done: nothing.
"""

from collections import Counter

from odradek.base.clock import Clock
from odradek.base.errors import ErrorCode, KafkaError
from odradek.broker.api.authorization import denied_topics
from odradek.broker.api.context import RequestContext
from odradek.broker.api.registry import handles
from odradek.broker.api.repetitions import Repetitions
from odradek.broker.replication.partition import Partition
from odradek.model.acls import AclOperation
from odradek.model.topology import TopicPartition
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.messages.list_offsets import (
    CONSUMER_REPLICA_ID,
    DEBUGGING_REPLICA_ID,
    EARLIEST,
    EARLIEST_LOCAL,
    LATEST,
    LATEST_TIERED,
    MAX_TIMESTAMP,
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)

FIRST_WITH_NOT_AVAILABLE = 5
FIRST_WITH_MARK = {LATEST: 0, EARLIEST: 0, MAX_TIMESTAMP: 7, EARLIEST_LOCAL: 8, LATEST_TIERED: 9}

NEVER = 2**15

# (timestamp, offset); both -1 where nothing fits
NONE_FOUND = (-1, -1)


def searches_by_time(request: ListOffsetsRequest) -> bool:
    """Return whether batches have to be read, and records in them, of which there may be many."""
    return any(
        asked.timestamp >= 0 or asked.timestamp == MAX_TIMESTAMP
        for topic in request.topics
        for asked in topic.partitions
    )


@handles(ApiKey.LIST_OFFSETS, versions="0-9", may_block=searches_by_time)
def list_offsets(request: ListOffsetsRequest, ctx: RequestContext) -> ListOffsetsResponse:
    denied = denied_topics(ctx, AclOperation.DESCRIBE, [topic.name for topic in request.topics])
    repeated = _named_twice(request)
    repetitions = Repetitions()

    def answer(topic: str, asked: ListOffsetsPartition) -> ListOffsetsPartitionResponse:
        if topic in denied:
            return _refused(asked, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        place = topic, asked.partition_index
        if place in repeated and (ctx.version >= 1 or not repetitions.may_answer(place)):
            return _refused(asked, ErrorCode.INVALID_REQUEST)
        return _partition(topic, asked, request, ctx)

    return ListOffsetsResponse(
        topics=[
            ListOffsetsTopicResponse(
                name=topic.name, partitions=[answer(topic.name, asked) for asked in topic.partitions]
            )
            for topic in request.topics
        ]
    )


def _named_twice(request: ListOffsetsRequest) -> frozenset[tuple[str, int]]:
    named = [(topic.name, asked.partition_index) for topic in request.topics for asked in topic.partitions]
    if len(set(named)) == len(named):
        return frozenset()
    return frozenset(place for place, times in Counter(named).items() if times > 1)


def _refused(asked: ListOffsetsPartition, error: ErrorCode) -> ListOffsetsPartitionResponse:
    return ListOffsetsPartitionResponse(partition_index=asked.partition_index, error_code=error)


def _partition(
    topic: str, asked: ListOffsetsPartition, request: ListOffsetsRequest, ctx: RequestContext
) -> ListOffsetsPartitionResponse:
    answer = ListOffsetsPartitionResponse(partition_index=asked.partition_index)
    try:
        partition = ctx.broker.replicas.find(TopicPartition(topic, asked.partition_index))
        if asked.timestamp < 0 and ctx.version < FIRST_WITH_MARK.get(asked.timestamp, NEVER):
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)
        partition.check_epoch(asked.current_leader_epoch, only_leader=request.replica_id != DEBUGGING_REPLICA_ID)
        if ctx.version == 0:
            answer.old_style_offsets = _starts_before(partition, asked, request, ctx.broker.clock)
            return answer
        timestamp, offset = _look_up(partition, asked.timestamp, request)
    except KafkaError as error:
        too_new = error.code is ErrorCode.OFFSET_NOT_AVAILABLE and ctx.version < FIRST_WITH_NOT_AVAILABLE
        answer.error_code = ErrorCode.LEADER_NOT_AVAILABLE if too_new else error.code
        return answer
    answer.timestamp, answer.offset = timestamp, offset
    if asked.timestamp == LATEST:
        answer.leader_epoch = partition.leader_epoch
    elif offset >= 0:
        answer.leader_epoch = partition.log.epochs.epoch_for_offset(offset)
    return answer


def _look_up(partition: Partition, timestamp: int, request: ListOffsetsRequest) -> tuple[int, int]:
    log = partition.log
    if timestamp == LATEST:
        _check_available(partition, request)
        return -1, _visible_end(partition, request)
    if timestamp in (EARLIEST, EARLIEST_LOCAL):
        return -1, log.log_start_offset
    if timestamp == LATEST_TIERED:
        return NONE_FOUND
    found = log.max_timestamp() if timestamp == MAX_TIMESTAMP else log.find_offset_by_timestamp(timestamp)
    if found is None or found.offset >= _visible_end(partition, request):
        _check_available(partition, request)
        return NONE_FOUND
    return found.timestamp, found.offset


def _visible_end(partition: Partition, request: ListOffsetsRequest) -> int:
    if request.replica_id != CONSUMER_REPLICA_ID:
        return partition.log.log_end_offset
    return partition.committed.visible_end(request.isolation_level)


def _check_available(partition: Partition, request: ListOffsetsRequest) -> None:
    if request.replica_id == CONSUMER_REPLICA_ID and not partition.committed.end_is_known:
        raise KafkaError(ErrorCode.OFFSET_NOT_AVAILABLE)


def _starts_before(
    partition: Partition, asked: ListOffsetsPartition, request: ListOffsetsRequest, clock: Clock
) -> list[int]:
    """The last few segments that were written to before the time, by where they start; of the end of the log, too, if
    there is anything in its last segment. Descending."""
    log, segments = partition.log, partition.log.segments
    if asked.timestamp == EARLIEST:
        starts = [segments[0].base_offset]
    elif asked.timestamp == LATEST or asked.timestamp >= clock.now_ms():
        _check_available(partition, request)
        starts = [segment.base_offset for segment in segments]
        if segments[-1].size:
            starts.append(log.log_end_offset)
    else:
        starts = log.starts_written_before(asked.timestamp)
    least = max(len(starts) - max(asked.max_num_offsets, 0), 0)
    found = [max(start, log.log_start_offset) for start in reversed(starts[least:])]
    end = _visible_end(partition, request)
    return found if not found or found[0] <= end else [end, *(start for start in found if start <= end)]

"""Answer of a leader about one partition, as its follower handles it: append, truncate, or a failure.

Called by fetch loops. It uses the partition's public methods and returns the next step of the loop.
"""

from enum import Enum

from odradek.base.errors import ErrorCode, KafkaError
from odradek.base.logs import get_logger
from odradek.broker.replication.core.truncation import Cut, StartOver, after_out_of_range, cut_by_epoch
from odradek.broker.replication.follower.fetch_assignment import FetchAssignment, Follower, Progress
from odradek.client.broker_client import BrokerClient
from odradek.model.topology import TopicPartition
from odradek.protocol.messages.fetch import PartitionData
from odradek.protocol.messages.list_offsets import (
    EARLIEST,
    LATEST,
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from odradek.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)

_NOTHING = memoryview(b"")

log = get_logger(__name__)


class CopyOutcome(Enum):
    COPIED = "the batches are in the log"
    OUT_OF_RANGE = "the leader doesn't have the end of our log: ask where its own begins and ends"
    RETRY = "something that may pass: ask again later"
    OVER = "no records in this epoch: the controller will send the next directive"


def take(partition: Follower, tp: TopicPartition, progress: Progress, data: PartitionData) -> CopyOutcome:
    """Apply the leader's answer. It never raises: a failed partition must not affect the others."""
    try:
        if data.error_code:
            return _refused(tp, progress.following, ErrorCode(data.error_code))
        diverging = data.diverging_epoch
        if diverging is not None and diverging.end_offset >= 0:
            cut(partition, tp, progress.following, (diverging.epoch, diverging.end_offset))
        else:
            _append(partition, progress, data)
    except KafkaError as error:
        return failed(tp, error)
    except Exception:
        log.exception("fetch response for a partition failed", partition=str(tp), leader=progress.following.leader_id)
        return CopyOutcome.RETRY
    return CopyOutcome.COPIED


def records_in(data: PartitionData) -> memoryview:
    return data.records if isinstance(data.records, memoryview) else _NOTHING


def _append(partition: Follower, progress: Progress, data: PartitionData) -> None:
    partition.append_fetched(
        records_in(data),
        leader_epoch=progress.following.leader_epoch,
        high_watermark=data.high_watermark,
        log_start_offset=data.log_start_offset,
    )
    progress.lag = max(0, data.high_watermark - partition.log.log_end_offset)


def cut(partition: Follower, tp: TopicPartition, following: FetchAssignment, leader: tuple[int, int]) -> Cut:
    """Truncate the log by the leader's epochs. KafkaError if that fails."""
    own = partition.log
    found = cut_by_epoch(leader, own.epochs.end_offset_for(leader[0], own.log_end_offset), own.log_end_offset)
    log.info(
        "follower truncated its log",
        partition=str(tp),
        leader_epoch=following.leader_epoch,
        leaders_end=leader,
        end=own.log_end_offset,
        to=found.offset,
        high_watermark=partition.high_watermark,
    )
    partition.truncate_to(found.offset, leader_epoch=following.leader_epoch)
    return found


def _refused(tp: TopicPartition, following: FetchAssignment, code: ErrorCode) -> CopyOutcome:
    if code is ErrorCode.OFFSET_OUT_OF_RANGE:
        return CopyOutcome.OUT_OF_RANGE
    if code is ErrorCode.FENCED_LEADER_EPOCH:
        log.info(
            "fenced leader epoch, waiting for the controller", partition=str(tp), leader_epoch=following.leader_epoch
        )
        return CopyOutcome.OVER
    log.info("leader returned an error", partition=str(tp), leader=following.leader_id, error=code.name)
    return CopyOutcome.RETRY


def failed(tp: TopicPartition, error: KafkaError) -> CopyOutcome:
    """Return the outcome of an error, of our own log or of the leader."""
    if error.code is ErrorCode.FENCED_LEADER_EPOCH:
        return CopyOutcome.OVER
    log.error("replica fetch failed for a partition", partition=str(tp), error=str(error))
    return CopyOutcome.OVER if error.code is ErrorCode.KAFKA_STORAGE_ERROR else CopyOutcome.RETRY


def reset_after_out_of_range(
    peer: BrokerClient, broker_id: int, partition: Follower, tp: TopicPartition, following: FetchAssignment
) -> None:
    """Ask for the begin and end of the leader's log, and adjust ours. KafkaError if that can't be done now."""
    leader_end = _list_offset(peer, broker_id, tp, following.leader_epoch, LATEST)
    leader_start = _list_offset(peer, broker_id, tp, following.leader_epoch, EARLIEST)
    own = partition.log
    step = after_out_of_range(own.log_end_offset, leader_start, leader_end)
    log.warning(
        "fetch offset out of range",
        partition=str(tp),
        end=own.log_end_offset,
        leader_start=leader_start,
        leader_end=leader_end,
        does=str(step),
    )
    match step:
        case Cut(offset):
            partition.truncate_to(offset, leader_epoch=following.leader_epoch)
        case StartOver(offset):
            partition.start_over_at(offset, leader_epoch=following.leader_epoch)


def _list_offset(peer: BrokerClient, broker_id: int, tp: TopicPartition, leader_epoch: int, mark: int) -> int:
    wanted = ListOffsetsPartition(partition_index=tp.partition, current_leader_epoch=leader_epoch, timestamp=mark)
    topics = [ListOffsetsTopic(name=tp.topic, partitions=[wanted])]
    answer = peer.send(ListOffsetsRequest(replica_id=broker_id, topics=topics))
    found = answer.topics[0].partitions[0]
    if found.error_code:
        raise KafkaError(ErrorCode(found.error_code), f"The leader can't tell the offsets of {tp}")
    return int(found.offset)


def ask_epoch_ends(
    peer: BrokerClient, broker_id: int, epochs: dict[TopicPartition, tuple[int, int]]
) -> dict[TopicPartition, tuple[ErrorCode, tuple[int, int]]]:
    """The leader's answer (error, epoch and its end offset) for each partition's (current, last written) epoch."""
    topics: dict[str, OffsetForLeaderTopic] = {}
    for tp, (current, last) in epochs.items():
        topic = topics.setdefault(tp.topic, OffsetForLeaderTopic(topic=tp.topic))
        topic.partitions.append(
            OffsetForLeaderPartition(partition=tp.partition, current_leader_epoch=current, leader_epoch=last)
        )
    answer = peer.send(OffsetForLeaderEpochRequest(replica_id=broker_id, topics=[*topics.values()]))
    return {
        TopicPartition(topic.topic, found.partition): (
            ErrorCode(found.error_code),
            (found.leader_epoch, found.end_offset),
        )
        for topic in answer.topics
        for found in topic.partitions
    }

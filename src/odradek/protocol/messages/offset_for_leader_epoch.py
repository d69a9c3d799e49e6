"""OffsetForLeaderEpoch (key 23): where a leader epoch ended, so that a follower or consumer can find divergence.

v2 fencing by the current leader epoch, v3 the asking replica.
"""

from odradek.protocol.schema import Request, Response, Struct, array, int16, int32, int64, string


class OffsetForLeaderPartition(Struct):
    partition: int = int32()
    current_leader_epoch: int = int32("2+", default=-1, ignorable=True)  # the one the caller believes in, -1: any
    leader_epoch: int = int32()  # the one whose end is asked for


class OffsetForLeaderTopic(Struct):
    topic: str = string()
    partitions: list[OffsetForLeaderPartition] = array(OffsetForLeaderPartition)


class OffsetForLeaderEpochRequest(Request, key=23, versions="0-4", flexible="4+"):
    replica_id: int = int32("3+", default=-2, ignorable=True)  # the asking follower; -1: a consumer, -2: a debugger
    topics: list[OffsetForLeaderTopic] = array(OffsetForLeaderTopic)


class EpochEndOffset(Struct):
    error_code: int = int16()
    partition: int = int32()
    leader_epoch: int = int32("1+", default=-1, ignorable=True)  # the largest one known that is not above it
    end_offset: int = int64(default=-1)  # the first offset after that epoch


class OffsetForLeaderTopicResult(Struct):
    topic: str = string()
    partitions: list[EpochEndOffset] = array(EpochEndOffset)


class OffsetForLeaderEpochResponse(Response, key=23, versions="0-4", flexible="4+"):
    throttle_time_ms: int = int32("2+", ignorable=True)  # how long the client should pause for its quota
    topics: list[OffsetForLeaderTopicResult] = array(OffsetForLeaderTopicResult)

"""ListOffsets (key 2): the offset at a timestamp, or at one of the marks below.

v0 answers many offsets, later ones a single one; v2 isolation level, v4 fencing by leader epoch.
"""

from typing import Final

from odradek.protocol.schema import Request, Response, Struct, array, int8, int16, int32, int64, string

LATEST: Final = -1
EARLIEST: Final = -2
MAX_TIMESTAMP: Final = -3
EARLIEST_LOCAL: Final = -4
LATEST_TIERED: Final = -5

CONSUMER_REPLICA_ID: Final = -1
DEBUGGING_REPLICA_ID: Final = -2
"""Any replica answers, not only the leader, with the end of its own log."""


class ListOffsetsPartition(Struct):
    partition_index: int = int32()
    current_leader_epoch: int = int32("4+", default=-1, ignorable=True)  # the one the caller believes in, -1: any
    timestamp: int = int64()  # in milliseconds, or a mark below zero
    max_num_offsets: int = int32("0", default=1)


class ListOffsetsTopic(Struct):
    name: str = string()
    partitions: list[ListOffsetsPartition] = array(ListOffsetsPartition)


class ListOffsetsRequest(Request, key=2, versions="0-9", flexible="6+"):
    replica_id: int = int32()  # the asking follower; -1: a consumer
    isolation_level: int = int8("2+")  # 0 read uncommitted, 1 read committed
    topics: list[ListOffsetsTopic] = array(ListOffsetsTopic)


class ListOffsetsPartitionResponse(Struct):
    partition_index: int = int32()
    error_code: int = int16()
    old_style_offsets: list[int] = array(int64, "0")  # newest first
    timestamp: int = int64("1+", default=-1)  # of the record found
    offset: int = int64("1+", default=-1)  # -1: none found
    leader_epoch: int = int32("4+", default=-1)  # of the record found


class ListOffsetsTopicResponse(Struct):
    name: str = string()
    partitions: list[ListOffsetsPartitionResponse] = array(ListOffsetsPartitionResponse)


class ListOffsetsResponse(Response, key=2, versions="0-9", flexible="6+"):
    throttle_time_ms: int = int32("2+", ignorable=True)  # how long the client should pause for its quota
    topics: list[ListOffsetsTopicResponse] = array(ListOffsetsTopicResponse)

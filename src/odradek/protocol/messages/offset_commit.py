"""OffsetCommit (key 8): a group's positions in partitions, to be remembered.

v1 membership, v2-4 retention per commit, v6 leader epochs, v7 static members, v9 members of the newer protocol.
"""

from odradek.protocol.schema import Request, Response, Struct, array, int16, int32, int64, string


class OffsetCommitRequestPartition(Struct):
    partition_index: int = int32()
    committed_offset: int = int64()
    committed_leader_epoch: int = int32("6+", default=-1, ignorable=True)  # of the last record consumed; -1: not known
    commit_timestamp: int = int64("1", default=-1)  # -1: now
    committed_metadata: str | None = string(nullable="0+")  # the committer's own words


class OffsetCommitRequestTopic(Struct):
    name: str = string()
    partitions: list[OffsetCommitRequestPartition] = array(OffsetCommitRequestPartition)


class OffsetCommitRequest(Request, key=8, versions="0-9", flexible="8+"):
    group_id: str = string()
    generation_id_or_member_epoch: int = int32("1+", default=-1, ignorable=True)  # -1: not a member
    member_id: str = string("1+", ignorable=True)
    group_instance_id: str | None = string("7+", nullable="7+", default=None)  # set by static members only
    retention_time_ms: int = int64("2-4", default=-1, ignorable=True)  # -1: as the broker is configured
    topics: list[OffsetCommitRequestTopic] = array(OffsetCommitRequestTopic)


class OffsetCommitResponsePartition(Struct):
    partition_index: int = int32()
    error_code: int = int16()


class OffsetCommitResponseTopic(Struct):
    name: str = string()
    partitions: list[OffsetCommitResponsePartition] = array(OffsetCommitResponsePartition)


class OffsetCommitResponse(Response, key=8, versions="0-9", flexible="8+"):
    throttle_time_ms: int = int32("3+", ignorable=True)  # how long the client should pause for its quota
    topics: list[OffsetCommitResponseTopic] = array(OffsetCommitResponseTopic)

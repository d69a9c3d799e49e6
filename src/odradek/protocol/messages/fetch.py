"""Fetch (key 1): read batches from partitions, as consumer or as follower.

v4 transactions, v7 fetch sessions, v9 fencing by leader epoch, v11 reading from the closest replica, v12 truncation by
epoch, v13 topic ids instead of names, v15 the broker epoch of the follower.
"""

from typing import Final
from uuid import UUID

from odradek.protocol.schema import (
    Records,
    Request,
    Response,
    Struct,
    array,
    int8,
    int16,
    int32,
    int64,
    records,
    string,
    struct,
    uuid,
)

SESSION_EPOCH_MAX: Final = 2**31 - 1
"""The epoch of a fetch session after which the epochs begin at 1 again."""


class ReplicaState(Struct):
    replica_id: int = int32(default=-1)  # the asking follower; -1: a consumer
    replica_epoch: int = int64(default=-1)  # the follower's broker epoch


class FetchPartition(Struct):
    partition: int = int32()
    current_leader_epoch: int = int32("9+", default=-1, ignorable=True)  # the one the caller believes in, -1: any
    fetch_offset: int = int64()  # the first one wanted
    last_fetched_epoch: int = int32("12+", default=-1)  # the epoch of the last record that the follower has
    log_start_offset: int = int64("5+", default=-1, ignorable=True)  # the follower's own
    partition_max_bytes: int = int32()  # exceeded when the first batch is larger
    replica_directory_id: UUID = uuid("17+", tag=0, ignorable=True)  # the directory of the asking replica


class FetchTopic(Struct):
    topic: str = string("0-12", ignorable=True)
    topic_id: UUID = uuid("13+", ignorable=True)
    partitions: list[FetchPartition] = array(FetchPartition)


class ForgottenTopic(Struct):
    topic: str = string("7-12", ignorable=True)
    topic_id: UUID = uuid("13+", ignorable=True)
    partitions: list[int] = array(int32)


class FetchRequest(Request, key=1, versions="0-17", flexible="12+"):
    cluster_id: str | None = string("12+", nullable="12+", default=None, tag=0, ignorable=True)  # None: don't check
    replica_id: int = int32("0-14", default=-1)  # the asking follower; -1: a consumer
    replica_state: ReplicaState | None = struct(ReplicaState, "15+", tag=1)  # sent by followers, in place of replica_id
    max_wait_ms: int = int32()  # how long to wait for min_bytes
    min_bytes: int = int32()
    max_bytes: int = int32("3+", default=2147483647, ignorable=True)  # for the whole response
    isolation_level: int = int8("4+", ignorable=True)  # 0 read uncommitted, 1 read committed
    session_id: int = int32("7+", ignorable=True)  # 0: no session, or a new one
    session_epoch: int = int32("7+", default=-1, ignorable=True)  # counts within the session; 0 opens one, -1 ends it
    topics: list[FetchTopic] = array(FetchTopic)
    forgotten_topics_data: list[ForgottenTopic] = array(ForgottenTopic, "7+")  # to be dropped from the session
    rack_id: str = string("11+", ignorable=True)  # the consumer's, to be served by the closest replica


class EpochEndOffset(Struct):
    epoch: int = int32(default=-1)
    end_offset: int = int64(default=-1)  # the first offset after that epoch


class LeaderIdAndEpoch(Struct):
    leader_id: int = int32(default=-1)
    leader_epoch: int = int32(default=-1)


class SnapshotId(Struct):
    end_offset: int = int64(default=-1)
    epoch: int = int32(default=-1)


class AbortedTxn(Struct):
    producer_id: int = int64()
    first_offset: int = int64()  # the transaction's first in this partition


class PartitionData(Struct):
    partition_index: int = int32()
    error_code: int = int16()
    high_watermark: int = int64()  # below it, all of the ISR has it
    last_stable_offset: int = int64("4+", default=-1, ignorable=True)  # below it, no transaction is open
    log_start_offset: int = int64("5+", default=-1, ignorable=True)  # the leader's own
    diverging_epoch: EpochEndOffset | None = struct(EpochEndOffset, "12+", tag=0)  # the follower must truncate to it
    current_leader: LeaderIdAndEpoch | None = struct(LeaderIdAndEpoch, "12+", tag=1)  # with leadership errors only
    snapshot_id: SnapshotId | None = struct(SnapshotId, "12+", tag=2)  # of KRaft; never set here
    aborted_transactions: list[AbortedTxn] | None = array(AbortedTxn, "4+", nullable="4+", ignorable=True)
    preferred_read_replica: int = int32("11+", default=-1)  # where the consumer should read instead
    records: Records | None = records(nullable="0+")


class FetchableTopicResponse(Struct):
    topic: str = string("0-12", ignorable=True)
    topic_id: UUID = uuid("13+", ignorable=True)
    partitions: list[PartitionData] = array(PartitionData)


class NodeEndpoint(Struct):
    node_id: int = int32()
    host: str = string()
    port: int = int32()
    rack: str | None = string(nullable="0+", default=None)


class FetchResponse(Response, key=1, versions="0-17", flexible="12+"):
    throttle_time_ms: int = int32("1+", ignorable=True)  # how long the client should pause for its quota
    error_code: int = int16("7+", ignorable=True)
    session_id: int = int32("7+")  # 0: no session
    responses: list[FetchableTopicResponse] = array(FetchableTopicResponse)
    node_endpoints: list[NodeEndpoint] = array(NodeEndpoint, "16+", tag=0)  # of the leaders named in current_leader

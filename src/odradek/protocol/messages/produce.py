"""Produce (key 0): append record batches to partitions, each answered on its own.

v3 record batch v2 and transactions, v7 zstd, v8 says which records are at fault, v10 names the new leader,
v12 adds partitions to the transaction.
"""

from odradek.protocol.schema import (
    Records,
    Request,
    Response,
    Struct,
    array,
    int16,
    int32,
    int64,
    records,
    string,
    struct,
)


class PartitionProduceData(Struct):
    index: int = int32()
    # One batch since v3. It is checked, appended or refused, and answered, which is far more than decoding.
    records: Records | None = records(nullable="0+", steps=1000)


class TopicProduceData(Struct):
    name: str = string()
    partition_data: list[PartitionProduceData] = array(PartitionProduceData)


class ProduceRequest(Request, key=0, versions="0-12", flexible="9+"):
    transactional_id: str | None = string("3+", nullable="3+", default=None)  # None unless in a transaction
    acks: int = int16()  # 0 no answer, 1 the leader has it, -1 the whole ISR has it
    timeout_ms: int = int32()  # how long to wait for the ISR
    topic_data: list[TopicProduceData] = array(TopicProduceData)


class BatchIndexAndErrorMessage(Struct):
    batch_index: int = int32()  # the record's place in the batch
    batch_index_error_message: str | None = string(nullable="0+", default=None)  # None: see error_message


class LeaderIdAndEpoch(Struct):
    leader_id: int = int32(default=-1)
    leader_epoch: int = int32(default=-1)


class PartitionProduceResponse(Struct):
    index: int = int32()
    error_code: int = int16()
    base_offset: int = int64()  # the offset of the first record
    log_append_time_ms: int = int64("2+", default=-1, ignorable=True)  # -1: the topic keeps its producers' timestamps
    log_start_offset: int = int64("5+", default=-1, ignorable=True)  # tells lost records from deleted ones
    record_errors: list[BatchIndexAndErrorMessage] = array(BatchIndexAndErrorMessage, "8+", ignorable=True)
    error_message: str | None = string("8+", nullable="8+", default=None, ignorable=True)
    current_leader: LeaderIdAndEpoch | None = struct(LeaderIdAndEpoch, "10+", tag=0)  # with leadership errors only


class TopicProduceResponse(Struct):
    name: str = string()
    partition_responses: list[PartitionProduceResponse] = array(PartitionProduceResponse)


class NodeEndpoint(Struct):
    node_id: int = int32()
    host: str = string()
    port: int = int32()
    rack: str | None = string(nullable="0+", default=None)


class ProduceResponse(Response, key=0, versions="0-12", flexible="9+"):
    responses: list[TopicProduceResponse] = array(TopicProduceResponse)
    throttle_time_ms: int = int32("1+", ignorable=True)  # how long the client should pause for its quota
    node_endpoints: list[NodeEndpoint] = array(NodeEndpoint, "10+", tag=0)  # of the leaders named in current_leader

"""alter_partition."""

from uuid import UUID

from odradek.protocol.schema import Request, Response, Struct, array, int8, int16, int32, int64, string, uuid


class BrokerState(Struct):
    broker_id: int = int32()
    broker_epoch: int = int64(default=-1)


class PartitionData(Struct):
    partition_index: int = int32()
    leader_epoch: int = int32()
    new_isr: list[int] = array(int32, "0-2")
    new_isr_with_epochs: list[BrokerState] = array(BrokerState, "3+")
    leader_recovery_state: int = int8("1+")
    partition_epoch: int = int32()


class TopicData(Struct):
    topic_name: str = string("0-1", ignorable=True)
    topic_id: UUID = uuid("2+", ignorable=True)
    partitions: list[PartitionData] = array(PartitionData)


class AlterPartitionRequest(Request, key=56, versions="0-3", flexible="0+"):
    broker_id: int = int32()
    broker_epoch: int = int64(default=-1)
    topics: list[TopicData] = array(TopicData)


class PartitionResult(Struct):
    partition_index: int = int32()
    error_code: int = int16()
    leader_id: int = int32()
    leader_epoch: int = int32()
    isr: list[int] = array(int32)
    leader_recovery_state: int = int8("1+", ignorable=True)
    partition_epoch: int = int32()


class TopicResult(Struct):
    topic_name: str = string("0-1", ignorable=True)
    topic_id: UUID = uuid("2+", ignorable=True)
    partitions: list[PartitionResult] = array(PartitionResult)


class AlterPartitionResponse(Response, key=56, versions="0-3", flexible="0+"):
    throttle_time_ms: int = int32()
    error_code: int = int16()
    topics: list[TopicResult] = array(TopicResult)

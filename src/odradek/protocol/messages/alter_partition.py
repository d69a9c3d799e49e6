"""AlterPartition (key 56): a leader asks the controller to change the ISR.

v1 recovery after an unclean election, v2 topic ids, v3 the broker epochs of the ISR.
"""

from uuid import UUID

from odradek.protocol.schema import Request, Response, Struct, array, int8, int16, int32, int64, string, uuid


class BrokerState(Struct):
    broker_id: int = int32()
    broker_epoch: int = int64(default=-1)  # of the broker's registration; -1: don't check


class PartitionData(Struct):
    partition_index: int = int32()
    leader_epoch: int = int32()
    new_isr: list[int] = array(int32, "0-2")  # until v2
    new_isr_with_epochs: list[BrokerState] = array(BrokerState, "3+")  # since v3
    leader_recovery_state: int = int8("1+")  # 0 recovered, 1 recovering from an unclean election
    partition_epoch: int = int32()  # the version of the partition's state


class TopicData(Struct):
    topic_name: str = string("0-1", ignorable=True)
    topic_id: UUID = uuid("2+", ignorable=True)
    partitions: list[PartitionData] = array(PartitionData)


class AlterPartitionRequest(Request, key=56, versions="0-3", flexible="0+"):
    broker_id: int = int32()
    broker_epoch: int = int64(default=-1)  # of the broker's registration; -1: don't check
    topics: list[TopicData] = array(TopicData)


class PartitionResult(Struct):
    partition_index: int = int32()
    error_code: int = int16()
    leader_id: int = int32()
    leader_epoch: int = int32()
    isr: list[int] = array(int32)
    leader_recovery_state: int = int8("1+", ignorable=True)  # 0 recovered, 1 recovering from an unclean election
    partition_epoch: int = int32()  # the version of the partition's state


class TopicResult(Struct):
    topic_name: str = string("0-1", ignorable=True)
    topic_id: UUID = uuid("2+", ignorable=True)
    partitions: list[PartitionResult] = array(PartitionResult)


class AlterPartitionResponse(Response, key=56, versions="0-3", flexible="0+"):
    throttle_time_ms: int = int32()  # how long the client should pause for its quota
    error_code: int = int16()
    topics: list[TopicResult] = array(TopicResult)

"""leader_and_isr."""

from uuid import UUID

from odradek.protocol.schema import Request, Response, Struct, array, bool_, int8, int16, int32, int64, string, uuid


class LeaderAndIsrPartitionState(Struct):
    topic_name: str = string("0-1", ignorable=True)
    partition_index: int = int32()
    controller_epoch: int = int32()
    leader: int = int32()
    leader_epoch: int = int32()
    isr: list[int] = array(int32)
    partition_epoch: int = int32()
    replicas: list[int] = array(int32)
    adding_replicas: list[int] = array(int32, "3+", ignorable=True)
    removing_replicas: list[int] = array(int32, "3+", ignorable=True)
    is_new: bool = bool_("1+", ignorable=True)
    leader_recovery_state: int = int8("6+")


class LeaderAndIsrTopicState(Struct):
    topic_name: str = string()
    topic_id: UUID = uuid("5+", ignorable=True)
    partition_states: list[LeaderAndIsrPartitionState] = array(LeaderAndIsrPartitionState)


class LeaderAndIsrLiveLeader(Struct):
    broker_id: int = int32()
    host_name: str = string()
    port: int = int32()


class LeaderAndIsrRequest(Request, key=4, versions="0-7", flexible="4+"):
    controller_id: int = int32()
    is_kraft_controller: bool = bool_("7+")
    controller_epoch: int = int32()
    broker_epoch: int = int64("2+", default=-1, ignorable=True)
    type: int = int8("5+")
    ungrouped_partition_states: list[LeaderAndIsrPartitionState] = array(LeaderAndIsrPartitionState, "0-1")
    topic_states: list[LeaderAndIsrTopicState] = array(LeaderAndIsrTopicState, "2+")
    live_leaders: list[LeaderAndIsrLiveLeader] = array(LeaderAndIsrLiveLeader)


class LeaderAndIsrPartitionError(Struct):
    topic_name: str = string("0-4", ignorable=True)
    partition_index: int = int32()
    error_code: int = int16()


class LeaderAndIsrTopicError(Struct):
    topic_id: UUID = uuid()
    partition_errors: list[LeaderAndIsrPartitionError] = array(LeaderAndIsrPartitionError)


class LeaderAndIsrResponse(Response, key=4, versions="0-7", flexible="4+"):
    error_code: int = int16()
    partition_errors: list[LeaderAndIsrPartitionError] = array(LeaderAndIsrPartitionError, "0-4")
    topics: list[LeaderAndIsrTopicError] = array(LeaderAndIsrTopicError, "5+")

"""LeaderAndIsr (key 4): the controller tells a broker which of its replicas lead and which follow, and whom.

v2 groups partitions by topic, v3 reassignments, v5 topic ids, v6 recovery after an unclean election.
"""

from uuid import UUID

from odradek.protocol.schema import Request, Response, Struct, array, bool_, int8, int16, int32, int64, string, uuid


class LeaderAndIsrPartitionState(Struct):
    topic_name: str = string("0-1", ignorable=True)
    partition_index: int = int32()
    controller_epoch: int = int32()  # of the controller that wrote the state
    leader: int = int32()  # -1: none
    leader_epoch: int = int32()
    isr: list[int] = array(int32)
    partition_epoch: int = int32()  # the version of the state's znode
    replicas: list[int] = array(int32)
    adding_replicas: list[int] = array(int32, "3+", ignorable=True)
    removing_replicas: list[int] = array(int32, "3+", ignorable=True)
    is_new: bool = bool_("1+", ignorable=True)  # the replica may be created without a log
    leader_recovery_state: int = int8("6+")  # 0 recovered, 1 recovering from an unclean election


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
    is_kraft_controller: bool = bool_("7+")  # while a cluster migrates from ZooKeeper
    controller_epoch: int = int32()  # an older one than known is refused
    broker_epoch: int = int64("2+", default=-1, ignorable=True)  # of the broker's registration; -1: don't check
    type: int = int8("5+")  # 0 unknown, 1 some partitions, 2 all that the broker has
    ungrouped_partition_states: list[LeaderAndIsrPartitionState] = array(LeaderAndIsrPartitionState, "0-1")
    topic_states: list[LeaderAndIsrTopicState] = array(LeaderAndIsrTopicState, "2+")
    live_leaders: list[LeaderAndIsrLiveLeader] = array(LeaderAndIsrLiveLeader)  # where the leaders can be reached


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

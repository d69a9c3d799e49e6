"""StopReplica (key 5): the controller tells a broker to stop replicas, and optionally to delete them.

The partitions are a flat list in v0, grouped by topic in v1-2, and grouped by topic with their leader epoch since v3.
"""

from odradek.protocol.schema import Request, Response, Struct, array, bool_, int16, int32, int64, string


class StopReplicaPartitionV0(Struct):
    topic_name: str = string("0")
    partition_index: int = int32("0")


class StopReplicaTopicV1(Struct):
    name: str = string("1-2")
    partition_indexes: list[int] = array(int32, "1-2")


class StopReplicaPartitionState(Struct):
    partition_index: int = int32()
    leader_epoch: int = int32(default=-1)  # -1 unknown, -2 the topic is being deleted
    delete_partition: bool = bool_()  # its log too


class StopReplicaTopicState(Struct):
    topic_name: str = string()
    partition_states: list[StopReplicaPartitionState] = array(StopReplicaPartitionState)


class StopReplicaRequest(Request, key=5, versions="0-4", flexible="2+"):
    controller_id: int = int32()
    is_kraft_controller: bool = bool_("4+")  # while a cluster migrates from ZooKeeper
    controller_epoch: int = int32()  # an older one than known is refused
    broker_epoch: int = int64("1+", default=-1, ignorable=True)  # of the broker's registration; -1: don't check
    delete_partitions: bool = bool_("0-2")  # their logs too
    ungrouped_partitions: list[StopReplicaPartitionV0] = array(StopReplicaPartitionV0, "0")
    topics: list[StopReplicaTopicV1] = array(StopReplicaTopicV1, "1-2")
    topic_states: list[StopReplicaTopicState] = array(StopReplicaTopicState, "3+")


class StopReplicaPartitionError(Struct):
    topic_name: str = string()
    partition_index: int = int32()
    error_code: int = int16()


class StopReplicaResponse(Response, key=5, versions="0-4", flexible="2+"):
    error_code: int = int16()
    partition_errors: list[StopReplicaPartitionError] = array(StopReplicaPartitionError)

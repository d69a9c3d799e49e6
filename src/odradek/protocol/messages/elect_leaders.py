"""ElectLeaders (key 43): elect the preferred leaders of partitions, or, since v1, unclean ones."""

from odradek.protocol.schema import Request, Response, Struct, array, int8, int16, int32, string


class ElectionType:
    PREFERRED = 0
    UNCLEAN = 1


class TopicPartitions(Struct):
    topic: str = string()
    partitions: list[int] = array(int32)


class ElectLeadersRequest(Request, key=43, versions="0-2", flexible="2+"):
    election_type: int = int8("1+")  # an ElectionType
    topic_partitions: list[TopicPartitions] | None = array(TopicPartitions, nullable="0+")  # None: all
    timeout_ms: int = int32(default=60000)  # how long the broker may take


class PartitionResult(Struct):
    partition_id: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")


class ReplicaElectionResult(Struct):
    topic: str = string()
    partition_result: list[PartitionResult] = array(PartitionResult)


class ElectLeadersResponse(Response, key=43, versions="0-2", flexible="2+"):
    throttle_time_ms: int = int32()  # how long the client should pause for its quota
    error_code: int = int16("1+")
    replica_election_results: list[ReplicaElectionResult] = array(ReplicaElectionResult)

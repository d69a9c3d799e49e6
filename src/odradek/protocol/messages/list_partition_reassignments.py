"""ListPartitionReassignments (key 46): the moves of replicas that are under way."""

from odradek.protocol.schema import Request, Response, Struct, array, int16, int32, string


class TopicFilter(Struct):
    name: str = string()
    partition_indexes: list[int] = array(int32)


class ListPartitionReassignmentsRequest(Request, key=46, versions="0-0", flexible="0+"):
    timeout_ms: int = int32(default=60000)  # how long the broker may take
    topics: list[TopicFilter] | None = array(TopicFilter, nullable="0+", default=None)  # None: all


class OngoingPartitionReassignment(Struct):
    partition_index: int = int32()
    replicas: list[int] = array(int32)  # all of them, coming and going ones included
    adding_replicas: list[int] = array(int32)
    removing_replicas: list[int] = array(int32)


class OngoingTopicReassignment(Struct):
    name: str = string()
    partitions: list[OngoingPartitionReassignment] = array(OngoingPartitionReassignment)


class ListPartitionReassignmentsResponse(Response, key=46, versions="0-0", flexible="0+"):
    throttle_time_ms: int = int32()  # how long the client should pause for its quota
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    topics: list[OngoingTopicReassignment] = array(OngoingTopicReassignment)

"""CreatePartitions (key 37): raise a topic's number of partitions."""

from odradek.protocol.schema import Request, Response, Struct, array, bool_, int16, int32, string


class CreatePartitionsAssignment(Struct):
    broker_ids: list[int] = array(int32)


class CreatePartitionsTopic(Struct):
    name: str = string()
    count: int = int32()  # the new number of partitions
    assignments: list[CreatePartitionsAssignment] | None = array(CreatePartitionsAssignment, nullable="0+")


class CreatePartitionsRequest(Request, key=37, versions="0-3", flexible="2+"):
    topics: list[CreatePartitionsTopic] = array(CreatePartitionsTopic)
    timeout_ms: int = int32()  # how long the broker may take
    validate_only: bool = bool_()  # check, change nothing


class CreatePartitionsTopicResult(Struct):
    name: str = string()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)


class CreatePartitionsResponse(Response, key=37, versions="0-3", flexible="2+"):
    throttle_time_ms: int = int32()  # how long the client should pause for its quota
    results: list[CreatePartitionsTopicResult] = array(CreatePartitionsTopicResult)

"""ConsumerGroupHeartbeat (key 68): the one request of the newer group protocol: join, be assigned, stay, leave."""

from uuid import UUID

from odradek.protocol.schema import Request, Response, Struct, array, int16, int32, string, struct, uuid


class TopicPartitions(Struct):
    topic_id: UUID = uuid()
    partitions: list[int] = array(int32)


class ConsumerGroupHeartbeatRequest(Request, key=68, versions="0-0", flexible="0+"):
    group_id: str = string()
    member_id: str = string()
    member_epoch: int = int32()  # 0 join, -1 leave, -2 leave for now (static)
    instance_id: str | None = string(nullable="0+", default=None)  # set by static members only
    rack_id: str | None = string(nullable="0+", default=None)
    rebalance_timeout_ms: int = int32(default=-1)  # how long it may take to give partitions up; -1: unchanged
    subscribed_topic_names: list[str] | None = array(string, nullable="0+", default=None)  # None: unchanged
    server_assignor: str | None = string(nullable="0+", default=None)  # None: unchanged, or the group's choice
    topic_partitions: list[TopicPartitions] | None = array(TopicPartitions, nullable="0+", default=None)


class Assignment(Struct):
    topic_partitions: list[TopicPartitions] = array(TopicPartitions)


class ConsumerGroupHeartbeatResponse(Response, key=68, versions="0-0", flexible="0+"):
    throttle_time_ms: int = int32()  # how long the client should pause for its quota
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)
    member_id: str | None = string(nullable="0+", default=None)
    member_epoch: int = int32()
    heartbeat_interval_ms: int = int32()
    assignment: Assignment | None = struct(Assignment, nullable="0+")  # None: unchanged

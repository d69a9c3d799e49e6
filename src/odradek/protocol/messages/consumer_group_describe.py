"""ConsumerGroupDescribe (key 69): state and members of groups of the newer protocol."""

from uuid import UUID

from odradek.protocol.schema import Request, Response, Struct, array, bool_, int16, int32, string, struct, uuid


class ConsumerGroupDescribeRequest(Request, key=69, versions="0-0", flexible="0+"):
    group_ids: list[str] = array(string)
    include_authorized_operations: bool = bool_()


class TopicPartitions(Struct):
    topic_id: UUID = uuid()
    topic_name: str = string()
    partitions: list[int] = array(int32)


class Assignment(Struct):
    topic_partitions: list[TopicPartitions] = array(TopicPartitions)


class Member(Struct):
    member_id: str = string()
    instance_id: str | None = string(nullable="0+", default=None)  # set by static members only
    rack_id: str | None = string(nullable="0+", default=None)
    member_epoch: int = int32()
    client_id: str = string()
    client_host: str = string()
    subscribed_topic_names: list[str] = array(string)
    subscribed_topic_regex: str | None = string(nullable="0+", default=None)
    assignment: Assignment = struct(Assignment)
    target_assignment: Assignment = struct(Assignment)  # where the rebalance is heading


class DescribedGroup(Struct):
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)
    group_id: str = string()
    group_state: str = string()
    group_epoch: int = int32()  # rises when members or topics change
    assignment_epoch: int = int32()  # the group epoch that the assignment was made for
    assignor_name: str = string()
    members: list[Member] = array(Member)
    authorized_operations: int = int32(default=-2147483648)  # bits by operation, or not asked for


class ConsumerGroupDescribeResponse(Response, key=69, versions="0-0", flexible="0+"):
    throttle_time_ms: int = int32()  # how long the client should pause for its quota
    groups: list[DescribedGroup] = array(DescribedGroup)

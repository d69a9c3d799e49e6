"""JoinGroup (key 11): enter a group, or its next generation; held until all members are in.

v1 rebalance timeout, v4 a new member must come back with the id it was given, v5 static members, v8 a reason, v9 the
leader may be asked not to assign.
"""

from odradek.protocol.schema import Request, Response, Struct, array, bool_, bytes_, int16, int32, string


class JoinGroupRequestProtocol(Struct):
    name: str = string()
    metadata: bytes = bytes_()  # the assignor's subscription


class JoinGroupRequest(Request, key=11, versions="0-9", flexible="6+"):
    group_id: str = string()
    session_timeout_ms: int = int32()  # a member silent for this long is out
    rebalance_timeout_ms: int = int32("1+", default=-1, ignorable=True)  # for the others to join; -1: as the session
    member_id: str = string()  # empty for a new member
    group_instance_id: str | None = string("5+", nullable="5+", default=None)  # set by static members only
    protocol_type: str = string()  # what the members have in common, like "consumer"
    protocols: list[JoinGroupRequestProtocol] = array(JoinGroupRequestProtocol)  # its assignors, best first
    reason: str | None = string("8+", nullable="8+", default=None, ignorable=True)  # for the log


class JoinGroupResponseMember(Struct):
    member_id: str = string()
    group_instance_id: str | None = string("5+", nullable="5+", default=None, ignorable=True)  # of static members
    metadata: bytes = bytes_()  # its subscription, for the leader to assign by


class JoinGroupResponse(Response, key=11, versions="0-9", flexible="6+"):
    throttle_time_ms: int = int32("2+", ignorable=True)  # how long the client should pause for its quota
    error_code: int = int16()
    generation_id: int = int32(default=-1)  # rises with every rebalance
    protocol_type: str | None = string("7+", nullable="7+", default=None, ignorable=True)
    protocol_name: str | None = string(nullable="7+")  # the assignor that all can do
    leader: str = string()  # the member that assigns
    skip_assignment: bool = bool_("9+")  # the leader must not assign, since nothing changed
    member_id: str = string()
    members: list[JoinGroupResponseMember] = array(JoinGroupResponseMember)  # empty for all but the leader

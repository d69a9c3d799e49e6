"""LeaveGroup (key 13): members leave at once instead of by timeout.

v3 many members in one request, v5 a reason.
"""

from odradek.protocol.schema import Request, Response, Struct, array, int16, int32, string


class MemberIdentity(Struct):
    member_id: str = string()
    group_instance_id: str | None = string(nullable="0+", default=None)  # set by static members only
    reason: str | None = string("5+", nullable="5+", default=None, ignorable=True)  # for the log


class LeaveGroupRequest(Request, key=13, versions="0-5", flexible="4+"):
    group_id: str = string()
    member_id: str = string("0-2")
    members: list[MemberIdentity] = array(MemberIdentity, "3+")


class MemberResponse(Struct):
    member_id: str = string()
    group_instance_id: str | None = string(nullable="0+")  # set by static members only
    error_code: int = int16()


class LeaveGroupResponse(Response, key=13, versions="0-5", flexible="4+"):
    throttle_time_ms: int = int32("1+", ignorable=True)  # how long the client should pause for its quota
    error_code: int = int16()
    members: list[MemberResponse] = array(MemberResponse, "3+")

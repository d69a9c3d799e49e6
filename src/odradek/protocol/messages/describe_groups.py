"""DescribeGroups (key 15): state, members and assignments of groups.

v3 authorized operations, v4 static members.
"""

from odradek.protocol.schema import Request, Response, Struct, array, bool_, bytes_, int16, int32, string


class DescribeGroupsRequest(Request, key=15, versions="0-5", flexible="5+"):
    groups: list[str] = array(string)
    include_authorized_operations: bool = bool_("3+")


class DescribedGroupMember(Struct):
    member_id: str = string()
    group_instance_id: str | None = string("4+", nullable="4+", default=None, ignorable=True)  # of static members
    client_id: str = string()
    client_host: str = string()
    member_metadata: bytes = bytes_()  # its subscription
    member_assignment: bytes = bytes_()  # its part of the assignment


class DescribedGroup(Struct):
    error_code: int = int16()
    group_id: str = string()
    group_state: str = string()
    protocol_type: str = string()
    protocol_data: str = string()  # the assignor in use
    members: list[DescribedGroupMember] = array(DescribedGroupMember)
    authorized_operations: int = int32("3+", default=-2147483648)  # bits by operation, or not asked for


class DescribeGroupsResponse(Response, key=15, versions="0-5", flexible="5+"):
    throttle_time_ms: int = int32("1+", ignorable=True)  # how long the client should pause for its quota
    groups: list[DescribedGroup] = array(DescribedGroup)

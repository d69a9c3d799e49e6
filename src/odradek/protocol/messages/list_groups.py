"""ListGroups (key 16): the groups that a broker coordinates.

v4 states, v5 types.
"""

from odradek.protocol.schema import Request, Response, Struct, array, int16, int32, string


class ListGroupsRequest(Request, key=16, versions="0-5", flexible="3+"):
    states_filter: list[str] = array(string, "4+")  # empty: all
    types_filter: list[str] = array(string, "5+")  # empty: all


class ListedGroup(Struct):
    group_id: str = string()
    protocol_type: str = string()
    group_state: str = string("4+", ignorable=True)
    group_type: str = string("5+", ignorable=True)


class ListGroupsResponse(Response, key=16, versions="0-5", flexible="3+"):
    throttle_time_ms: int = int32("1+", ignorable=True)  # how long the client should pause for its quota
    error_code: int = int16()
    groups: list[ListedGroup] = array(ListedGroup)

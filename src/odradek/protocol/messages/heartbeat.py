"""Heartbeat (key 12): a member reports that it is alive and learns whether its group rebalances.

v3 static members.
"""

from odradek.protocol.schema import Request, Response, int16, int32, string


class HeartbeatRequest(Request, key=12, versions="0-4", flexible="4+"):
    group_id: str = string()
    generation_id: int = int32()  # the one that the member believes in
    member_id: str = string()
    group_instance_id: str | None = string("3+", nullable="3+", default=None)  # set by static members only


class HeartbeatResponse(Response, key=12, versions="0-4", flexible="4+"):
    throttle_time_ms: int = int32("1+", ignorable=True)  # how long the client should pause for its quota
    error_code: int = int16()

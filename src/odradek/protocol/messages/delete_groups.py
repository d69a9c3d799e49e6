"""DeleteGroups (key 42): remove empty groups with their offsets."""

from odradek.protocol.schema import Request, Response, Struct, array, int16, int32, string


class DeleteGroupsRequest(Request, key=42, versions="0-2", flexible="2+"):
    groups_names: list[str] = array(string)


class DeletableGroupResult(Struct):
    group_id: str = string()
    error_code: int = int16()


class DeleteGroupsResponse(Response, key=42, versions="0-2", flexible="2+"):
    throttle_time_ms: int = int32()  # how long the client should pause for its quota
    results: list[DeletableGroupResult] = array(DeletableGroupResult)

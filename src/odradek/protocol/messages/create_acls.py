"""CreateAcls (key 30): new access rules.

v1 pattern types.
"""

from odradek.protocol.schema import Request, Response, Struct, array, int8, int16, int32, string


class AclCreation(Struct):
    resource_type: int = int8()
    resource_name: str = string()
    resource_pattern_type: int = int8("1+", default=3)  # 3 literal, 4 prefixed
    principal: str = string()
    host: str = string()
    operation: int = int8()  # 2 all, 3 read, 4 write, 5 create, 6 delete, 7 alter, 8 describe, …
    permission_type: int = int8()  # 1 any, 2 deny, 3 allow


class CreateAclsRequest(Request, key=30, versions="0-3", flexible="2+"):
    creations: list[AclCreation] = array(AclCreation)


class AclCreationResult(Struct):
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")


class CreateAclsResponse(Response, key=30, versions="0-3", flexible="2+"):
    throttle_time_ms: int = int32()  # how long the client should pause for its quota
    results: list[AclCreationResult] = array(AclCreationResult)

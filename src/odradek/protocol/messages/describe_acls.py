"""DescribeAcls (key 29): the access rules that match a filter.

v1 pattern types.
"""

from odradek.protocol.schema import Request, Response, Struct, array, int8, int16, int32, string


class DescribeAclsRequest(Request, key=29, versions="0-3", flexible="2+"):
    resource_type_filter: int = int8()  # 1 any, 2 topic, 3 group, 4 cluster, 5 transactional id, 6 token, 7 user
    resource_name_filter: str | None = string(nullable="0+")  # None: any
    pattern_type_filter: int = int8("1+", default=3)  # 1 any, 2 match, 3 literal, 4 prefixed
    principal_filter: str | None = string(nullable="0+")  # None: any
    host_filter: str | None = string(nullable="0+")  # None: any
    operation: int = int8()  # 1 any, 2 all, 3 read, 4 write, 5 create, 6 delete, 7 alter, 8 describe, …
    permission_type: int = int8()  # 1 any, 2 deny, 3 allow


class AclDescription(Struct):
    principal: str = string()
    host: str = string()
    operation: int = int8()  # 1 any, 2 all, 3 read, 4 write, 5 create, 6 delete, 7 alter, 8 describe, …
    permission_type: int = int8()  # 1 any, 2 deny, 3 allow


class DescribeAclsResource(Struct):
    resource_type: int = int8()
    resource_name: str = string()
    pattern_type: int = int8("1+", default=3)  # 3 literal, 4 prefixed
    acls: list[AclDescription] = array(AclDescription)


class DescribeAclsResponse(Response, key=29, versions="0-3", flexible="2+"):
    throttle_time_ms: int = int32()  # how long the client should pause for its quota
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    resources: list[DescribeAclsResource] = array(DescribeAclsResource)

"""DeleteAcls (key 31): access rules to remove, by filters.

v1 pattern types.
"""

from odradek.protocol.schema import Request, Response, Struct, array, int8, int16, int32, string


class DeleteAclsFilter(Struct):
    resource_type_filter: int = int8()  # 1 any, 2 topic, 3 group, 4 cluster, 5 transactional id, 6 token, 7 user
    resource_name_filter: str | None = string(nullable="0+")  # None: any
    pattern_type_filter: int = int8("1+", default=3)  # 1 any, 2 match, 3 literal, 4 prefixed
    principal_filter: str | None = string(nullable="0+")  # None: any
    host_filter: str | None = string(nullable="0+")  # None: any
    operation: int = int8()  # 1 any, 2 all, 3 read, 4 write, 5 create, 6 delete, 7 alter, 8 describe, …
    permission_type: int = int8()  # 1 any, 2 deny, 3 allow


class DeleteAclsRequest(Request, key=31, versions="0-3", flexible="2+"):
    filters: list[DeleteAclsFilter] = array(DeleteAclsFilter)


class DeleteAclsMatchingAcl(Struct):
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    resource_type: int = int8()
    resource_name: str = string()
    pattern_type: int = int8("1+", default=3)  # 3 literal, 4 prefixed
    principal: str = string()
    host: str = string()
    operation: int = int8()  # 1 any, 2 all, 3 read, 4 write, 5 create, 6 delete, 7 alter, 8 describe, …
    permission_type: int = int8()  # 1 any, 2 deny, 3 allow


class DeleteAclsFilterResult(Struct):
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    matching_acls: list[DeleteAclsMatchingAcl] = array(DeleteAclsMatchingAcl)


class DeleteAclsResponse(Response, key=31, versions="0-3", flexible="2+"):
    throttle_time_ms: int = int32()  # how long the client should pause for its quota
    filter_results: list[DeleteAclsFilterResult] = array(DeleteAclsFilterResult)

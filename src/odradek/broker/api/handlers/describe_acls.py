"""DescribeAcls (key 29): the ACLs that a filter matches, as this broker obeys them, by resource pattern.

Versions 0-3. v1 adds pattern types. Not done: nothing.
"""

from odradek.base.errors import ErrorCode, KafkaError
from odradek.broker.api.acl_messages import filter_of
from odradek.broker.api.authorization import require_on_cluster
from odradek.broker.api.context import RequestContext
from odradek.broker.api.registry import handles
from odradek.model.acls import AclEntry, AclOperation, ResourcePattern
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.messages.describe_acls import (
    AclDescription,
    DescribeAclsRequest,
    DescribeAclsResource,
    DescribeAclsResponse,
)


@handles(ApiKey.DESCRIBE_ACLS, versions="0-3", may_block=False)
def describe_acls(request: DescribeAclsRequest, ctx: RequestContext) -> DescribeAclsResponse:
    try:
        require_on_cluster(ctx, AclOperation.DESCRIBE)
        if ctx.broker.authorizer is None:
            raise KafkaError(ErrorCode.SECURITY_DISABLED, "No Authorizer is configured on the broker")
        found: dict[ResourcePattern, list[AclEntry]] = {}
        for binding in ctx.broker.authorizer.acls(filter_of(request)):
            found.setdefault(binding.pattern, []).append(binding.entry)
    except KafkaError as error:
        return DescribeAclsResponse(error_code=error.code, error_message=error.message)
    return DescribeAclsResponse(
        error_message="", resources=[_resource(pattern, entries) for pattern, entries in found.items()]
    )


def _resource(pattern: ResourcePattern, entries: list[AclEntry]) -> DescribeAclsResource:
    return DescribeAclsResource(
        resource_type=pattern.type,
        resource_name=pattern.name,
        pattern_type=pattern.pattern,
        acls=[
            AclDescription(
                principal=entry.principal,
                host=entry.host,
                operation=entry.operation,
                permission_type=entry.permission,
            )
            for entry in entries
        ],
    )

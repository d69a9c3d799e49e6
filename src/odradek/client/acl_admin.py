"""ACLs, for the tools: read them, create them, delete them."""

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

from odradek.base.errors import ErrorCode, KafkaError
from odradek.client.cluster_client import NOT_YET_DONE, ClusterClient
from odradek.model.acls import (
    AclBinding,
    AclEntry,
    AclFilter,
    AclOperation,
    EntryFilter,
    PatternFilter,
    PatternType,
    PermissionType,
    ResourcePattern,
    ResourceType,
)
from odradek.protocol.messages.create_acls import AclCreation, CreateAclsRequest, CreateAclsResponse
from odradek.protocol.messages.delete_acls import (
    DeleteAclsFilter,
    DeleteAclsFilterResult,
    DeleteAclsMatchingAcl,
    DeleteAclsRequest,
    DeleteAclsResponse,
)
from odradek.protocol.messages.describe_acls import (
    AclDescription,
    DescribeAclsRequest,
    DescribeAclsResource,
    DescribeAclsResponse,
)

EVERY_PATTERN = PatternFilter(ResourceType.ANY, None, PatternType.ANY)
EVERY_ENTRY = EntryFilter(None, None, AclOperation.ANY, PermissionType.ANY)


def describe_acls(client: ClusterClient, wanted: AclFilter) -> list[AclBinding]:
    answer = client.ask_any(DescribeAclsRequest(**_filter_fields(wanted)), DescribeAclsResponse)
    _raise_for(answer.error_code, answer.error_message)
    return [_binding(resource, acl) for resource in answer.resources for acl in resource.acls]


def create_acls(client: ClusterClient, bindings: Iterable[AclBinding]) -> None:
    request = CreateAclsRequest(
        creations=[
            AclCreation(
                resource_type=binding.pattern.type,
                resource_name=binding.pattern.name,
                resource_pattern_type=binding.pattern.pattern,
                principal=binding.entry.principal,
                host=binding.entry.host,
                operation=binding.entry.operation,
                permission_type=binding.entry.permission,
            )
            for binding in bindings
        ]
    )
    client.retrying(partial(_create, client, request), NOT_YET_DONE)


def _create(client: ClusterClient, request: CreateAclsRequest) -> None:
    for result in client.ask_controller(request, CreateAclsResponse).results:
        _raise_for(result.error_code, result.error_message)


def delete_acls(client: ClusterClient, filters: Sequence[AclFilter]) -> list[AclBinding]:
    """Delete the ACLs that the filter matches, and return them."""
    request = DeleteAclsRequest(filters=[DeleteAclsFilter(**_filter_fields(wanted)) for wanted in filters])
    results: list[DeleteAclsFilterResult] = client.ask_controller(request, DeleteAclsResponse).filter_results
    deleted = []
    for result in results:
        _raise_for(result.error_code, result.error_message)
        for acl in result.matching_acls:
            _raise_for(acl.error_code, acl.error_message)
            deleted.append(_binding(acl, acl))
    return deleted


def _filter_fields(wanted: AclFilter) -> dict[str, Any]:
    """Fields of a filter, as DescribeAcls and DeleteAcls name them."""
    return {
        "resource_type_filter": wanted.pattern.type,
        "resource_name_filter": wanted.pattern.name,
        "pattern_type_filter": wanted.pattern.pattern,
        "principal_filter": wanted.entry.principal,
        "host_filter": wanted.entry.host,
        "operation": wanted.entry.operation,
        "permission_type": wanted.entry.permission,
    }


def _binding(
    resource: DescribeAclsResource | DeleteAclsMatchingAcl, acl: AclDescription | DeleteAclsMatchingAcl
) -> AclBinding:
    return AclBinding(
        ResourcePattern(
            ResourceType(resource.resource_type), resource.resource_name, PatternType(resource.pattern_type)
        ),
        AclEntry(acl.principal, acl.host, AclOperation(acl.operation), PermissionType(acl.permission_type)),
    )


def _raise_for(code: int, message: str | None) -> None:
    if code != ErrorCode.NONE:
        raise KafkaError(ErrorCode(code), message or "")

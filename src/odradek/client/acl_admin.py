"""ACLs, for the tools: read them, create them, delete them."""

from collections.abc import Iterable, Sequence
from functools import partial

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
    DeleteAclsRequest,
    DeleteAclsResponse,
)
from odradek.protocol.messages.describe_acls import DescribeAclsRequest, DescribeAclsResponse

EVERY_PATTERN = PatternFilter(ResourceType.ANY, None, PatternType.ANY)
EVERY_ENTRY = EntryFilter(None, None, AclOperation.ANY, PermissionType.ANY)


def describe_acls(client: ClusterClient, wanted: AclFilter) -> list[AclBinding]:
    request = DescribeAclsRequest(
        resource_type_filter=wanted.pattern.type,
        resource_name_filter=wanted.pattern.name,
        pattern_type_filter=wanted.pattern.pattern,
        principal_filter=wanted.entry.principal,
        host_filter=wanted.entry.host,
        operation=wanted.entry.operation,
        permission_type=wanted.entry.permission,
    )
    answer = client.ask_any(request, DescribeAclsResponse)
    _raise_for(answer.error_code, answer.error_message)
    return [
        AclBinding(
            ResourcePattern(
                ResourceType(resource.resource_type), resource.resource_name, PatternType(resource.pattern_type)
            ),
            AclEntry(acl.principal, acl.host, AclOperation(acl.operation), PermissionType(acl.permission_type)),
        )
        for resource in answer.resources
        for acl in resource.acls
    ]


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
    """The ACLs that were deleted."""
    request = DeleteAclsRequest(
        filters=[
            DeleteAclsFilter(
                resource_type_filter=wanted.pattern.type,
                resource_name_filter=wanted.pattern.name,
                pattern_type_filter=wanted.pattern.pattern,
                principal_filter=wanted.entry.principal,
                host_filter=wanted.entry.host,
                operation=wanted.entry.operation,
                permission_type=wanted.entry.permission,
            )
            for wanted in filters
        ]
    )
    results: list[DeleteAclsFilterResult] = client.ask_controller(request, DeleteAclsResponse).filter_results
    deleted = []
    for result in results:
        _raise_for(result.error_code, result.error_message)
        for acl in result.matching_acls:
            _raise_for(acl.error_code, acl.error_message)
            pattern = ResourcePattern(ResourceType(acl.resource_type), acl.resource_name, PatternType(acl.pattern_type))
            operation, permission = AclOperation(acl.operation), PermissionType(acl.permission_type)
            deleted.append(AclBinding(pattern, AclEntry(acl.principal, acl.host, operation, permission)))
    return deleted


def _raise_for(code: int, message: str | None) -> None:
    if code != ErrorCode.NONE:
        raise KafkaError(ErrorCode(code), message or "")

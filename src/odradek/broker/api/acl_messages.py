"""ACLs between the wire and their values, for the three requests about them."""

from typing import Protocol, TypeVar

from odradek.base.errors import ErrorCode, KafkaError
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
from odradek.protocol.messages.create_acls import AclCreation

_Code = TypeVar("_Code", ResourceType, PatternType, AclOperation, PermissionType)


class FilterFields(Protocol):
    resource_type_filter: int
    resource_name_filter: str | None
    pattern_type_filter: int
    principal_filter: str | None
    host_filter: str | None
    operation: int
    permission_type: int


def no_authorizer() -> KafkaError:
    return KafkaError(ErrorCode.SECURITY_DISABLED, "No Authorizer is configured.")


def known(kind: type[_Code], code: int) -> _Code:
    """Return the code; UNKNOWN (0) for a code of a later version."""
    try:
        return kind(code)
    except ValueError:
        return kind(0)


def filter_of(fields: FilterFields) -> AclFilter:
    """KafkaError INVALID_REQUEST for a filter with words that this broker doesn't know."""
    pattern = PatternFilter(
        known(ResourceType, fields.resource_type_filter),
        fields.resource_name_filter,
        known(PatternType, fields.pattern_type_filter),
    )
    entry = EntryFilter(
        fields.principal_filter,
        fields.host_filter,
        known(AclOperation, fields.operation),
        known(PermissionType, fields.permission_type),
    )
    if 0 in (pattern.type, pattern.pattern, entry.operation, entry.permission):
        raise KafkaError(ErrorCode.INVALID_REQUEST, "The filter contains unknown elements.")
    return AclFilter(pattern, entry)


def binding_of(wanted: AclCreation) -> AclBinding:
    """Unknown codes stay UNKNOWN, and are refused with the binding."""
    return AclBinding(
        ResourcePattern(
            known(ResourceType, wanted.resource_type),
            wanted.resource_name,
            known(PatternType, wanted.resource_pattern_type),
        ),
        AclEntry(
            wanted.principal,
            wanted.host,
            known(AclOperation, wanted.operation),
            known(PermissionType, wanted.permission_type),
        ),
    )

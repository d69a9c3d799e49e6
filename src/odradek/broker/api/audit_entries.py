"""Entries of the audit log about requests that change the cluster: names in the request, and the errors of the answer.

Fields are taken by a list of names, all others stay out: no password, salt, token secret or configuration value gets
into an entry, whatever a later version of a message holds.
"""

from collections.abc import Iterator

from odradek.base.errors import ErrorCode
from odradek.broker.api.context import RequestContext
from odradek.broker.security.audit_log import AuditLog, Entry
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.schema import Request, Struct

CHANGES = frozenset(
    {
        ApiKey.CREATE_TOPICS,
        ApiKey.DELETE_TOPICS,
        ApiKey.CREATE_PARTITIONS,
        ApiKey.DELETE_RECORDS,
        ApiKey.ALTER_CONFIGS,
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        ApiKey.CREATE_ACLS,
        ApiKey.DELETE_ACLS,
        ApiKey.ALTER_CLIENT_QUOTAS,
        ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
        ApiKey.CREATE_DELEGATION_TOKEN,
        ApiKey.RENEW_DELEGATION_TOKEN,
        ApiKey.EXPIRE_DELEGATION_TOKEN,
        ApiKey.DELETE_GROUPS,
        ApiKey.OFFSET_DELETE,
        ApiKey.ELECT_LEADERS,
        ApiKey.ALTER_PARTITION_REASSIGNMENTS,
        ApiKey.ALTER_REPLICA_LOG_DIRS,
        ApiKey.UPDATE_FEATURES,
    }
)
_NAMES = frozenset(
    {
        *("name", "topic", "topic_name", "topic_names", "groups_names", "group_id", "feature", "count"),
        *("num_partitions", "replication_factor", "partition_index", "partition_id", "replicas", "offset"),
        *("resource_type", "resource_name", "resource_pattern_type", "principal", "host", "operation"),
        *("permission_type", "resource_type_filter", "resource_name_filter", "pattern_type_filter"),
        *("principal_filter", "host_filter", "entity_type", "entity_name", "key", "remove", "mechanism"),
        *("owner_principal_type", "owner_principal_name", "principal_type", "principal_name"),
        *("config_operation", "validate_only", "election_type"),
    }
)
_ELEMENTS_MAX = 100
_TEXT_MAX = 249


def change_entry(request: Request, ctx: RequestContext) -> Entry:
    connection = ctx.connection
    return {
        "event": "change",
        "principal": str(ctx.principal),
        "host": ctx.client_host,
        "listener": connection.listener_name,
        "client_id": ctx.client_id[:_TEXT_MAX],
        "request": ApiKey(ctx.header.api_key).name,
        "detail": _names(request),
    }


def record_outcome(audit: AuditLog, entry: Entry, response: object) -> None:
    """Record the change, or that nothing of it was done."""
    codes = set(_codes(response))
    record = audit.record_change if ErrorCode.NONE in codes else audit.record_refusal
    record({**entry, "errors": sorted({ErrorCode(code).name for code in codes if code}) or ["NONE"]})


def _names(value: Struct) -> dict[str, object]:
    found: dict[str, object] = {}
    for name in value.FIELDS:
        held = getattr(value, name)
        if isinstance(held, Struct):
            found |= {name: inner} if (inner := _names(held)) else {}
        elif isinstance(held, list) and held and isinstance(held[0], Struct):
            found[name] = [_names(each) for each in held[:_ELEMENTS_MAX]]
        elif name in _NAMES and held not in (None, ""):
            found[name] = _bounded(held)
    return found


def _bounded(value: object) -> object:
    if isinstance(value, list):
        return [_bounded(each) for each in value[:_ELEMENTS_MAX]]
    return value[:_TEXT_MAX] if isinstance(value, str) else value if isinstance(value, int) else str(value)


def _codes(value: object) -> Iterator[int]:
    """Errors of the parts of a request, and of the whole request unless it is NONE."""
    if isinstance(value, list):
        for each in value:
            yield from _codes(each)
    elif isinstance(value, Struct):
        parts = [code for name in value.FIELDS for code in _codes(getattr(value, name))]
        yield from parts
        own = getattr(value, "error_code", None)
        if own or (own is not None and not parts):
            yield own

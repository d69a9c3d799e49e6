"""ACLs as values: resource patterns, entries, and filters over both. Numbers and names are Kafka's. Pure.

`code` names are those of the wire; `shown` names (`TransactionalId`, `DescribeConfigs`, `Allow`) those of znodes, of
the tools and of the authorizer log.
"""

from collections.abc import Iterable
from enum import IntEnum
from ipaddress import ip_address

from odradek.base.value_classes import dataclass

CLUSTER_NAME = "kafka-cluster"
"""The one resource of type CLUSTER."""
WILDCARD = "*"
WILDCARD_PRINCIPAL = "User:*"


class _Named(IntEnum):
    @property
    def shown(self) -> str:
        """TRANSACTIONAL_ID is shown as TransactionalId."""
        return "".join(word.capitalize() for word in self.name.split("_"))


class ResourceType(_Named):
    UNKNOWN = 0
    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class PatternType(_Named):
    UNKNOWN = 0
    ANY = 1
    MATCH = 2
    LITERAL = 3
    PREFIXED = 4


class AclOperation(_Named):
    UNKNOWN = 0
    ANY = 1
    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14


class PermissionType(_Named):
    UNKNOWN = 0
    ANY = 1
    DENY = 2
    ALLOW = 3


RESOURCE_TYPES = tuple(kind for kind in ResourceType if kind > ResourceType.ANY)
PATTERN_TYPES = (PatternType.LITERAL, PatternType.PREFIXED)

_OP = AclOperation
SUPPORTED_OPERATIONS: dict[ResourceType, frozenset[AclOperation]] = {
    ResourceType.TOPIC: frozenset(
        {
            *(_OP.READ, _OP.WRITE, _OP.CREATE, _OP.DESCRIBE),
            *(_OP.DELETE, _OP.ALTER, _OP.DESCRIBE_CONFIGS, _OP.ALTER_CONFIGS),
        }
    ),
    ResourceType.GROUP: frozenset({_OP.READ, _OP.DESCRIBE, _OP.DELETE}),
    ResourceType.CLUSTER: frozenset(
        {
            *(_OP.CREATE, _OP.CLUSTER_ACTION, _OP.DESCRIBE_CONFIGS, _OP.ALTER_CONFIGS),
            *(_OP.IDEMPOTENT_WRITE, _OP.ALTER, _OP.DESCRIBE),
        }
    ),
    ResourceType.TRANSACTIONAL_ID: frozenset({_OP.DESCRIBE, _OP.WRITE}),
    ResourceType.DELEGATION_TOKEN: frozenset({_OP.DESCRIBE}),
    ResourceType.USER: frozenset({_OP.CREATE_TOKENS, _OP.DESCRIBE_TOKENS}),
}
"""Operations that an authorization of a resource can be asked for."""

IMPLYING: dict[AclOperation, tuple[AclOperation, ...]] = {
    _OP.DESCRIBE: (_OP.DESCRIBE, _OP.READ, _OP.WRITE, _OP.DELETE, _OP.ALTER),
    _OP.DESCRIBE_CONFIGS: (_OP.DESCRIBE_CONFIGS, _OP.ALTER_CONFIGS),
}
"""Operations of which each, when allowed, allows the key as well. A denial implies nothing."""


@dataclass(frozen=True, slots=True)
class ResourcePattern:
    """Resources that an ACL is for: one by its name (or all, by `*`), or all that begin with a prefix."""

    type: ResourceType
    name: str
    pattern: PatternType = PatternType.LITERAL

    def covers(self, name: str) -> bool:
        if self.pattern is PatternType.PREFIXED:
            return name.startswith(self.name)
        return self.name in (name, WILDCARD)


@dataclass(frozen=True, slots=True)
class AclEntry:
    """One right, given or taken. The host is an address, or `*`."""

    principal: str
    host: str
    operation: AclOperation
    permission: PermissionType


@dataclass(frozen=True, slots=True)
class AclBinding:
    pattern: ResourcePattern
    entry: AclEntry


@dataclass(frozen=True, slots=True)
class PatternFilter:
    """Patterns of a type and a name; None: any. MATCH: the patterns that cover a resource of that name."""

    type: ResourceType
    name: str | None
    pattern: PatternType

    def matches(self, pattern: ResourcePattern) -> bool:
        if self.type is not ResourceType.ANY and self.type is not pattern.type:
            return False
        if self.pattern in PATTERN_TYPES and self.pattern is not pattern.pattern:
            return False
        if self.name is None:
            return True
        return pattern.covers(self.name) if self.pattern is PatternType.MATCH else pattern.name == self.name

    def named_patterns(self) -> list[ResourcePattern]:
        """The patterns that match, known or not, where the filter says them all; else none."""
        if self.name is None or self.type is ResourceType.ANY or self.pattern is PatternType.MATCH:
            return []
        kinds = PATTERN_TYPES if self.pattern is PatternType.ANY else (self.pattern,)
        return [ResourcePattern(self.type, self.name, kind) for kind in kinds]


@dataclass(frozen=True, slots=True)
class EntryFilter:
    """Entries by principal and host (None: any), operation and permission (ANY)."""

    principal: str | None
    host: str | None
    operation: AclOperation
    permission: PermissionType

    def matches(self, entry: AclEntry) -> bool:
        return (
            self.principal in (None, entry.principal)
            and self.host in (None, entry.host)
            and self.operation in (AclOperation.ANY, entry.operation)
            and self.permission in (PermissionType.ANY, entry.permission)
        )


@dataclass(frozen=True, slots=True)
class AclFilter:
    pattern: PatternFilter
    entry: EntryFilter

    def matches(self, binding: AclBinding) -> bool:
        return self.pattern.matches(binding.pattern) and self.entry.matches(binding.entry)


def canonical_host(host: str) -> str:
    """One spelling per address: `::1` and Java's `0:0:0:0:0:0:0:1` are the same, and so are `10.0.0.7` and
    `::ffff:10.0.0.7`. Other texts stay."""
    try:
        address = ip_address(host)
    except ValueError:
        return host
    return str((address.ipv4_mapped if address.version == 6 else None) or address)


def operation_bits(operations: Iterable[AclOperation]) -> int:
    """A set of operations as the wire has it: one bit per code."""
    return sum(1 << operation for operation in set(operations))

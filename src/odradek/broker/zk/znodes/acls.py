"""ACLs of the cluster, one node per resource pattern, and the notices by which brokers learn of a change.

/kafka-acl/<Type>/<name>                       literal patterns, `*` included
/kafka-acl-extended/prefixed/<Type>/<name>     prefixed patterns
/kafka-acl-changes/acl_changes_N               TYPE:name
/kafka-acl-extended-changes/acl_changes_N      JSON
"""

from collections.abc import Iterable
from typing import Any

from odradek.broker.security.principal import KafkaPrincipal
from odradek.broker.zk.json_form import to_json
from odradek.broker.zk.znodes.reading import CorruptZnode, decoded, integer, text
from odradek.model.acls import (
    PATTERN_TYPES,
    RESOURCE_TYPES,
    AclEntry,
    AclOperation,
    PatternType,
    PermissionType,
    ResourcePattern,
    ResourceType,
)

_TYPES = {kind.shown: kind for kind in RESOURCE_TYPES}
_OPERATIONS = {op.shown: op for op in AclOperation if op > AclOperation.ANY}
_PERMISSIONS = {permission.shown: permission for permission in (PermissionType.ALLOW, PermissionType.DENY)}


class ResourceAcls:
    """The ACLs of one resource pattern. A node without ACLs is removed."""

    roots: dict[PatternType, str] = {  # noqa: RUF012
        PatternType.LITERAL: "/kafka-acl",
        PatternType.PREFIXED: "/kafka-acl-extended/prefixed",
    }

    @classmethod
    def parent(cls, pattern_type: PatternType, kind: ResourceType) -> str:
        return f"{cls.roots[pattern_type]}/{kind.shown}"

    @classmethod
    def path(cls, pattern: ResourcePattern) -> str:
        return f"{cls.parent(pattern.pattern, pattern.type)}/{pattern.name}"

    @staticmethod
    def encode(entries: Iterable[AclEntry]) -> bytes:
        acls = [
            {
                "principal": entry.principal,
                "permissionType": entry.permission.shown,
                "operation": entry.operation.shown,
                "host": entry.host,
            }
            for entry in sorted(entries, key=lambda entry: (entry.principal, entry.operation, entry.host))
        ]
        return to_json({"version": 1, "acls": acls})

    @classmethod
    def decode(cls, pattern: ResourcePattern, content: bytes | None) -> frozenset[AclEntry]:
        if not content:
            return frozenset()

        def read(fields: dict[str, Any]) -> frozenset[AclEntry]:
            if integer(fields["version"]) != 1:
                raise ValueError(f"unknown version {fields['version']}")
            return frozenset(
                AclEntry(
                    str(KafkaPrincipal.parse(text(acl["principal"]))),
                    text(acl["host"]),
                    _OPERATIONS[text(acl["operation"])],
                    _PERMISSIONS[text(acl["permissionType"])],
                )
                for acl in fields["acls"]
            )

        return decoded(cls.path(pattern), content, read)


class AclChanges:
    """Sequential nodes that name a pattern whose ACLs changed; literal ones below the first root."""

    roots: dict[PatternType, str] = {  # noqa: RUF012
        PatternType.LITERAL: "/kafka-acl-changes",
        PatternType.PREFIXED: "/kafka-acl-extended-changes",
    }
    kept_ms = 15 * 60 * 1000

    @classmethod
    def sequence_path(cls, pattern_type: PatternType) -> str:
        return f"{cls.roots[pattern_type]}/acl_changes_"

    @staticmethod
    def encode(pattern: ResourcePattern) -> bytes:
        if pattern.pattern is PatternType.LITERAL:
            return f"{pattern.type.name}:{pattern.name}".encode()
        return to_json(
            {
                "version": 1,
                "resourceType": pattern.type.name,
                "name": pattern.name,
                "patternType": pattern.pattern.name,
            }
        )

    @classmethod
    def decode(cls, path: str, content: bytes | None) -> ResourcePattern:
        def read(fields: dict[str, Any]) -> ResourcePattern:
            if integer(fields["version"]) > 1:
                raise ValueError(f"unknown version {fields['version']}")
            return _pattern(text(fields["resourceType"]), text(fields["name"]), text(fields["patternType"]))

        if not path.startswith(f"{cls.roots[PatternType.LITERAL]}/"):
            return decoded(path, content, read)
        try:
            kind, _, name = (content or b"").decode().partition(":")
            return _pattern(kind, name, PatternType.LITERAL.name)
        except ValueError as error:
            raise CorruptZnode(path, content, str(error)) from error


def _pattern(kind: str, name: str, pattern_type: str) -> ResourcePattern:
    try:
        pattern = ResourcePattern(ResourceType[kind.upper()], name, PatternType[pattern_type.upper()])
    except KeyError as error:
        raise ValueError(f"unknown word {error}") from None
    if pattern.type not in RESOURCE_TYPES or pattern.pattern not in PATTERN_TYPES or not name:
        raise ValueError("not a resource pattern")
    return pattern


ACL_ROOTS = tuple(
    path
    for pattern_type in PATTERN_TYPES
    for path in (
        AclChanges.roots[pattern_type],
        *(ResourceAcls.parent(pattern_type, kind) for kind in RESOURCE_TYPES),
    )
)
"""Nodes that are there, empty, from an authorizer's first start on."""

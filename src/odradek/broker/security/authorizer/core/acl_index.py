"""Decisions from ACLs: deny before allow, implied operations, literal, wildcard and prefixed patterns. Pure.

    super user                                 allowed
    a node of ACLs that can't be read covers   denied
    no ACL covers the resource                 as `allow.everyone.if.no.acl.found` says
    a DENY entry matches                       denied
    an ALLOW entry matches, or implies it      allowed
    else                                       denied

An entry matches by principal (or `User:*`), host (or `*`) and operation (or ALL). The index is immutable: a change of
ACLs makes a new one.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from odradek.model.acls import (
    IMPLYING,
    WILDCARD,
    WILDCARD_PRINCIPAL,
    AclEntry,
    AclOperation,
    PatternType,
    PermissionType,
    ResourcePattern,
    ResourceType,
    canonical_host,
)

_ALLOW, _DENY = PermissionType.ALLOW, PermissionType.DENY
Acls = Mapping[ResourcePattern, frozenset[AclEntry] | None]
"""ACLs by pattern; None: there are some, and they can't be read."""
_Keys = frozenset[tuple[str, str, AclOperation, PermissionType]]
_NO_KEYS: _Keys = frozenset()


class AclIndex:
    def __init__(self, acls: Acls, *, allow_if_no_acl_found: bool = False) -> None:
        self._allow_if_no_acl_found = allow_if_no_acl_found
        self._keys: dict[ResourcePattern, _Keys | None] = {}
        self._prefix_lengths: dict[ResourceType, Counter[int]] = {}
        self._change(acls)

    def changed(self, acls: Acls) -> "AclIndex":
        """An index in which these patterns have these ACLs, without the work that the other patterns made."""
        index = AclIndex({}, allow_if_no_acl_found=self._allow_if_no_acl_found)
        index._keys = self._keys.copy()
        index._prefix_lengths = {kind: lengths.copy() for kind, lengths in self._prefix_lengths.items()}
        index._change(acls)
        return index

    def _change(self, acls: Acls) -> None:
        for pattern, entries in acls.items():
            self._count(pattern, -1 if pattern in self._keys else 0)
            self._keys.pop(pattern, None)
            if entries is None or entries:
                self._keys[pattern] = None if entries is None else frozenset(map(_key, entries))
                self._count(pattern, 1)

    def _count(self, pattern: ResourcePattern, change: int) -> None:
        if change and pattern.pattern is PatternType.PREFIXED:
            lengths = self._prefix_lengths.setdefault(pattern.type, Counter())
            lengths[len(pattern.name)] += change
            if not lengths[len(pattern.name)]:
                del lengths[len(pattern.name)]

    def allows(self, principal: str, host: str, operation: AclOperation, kind: ResourceType, name: str) -> bool:
        found: list[_Keys] = []
        for pattern in self._covering(kind, name):
            keys = self._keys.get(pattern, _NO_KEYS)
            if keys is None:
                return False
            if keys:
                found.append(keys)
        if not found:
            return self._allow_if_no_acl_found
        denying = _matching(principal, host, (operation,), _DENY)
        allowing = _matching(principal, host, IMPLYING.get(operation, (operation,)), _ALLOW)
        return all(map(denying.isdisjoint, found)) and not all(map(allowing.isdisjoint, found))

    def allows_any(self, principal: str, host: str, operation: AclOperation, kind: ResourceType) -> bool:
        """Decide whether any name of the type is one to which the principal may do it."""
        every = ResourcePattern(kind, WILDCARD)
        denied = self._patterns_with(_matching(principal, host, (operation,), _DENY), kind)
        denied |= {pattern for pattern, keys in self._keys.items() if keys is None and pattern.type is kind}
        if every in denied:
            return False
        if self._allow_if_no_acl_found:
            return True
        prefixes = [pattern.name for pattern in denied if pattern.pattern is PatternType.PREFIXED]
        return any(
            pattern == every or (pattern not in denied and not pattern.name.startswith(tuple(prefixes)))
            for pattern in self._patterns_with(_matching(principal, host, (operation,), _ALLOW), kind)
        )

    def _covering(self, kind: ResourceType, name: str) -> Iterator[ResourcePattern]:
        yield ResourcePattern(kind, name)
        yield ResourcePattern(kind, WILDCARD)
        for length in self._prefix_lengths.get(kind, ()):
            if length <= len(name):
                yield ResourcePattern(kind, name[:length], PatternType.PREFIXED)

    def _patterns_with(self, wanted: _Keys, kind: ResourceType) -> set[ResourcePattern]:
        return {
            pattern
            for pattern, keys in self._keys.items()
            if pattern.type is kind and not wanted.isdisjoint(keys or ())
        }


def _key(entry: AclEntry) -> tuple[str, str, AclOperation, PermissionType]:
    return entry.principal, canonical_host(entry.host), entry.operation, entry.permission


def _matching(principal: str, host: str, operations: Iterable[AclOperation], permission: PermissionType) -> _Keys:
    return frozenset(
        (who, where, operation, permission)
        for who in (principal, WILDCARD_PRINCIPAL)
        for where in (canonical_host(host), WILDCARD)
        for operation in (*operations, AclOperation.ALL)
    )

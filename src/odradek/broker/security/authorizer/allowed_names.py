"""Memory of the authorizer's decisions for one connection: a request that repeats an action costs a set lookup.

It has allowed actions only, and ends with the ACLs from which they were decided, and with the connection's principal.
"""

from collections.abc import Iterable

from odradek.broker.security.principal import KafkaPrincipal
from odradek.model.acls import AclOperation, ResourceType

NAMES_MAX = 1000
"""Remembered names of one action; when there are more, all are decided anew."""


class AllowedNames(dict[int, set[str]]):
    """Names of resources, by `action`."""

    __slots__ = ("principal", "version")

    def __init__(self, version: int, principal: KafkaPrincipal) -> None:
        super().__init__()
        self.version = version
        """Version of the ACLs, read before the first decision was made."""
        self.principal = principal

    def __missing__(self, action: int) -> set[str]:
        names = self[action] = set()
        return names


def action(operation: AclOperation, kind: ResourceType) -> int:
    """An operation on resources of a type, as a number: enum members have a hash function in Python."""
    return operation._value_ << 8 | kind._value_


def remember(names: set[str], allowed: Iterable[str]) -> None:
    for name in allowed:
        if len(names) >= NAMES_MAX:
            names.clear()
        names.add(name)

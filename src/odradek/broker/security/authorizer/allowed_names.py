"""Memory of the authorizer's decisions for one connection: a request that repeats an action costs a set lookup.

It has allowed actions only, and ends with the ACLs from which they were decided, and with the connection's principal.
"""

from collections.abc import Iterable

from odradek.broker.security.principal import KafkaPrincipal
from odradek.model.acls import AclOperation, ResourceType

NAMES_MAX = 1000
"""Remembered names of one action; when there are more, all are decided anew."""


class AllowedNames:
    __slots__ = ("_by_action", "principal", "version")

    def __init__(self, version: int, principal: KafkaPrincipal) -> None:
        self.version = version
        """Version of the ACLs, read before the first decision was made."""
        self.principal = principal
        self._by_action: dict[int, set[str]] = {}

    def of(self, operation: AclOperation, kind: ResourceType) -> set[str]:
        """Names of resources of the type to which the operation was allowed."""
        action = operation._value_ << 8 | kind._value_  # enum members have a hash function in Python
        names = self._by_action.get(action)
        if names is None:
            names = self._by_action[action] = set()
        return names


def remember(names: set[str], allowed: Iterable[str]) -> None:
    for name in allowed:
        if len(names) >= NAMES_MAX:
            names.clear()
        names.add(name)

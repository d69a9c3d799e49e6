"""Principals: the identity that a connection has after authentication."""

from dataclasses import field

from odradek.base.value_classes import dataclass

USER_TYPE = "User"


@dataclass(frozen=True, slots=True)
class KafkaPrincipal:
    """Type and name, written `User:alice`. Both are case-sensitive, as in Kafka."""

    type: str
    name: str
    token_authenticated: bool = field(default=False, compare=False)
    """Authenticated by a delegation token: such a principal can't create or renew tokens."""

    def __str__(self) -> str:
        return f"{self.type}:{self.name}"

    @classmethod
    def parse(cls, text: str) -> "KafkaPrincipal":
        """`TYPE:NAME`, of which the name may have colons and may be empty. ValueError for anything else."""
        kind, colon, name = text.partition(":")
        if not colon or not kind:
            raise ValueError(f"expected a string in format principalType:principalName but got {text}")
        return cls(kind, name)


ANONYMOUS = KafkaPrincipal(USER_TYPE, "ANONYMOUS")
"""The principal of a connection without authentication."""

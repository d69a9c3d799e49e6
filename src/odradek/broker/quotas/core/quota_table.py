"""Table of quotas for users, clients and pairs of them, and the choice of the one that applies. Pure.

Of all that could hold for a client, the first of these does:

    user and client-id        /config/users/U/clients/C
    user, any client-id       /config/users/U/clients/<default>
    user                      /config/users/U
    any user, client-id       /config/users/<default>/clients/C
    any user, any client-id   /config/users/<default>/clients/<default>
    any user                  /config/users/<default>
    client-id                 /config/clients/C
    any client-id             /config/clients/<default>

A limit for pairs is each pair's own, one for users is shared by a user's clients, one for client-ids by all its users.
Names are kept as znodes spell them, so that a user whose name is `<default>` is another one.
"""

from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import quote, unquote

DEFAULT = "<default>"
_CLIENTS = "/clients/"


class QuotaEntity(NamedTuple):
    """User and client id that are charged. An empty name: the limit ignores it."""

    user: str
    client_id: str


class Limit(NamedTuple):
    entity: QuotaEntity
    rate: float


def sanitized(name: str) -> str:
    """The name encoded for a znode's path, as Kafka's Sanitizer does."""
    return quote(name, safe="~")


def is_nameable(name: str) -> bool:
    """Return whether a znode can have the encoded name: the encoding leaves dots, and ZooKeeper refuses these two."""
    return name not in (".", "..")


def desanitized(name: str) -> str:
    return unquote(name)


class QuotaTable:
    """The limits of one kind, by (user, client-id) as znodes spell them; an empty name where the entity has no such
    part."""

    def __init__(self, limits: Mapping[tuple[str, str], float]) -> None:
        self._limits = dict(limits)

    def __bool__(self) -> bool:
        return bool(self._limits)

    def of(self, user: str, client_id: str) -> Limit | None:
        named_user, named_client = sanitized(user), sanitized(client_id)
        both, by_user, by_client = QuotaEntity(user, client_id), QuotaEntity(user, ""), QuotaEntity("", client_id)
        for entity, znode_names in (
            (both, (named_user, named_client)),
            (both, (named_user, DEFAULT)),
            (by_user, (named_user, "")),
            (both, (DEFAULT, named_client)),
            (both, (DEFAULT, DEFAULT)),
            (by_user, (DEFAULT, "")),
            (by_client, ("", named_client)),
            (by_client, ("", DEFAULT)),
        ):
            if (rate := self._limits.get(znode_names)) is not None:
                return Limit(entity, rate)
        return None


def read_table(
    key: str, users: Mapping[str, Mapping[str, str]], clients: Mapping[str, Mapping[str, str]]
) -> tuple[QuotaTable, list[str]]:
    """Return the table of one kind of quota, and the entities with invalid values."""
    limits: dict[tuple[str, str], float] = {}
    faults = []
    entities = {entity_of_user_node(name): config for name, config in users.items()}
    entities |= {("", name): config for name, config in clients.items()}
    for entity, config in entities.items():
        if (text := config.get(key)) is None:
            continue
        try:
            limits[entity] = rate_of(text)
        except ValueError:
            faults.append(f"{key} of {'/'.join(entity)} is not a rate: {text}")
    return QuotaTable(limits), faults


def entity_of_user_node(name: str) -> tuple[str, str]:
    """The name below /config/users may be a path: USER/clients/CLIENT."""
    user, _, client_id = name.partition(_CLIENTS)
    return user, client_id


def rate_of(text: str) -> float:
    rate = float(text)
    if not 0 <= rate < float("inf"):
        raise ValueError(text)
    return rate

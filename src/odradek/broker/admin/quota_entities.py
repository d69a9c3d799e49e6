"""Entities of quotas: a user, a client id, both, or an address; each by name, or the default of its kind."""

import socket
from collections.abc import Iterable, Mapping

from odradek.base.config.definition import format_value
from odradek.base.errors import ErrorCode, KafkaError
from odradek.base.value_classes import dataclass
from odradek.broker.quotas.core.quota_table import (
    DEFAULT,
    desanitized,
    entity_of_user_node,
    is_nameable,
    rate_of,
    sanitized,
)
from odradek.broker.zk.znodes import EntityConfig

USER, CLIENT_ID, IP = "user", "client-id", "ip"
KINDS = (USER, CLIENT_ID, IP)

Entity = Mapping[str, str | None]
"""Name of each kind (user, client-id, ip) of a quota entity; None: the default."""

_OF_CLIENTS = {
    "producer_byte_rate": 64,
    "consumer_byte_rate": 64,
    "request_percentage": None,
    "controller_mutation_rate": None,
}
_OF_ADDRESSES = {"connection_creation_rate": 32}
"""Number of bits of each quota's whole number; None: fractions are valid."""


@dataclass(frozen=True, slots=True)
class QuotaNode:
    """Znode of an entity's quotas, and the quotas that it has."""

    entity_type: str
    name: str
    bits: Mapping[str, int | None]


def node_of(entity: Entity) -> QuotaNode:
    """Return the znode of an entity. KafkaError INVALID_REQUEST for an impossible entity."""
    if not entity:
        raise _invalid("Invalid empty client quota entity")
    for kind, name in entity.items():
        if kind not in KINDS:
            raise _invalid(f"Unhandled client quota entity type: {kind}")
        if name == "":
            raise _invalid(f"Empty {kind} not supported")
        if name is not None and not is_nameable(name):
            raise _invalid(f"A {kind} can't be named {name}")
    names = {kind: DEFAULT if name is None else sanitized(name) for kind, name in entity.items()}
    if IP in names:
        if len(names) > 1:
            raise _invalid("An address can't be combined with a user or a client id in one quota entity.")
        _check_address(entity[IP])
        return QuotaNode("ips", names[IP], _OF_ADDRESSES)
    if USER not in names:
        return QuotaNode("clients", names[CLIENT_ID], _OF_CLIENTS)
    user = names[USER]
    name = EntityConfig.user_and_client(user, names[CLIENT_ID]) if CLIENT_ID in names else user
    return QuotaNode("users", name, _OF_CLIENTS)


def entity_of(entity_type: str, name: str) -> dict[str, str | None]:
    match entity_type:
        case "ips":
            parts = {IP: name}
        case "clients":
            parts = {CLIENT_ID: name}
        case _:
            user, client_id = entity_of_user_node(name)
            parts = {USER: user, CLIENT_ID: client_id} if client_id else {USER: user}
    return {kind: None if part == DEFAULT else desanitized(part) for kind, part in parts.items()}


def quotas_in(entity_type: str, config: Mapping[str, str]) -> dict[str, float]:
    """Return the quotas among an entity's configs, which may be credentials too."""
    quotas = {}
    for key in _OF_ADDRESSES if entity_type == "ips" else _OF_CLIENTS:
        try:
            quotas[key] = rate_of(config[key])
        except (KeyError, ValueError):
            continue
    return quotas


def quota_text(key: str, value: float, bits: Mapping[str, int | None]) -> str:
    """Text of the value in ZooKeeper."""
    if key not in bits:
        raise _invalid(f"Invalid configuration key {key}")
    if not 0 <= value < float("inf"):
        raise _invalid(f"{key} must be 0 or more, but it is {value}")
    most = bits[key]
    if most is None:
        return format_value(float(value)) or ""
    whole = int(value + 1e-6)
    if abs(whole - value) > 1e-6 or whole >= 1 << most - 1:
        raise _invalid(f"{key} must be a whole number of {most} bits, but it is {value}")
    return str(whole)


def addresses_of(names: Iterable[str]) -> dict[str, list[str]]:
    """Return the addresses of the names; none for an unknown host."""
    return {name: _resolved(name) for name in names}


def _check_address(name: str | None) -> None:
    if name is not None and not _resolved(name):
        raise _invalid(f"{name} is not a valid IP or resolvable host.")


def _resolved(name: str) -> list[str]:
    try:
        found = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return []
    return sorted({str(address[4][0]) for address in found})


def _invalid(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, message)

"""Listeners as values, from `listeners`, `advertised.listeners` and the protocol map."""

import re
from collections.abc import Mapping, Sequence
from enum import IntEnum

from odradek.base.errors import ConfigError
from odradek.base.value_classes import dataclass


class SecurityProtocol(IntEnum):
    """Numbers fixed by the Kafka protocol."""

    PLAINTEXT = 0
    SSL = 1
    SASL_PLAINTEXT = 2
    SASL_SSL = 3


@dataclass(frozen=True, slots=True)
class Listener:
    """Address of a listener, bound or advertised. An empty host is every interface, or the machine's own name."""

    name: str
    security_protocol: SecurityProtocol
    host: str
    port: int


_ENDPOINT = r"(.*)://\[?([0-9a-zA-Z\-%._:]*)\]?:(-?[0-9]{1,10})"


def split_list(text: str) -> list[str]:
    return [part for part in re.split(r"\s*,\s*", text.strip()) if part]


def split_map(name: str, text: str) -> dict[str, str]:
    """`a:1,b:2` as a mapping; the last colon separates, so that IPv6 addresses can be keys."""
    pairs: dict[str, str] = {}
    for part in split_list(text):
        key, colon, value = part.rpartition(":")
        if not colon:
            raise ConfigError(f"Invalid value {text} for configuration {name}: {part!r} is not a key:value pair")
        pairs[key.strip()] = value.strip()
    return pairs


def parse_security_protocol(name: str, text: str) -> SecurityProtocol:
    try:
        return SecurityProtocol[text.upper()]
    except KeyError:
        raise ConfigError(f"Invalid security protocol {text} in {name}") from None


def parse_protocol_map(text: str) -> dict[str, SecurityProtocol]:
    """Listener name, in upper case, to its protocol."""
    name = "listener.security.protocol.map"
    return {listener.upper(): parse_security_protocol(name, p) for listener, p in split_map(name, text).items()}


def parse_listeners(name: str, text: str, protocols: Mapping[str, SecurityProtocol]) -> tuple[Listener, ...]:
    """The listeners of `text`, with names that differ; `name` is the key it stands under."""
    listeners = tuple(_parse_listener(name, endpoint, protocols) for endpoint in split_list(text))
    if len({listener.name for listener in listeners}) < len(listeners):
        raise ConfigError(f"Invalid value {text} for configuration {name}: each listener must have a different name")
    return listeners


def _parse_listener(name: str, endpoint: str, protocols: Mapping[str, SecurityProtocol]) -> Listener:
    found = re.fullmatch(_ENDPOINT, endpoint)
    if not found:
        raise ConfigError(f"Invalid value {endpoint} for configuration {name}: expected NAME://host:port")
    listener_name, host, port = found[1].upper(), found[2], int(found[3])
    if not -1 <= port <= 65535:
        raise ConfigError(f"Invalid value {endpoint} for configuration {name}: port {port} is not between 0 and 65535")
    if listener_name not in protocols:
        raise ConfigError(
            f"Invalid value {endpoint} for configuration {name}: "
            f"no security protocol is defined for listener {listener_name} in listener.security.protocol.map"
        )
    return Listener(listener_name, protocols[listener_name], host, port)


def check_distinct_ports(text: str, listeners: Sequence[Listener]) -> None:
    """No two listeners on one port, except one on an IPv4 and one on an IPv6 address. Port 0 is any free port."""
    by_port: dict[int, list[Listener]] = {}
    for listener in listeners:
        if listener.port != 0:
            by_port.setdefault(listener.port, []).append(listener)
    for port, sharing in by_port.items():
        if len(sharing) > 1 and sorted(_address_family(listener.host) for listener in sharing) != [4, 6]:
            raise ConfigError(
                f"Invalid value {text} for configuration listeners: several listeners on port {port}; that works only "
                "for two of them, one on an IPv4 address and one on an IPv6 address"
            )


def _address_family(host: str) -> int:
    """4, 6, or 0 for a name."""
    from ipaddress import ip_address  # takes three milliseconds, and few brokers need it

    try:
        return ip_address(host).version
    except ValueError:
        return 0

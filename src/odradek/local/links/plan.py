"""Ports of the relay's links, and the broker settings that lead there. Pure, but for reading and writing the file.

    broker 1 ──▶ zookeeper.connect ──▶ relay ──▶ ZooKeeper
    broker 1 ──▶ LINK listener of 2, as it is advertised ──▶ relay ──▶ LINK listener of 2

Clients use the other listeners and meet no relay.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

from odradek.base.value_classes import dataclass

LISTENER = "LINK"
_HOST = "127.0.0.1"
_PROTOCOLS = "listener.security.protocol.map"
_PROTOCOLS_DEFAULT = "PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL"
_INTER_BROKER = "inter.broker.listener.name"


@dataclass(frozen=True, slots=True)
class Link:
    """One link: the port that the relay listens on, and the address that it forwards to."""

    port: int
    target: str


@dataclass(frozen=True, slots=True)
class Plan:
    zookeeper: str
    """The connect string of the ensemble itself."""
    servers: tuple[Link, ...]
    """Its servers, in their order."""
    brokers: Mapping[int, Link]

    def save(self, file: Path) -> None:
        file.write_text(json.dumps(asdict(self), indent=1))

    def relayed_zookeeper(self) -> str:
        _, slash, root = self.zookeeper.partition("/")
        return ",".join(f"{_HOST}:{link.port}" for link in self.servers) + slash + root

    def linked(self, broker: int, properties: Mapping[str, str]) -> dict[str, str]:
        """The settings of a broker that is reached by others, and reaches them, through the relay."""
        link = self.brokers[broker]
        advertised = properties.get("advertised.listeners", properties["listeners"])
        return {
            **properties,
            "zookeeper.connect": self.relayed_zookeeper(),
            "listeners": f"{properties['listeners']},{LISTENER}://{link.target}",
            "advertised.listeners": f"{advertised},{LISTENER}://{_HOST}:{link.port}",
            _PROTOCOLS: f"{properties.get(_PROTOCOLS, _PROTOCOLS_DEFAULT)},{LISTENER}:PLAINTEXT",
            _INTER_BROKER: LISTENER,
        }


def is_linked(properties: Mapping[str, str]) -> bool:
    return properties.get(_INTER_BROKER) == LISTENER


def unlinked(properties: Mapping[str, str], zookeeper: str) -> dict[str, str]:
    """The settings as they were before `linked`."""
    if not is_linked(properties):
        return dict(properties)
    plain = {key: value for key, value in properties.items() if key != _INTER_BROKER}
    for key in ("listeners", "advertised.listeners", _PROTOCOLS):
        plain[key] = ",".join(item for item in plain[key].split(",") if not item.startswith(f"{LISTENER}:"))
    if plain["advertised.listeners"] == plain["listeners"]:
        del plain["advertised.listeners"]
    if plain[_PROTOCOLS] == _PROTOCOLS_DEFAULT:
        del plain[_PROTOCOLS]
    return {**plain, "zookeeper.connect": zookeeper}


def read_plan(file: Path) -> Plan:
    content = json.loads(file.read_text())
    return Plan(
        content["zookeeper"],
        tuple(Link(**link) for link in content["servers"]),
        {int(broker): Link(**link) for broker, link in content["brokers"].items()},
    )

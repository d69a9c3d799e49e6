"""The settings that throttle copying, as Kafka's kafka-reassign-partitions makes them. Pure.

Each broker that sends or receives gets two rates; each topic names the replicas to which they apply, as
`partition:broker`: for brokers that have the partition (`leader.…`) and for brokers that get it (`follower.…`).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from odradek.apps.reassign.moves import Move

LEADER_RATE = "leader.replication.throttled.rate"
FOLLOWER_RATE = "follower.replication.throttled.rate"
LEADER_REPLICAS = "leader.replication.throttled.replicas"
FOLLOWER_REPLICAS = "follower.replication.throttled.replicas"
RATES = (LEADER_RATE, FOLLOWER_RATE)
REPLICAS = (LEADER_REPLICAS, FOLLOWER_REPLICAS)


@dataclass(frozen=True, slots=True, order=True)
class Entity:
    """Owner of a setting: a topic or a broker."""

    kind: str
    name: str

    @property
    def throttle_keys(self) -> tuple[str, str]:
        return RATES if self.kind == BROKER else REPLICAS

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


TOPIC, BROKER = "topic", "broker"
Settings: TypeAlias = Mapping[Entity, Mapping[str, str | None]]
"""None: not set."""


def throttles_for(moves: Iterable[Move], rate_bytes: int) -> dict[Entity, dict[str, str | None]]:
    """Return every setting that throttles the moves; empty if nothing is copied."""
    leaders: dict[str, set[str]] = {}
    followers: dict[str, set[str]] = {}
    brokers: set[int] = set()
    for move in moves:
        topic, partition = move.partition
        if not move.adding:
            continue
        leaders.setdefault(topic, set()).update(f"{partition}:{broker}" for broker in move.before)
        followers.setdefault(topic, set()).update(f"{partition}:{broker}" for broker in move.adding)
        brokers.update(move.before, move.adding)
    settings: dict[Entity, dict[str, str | None]] = {
        Entity(TOPIC, topic): {
            LEADER_REPLICAS: ",".join(sorted(leaders[topic])),
            FOLLOWER_REPLICAS: ",".join(sorted(followers[topic])),
        }
        for topic in leaders
    }
    rates: dict[str, str | None] = dict.fromkeys(RATES, str(rate_bytes))
    return settings | {Entity(BROKER, str(broker)): dict(rates) for broker in brokers}

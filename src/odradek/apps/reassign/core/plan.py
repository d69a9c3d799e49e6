"""A plan: the replicas of each partition. In files it is the JSON that Kafka's kafka-reassign-partitions reads and
writes.

{"version": 1, "partitions": [{"topic": "orders", "partition": 0, "replicas": [1, 2]}]}
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from odradek.model.topology import TopicPartition

ANY_DIRECTORY = "any"


class PlanError(Exception):
    """A plan can't be made, or read. The message has the fault and advice."""


@dataclass(frozen=True, slots=True)
class Plan:
    targets: Mapping[TopicPartition, tuple[int, ...]]
    """The preferred leader first."""

    def as_json(self) -> dict[str, Any]:
        return {
            "version": 1,
            "partitions": [
                {"topic": tp.topic, "partition": tp.partition, "replicas": list(replicas)}
                for tp, replicas in sorted(self.targets.items())
            ],
        }

    @classmethod
    def from_text(cls, text: str) -> "Plan":
        """Parse and check a plan; PlanError describes the fault."""
        try:
            content = json.loads(text)
        except ValueError as error:
            raise PlanError(f"not JSON: {error}") from None
        if not isinstance(content, dict) or content.get("version", 1) != 1:
            raise PlanError('not a plan of version 1, as in {"version": 1, "partitions": [...]}')
        entries = content.get("partitions")
        if not isinstance(entries, list) or not entries:
            raise PlanError('it has no list of "partitions"')
        targets: dict[TopicPartition, tuple[int, ...]] = {}
        for entry in entries:
            tp, replicas = _entry(entry)
            if tp in targets:
                raise PlanError(f"{tp} is named twice")
            targets[tp] = replicas
        return cls(targets)


def _entry(entry: Any) -> tuple[TopicPartition, tuple[int, ...]]:
    topic, partition, replicas = (
        (entry.get("topic"), entry.get("partition"), entry.get("replicas")) if isinstance(entry, dict) else [None] * 3
    )
    if not isinstance(topic, str) or type(partition) is not int or partition < 0:
        raise PlanError(f'{json.dumps(entry)} has no "topic" and "partition"')
    tp = TopicPartition(topic, partition)
    if not isinstance(replicas, list) or not replicas or not all(type(b) is int and b >= 0 for b in replicas):
        raise PlanError(f"{tp} has no list of replicas")
    if len(set(replicas)) < len(replicas):
        raise PlanError(f"{tp} has two replicas on one broker: {replicas}")
    directories = entry.get("log_dirs", [])
    if any(directory != ANY_DIRECTORY for directory in directories):
        raise PlanError(f"{tp} names log directories, which this command doesn't choose; use kafka-reassign-partitions")
    return tp, tuple(replicas)

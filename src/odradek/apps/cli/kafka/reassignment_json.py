"""The JSON that kafka-reassign-partitions reads and prints: plans of replicas, and lists of topics."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from odradek.apps.cli.kafka.tool import ToolError
from odradek.apps.reassign.core.plan import ANY_DIRECTORY
from odradek.model.topology import PartitionReplica, TopicPartition


@dataclass(frozen=True, slots=True)
class Plan:
    replicas: dict[TopicPartition, list[int]]
    directories: dict[PartitionReplica, str]  # of replicas for which one is named

    @property
    def topics(self) -> list[str]:
        return sorted({tp.topic for tp in self.replicas})


def read_plan(path: Path) -> Plan:
    """Read a plan, and check all of it before any change."""
    plan = Plan({}, {})
    for entry in _entries(path, "partitions"):
        try:
            tp = TopicPartition(entry["topic"], int(entry["partition"]))
            replicas = [int(broker) for broker in entry["replicas"]]
            directories = entry.get("log_dirs", [ANY_DIRECTORY] * len(replicas))
        except (KeyError, TypeError, ValueError):
            raise ToolError(f'Error: {json.dumps(entry)} needs "topic", "partition" and "replicas"') from None
        if not replicas:
            raise ToolError("Error: Partition replica list cannot be empty")
        if tp in plan.replicas:
            raise ToolError(f"Error: Partition reassignment contains duplicate topic partitions: {tp}")
        if twice := sorted({broker for broker in replicas if replicas.count(broker) > 1}):
            raise ToolError(
                "Error: Partition replica lists may not contain duplicate entries: "
                f"{tp} contains multiple entries for {','.join(map(str, twice))}"
            )
        if len(directories) != len(replicas):
            raise ToolError(
                f"Error: Size of replicas list {replicas} is different from size of log dirs list "
                f"[{', '.join(directories)}] for partition {tp}"
            )
        plan.replicas[tp] = replicas
        for broker, directory in zip(replicas, directories, strict=True):
            if directory != ANY_DIRECTORY:
                plan.directories[PartitionReplica(tp, broker)] = directory
    if not plan.replicas:
        raise ToolError("Error: Partition reassignment list cannot be empty")
    return plan


def read_topics(path: Path) -> list[str]:
    try:
        topics = [str(entry["topic"]) for entry in _entries(path, "topics")]
    except KeyError:
        raise ToolError('Error: every one of "topics" needs a "topic"') from None
    if twice := sorted({topic for topic in topics if topics.count(topic) > 1}):
        raise ToolError(f"Error: List of topics to reassign contains duplicate entries: [{', '.join(twice)}]")
    return topics


def as_json(assignment: Mapping[TopicPartition, Sequence[int]]) -> str:
    partitions = [
        {
            "topic": tp.topic,
            "partition": tp.partition,
            "replicas": list(replicas),
            "log_dirs": [ANY_DIRECTORY] * len(replicas),
        }
        for tp, replicas in sorted(assignment.items())
    ]
    return json.dumps({"version": 1, "partitions": partitions}, separators=(",", ":"))


def _entries(path: Path, field: str) -> list[dict[str, Any]]:
    try:
        content = json.loads(path.read_text())
    except OSError as error:
        raise ToolError(f"Error: {path} can't be read: {error.strerror}") from None
    except ValueError as error:
        raise ToolError(f"Error: {path} is not JSON: {error}") from None
    if not isinstance(content, dict) or content.get("version", 1) != 1:
        raise ToolError(f"Error: {path} is not a JSON object of version 1")
    entries = content.get(field, [])
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise ToolError(f'Error: "{field}" in {path} is not a list of objects')
    return entries

"""The JSON files that Kafka's tools name partitions in: for an election, and for a move of replicas."""

import json
from pathlib import Path
from typing import Any

from odradek.cli.usage import WrongUsage
from odradek.model.topology import TopicPartition


def read_partitions(path: Path, option: str) -> list[TopicPartition]:
    """`{"partitions": [{"topic": "orders", "partition": 0}]}`"""
    return [_named(entry, option) for entry in _entries(path, option)]


def read_assignments(path: Path, option: str) -> dict[TopicPartition, list[int]]:
    """`{"version": 1, "partitions": [{"topic": "orders", "partition": 0, "replicas": [1, 2]}]}`"""
    wanted: dict[TopicPartition, list[int]] = {}
    for entry in _entries(path, option):
        tp, replicas = _named(entry, option), entry.get("replicas")
        if not isinstance(replicas, list) or not all(type(broker) is int for broker in replicas):
            raise WrongUsage(f"{tp} has no list of replicas", option)
        if tp in wanted:
            raise WrongUsage(f"{tp} is named twice", option)
        wanted[tp] = replicas
    return wanted


def _entries(path: Path, option: str) -> list[dict[str, Any]]:
    try:
        content = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise WrongUsage(f"{path} can't be read as JSON: {error}", option) from None
    entries = content.get("partitions") if isinstance(content, dict) else None
    if not isinstance(entries, list) or not entries or not all(isinstance(entry, dict) for entry in entries):
        raise WrongUsage(f'{path} has no list of "partitions"', option)
    return entries


def _named(entry: dict[str, Any], option: str) -> TopicPartition:
    topic, partition = entry.get("topic"), entry.get("partition")
    if not isinstance(topic, str) or type(partition) is not int:
        raise WrongUsage(f'{json.dumps(entry)} has no "topic" and "partition"', option)
    return TopicPartition(topic, partition)

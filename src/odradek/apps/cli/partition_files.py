"""Files of Kafka's tools that name partitions: for an election, for a reassignment, for a group's offsets."""

import csv
import json
from pathlib import Path
from typing import Any

from odradek.apps.cli.usage import WrongUsage
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


def read_plan(path: Path, group: str | None, option: str) -> dict[str, dict[TopicPartition, int]]:
    """A CSV of `topic,partition,offset`, or `group,topic,partition,offset`; the first form is about `group`."""
    plans: dict[str, dict[TopicPartition, int]] = {}
    try:
        with open(path, newline="") as file:
            lines = [(number, line) for number, line in enumerate(csv.reader(file), 1) if line]
    except OSError as error:
        raise WrongUsage(f"{path} can't be read: {error.strerror}", option) from None
    for number, line in lines:
        named = line[0] if len(line) == 4 else group
        try:
            topic, partition, offset = line[-3:] if len(line) == 4 else line
            tp, position = TopicPartition(topic, int(partition)), int(offset)
        except ValueError:
            raise WrongUsage(
                f"{path} line {number} is not topic,partition,offset or group,topic,partition,offset", option
            ) from None
        if named is None:
            raise WrongUsage(f"{path} line {number} names no group, and none is given", option)
        plans.setdefault(named, {})[tp] = position
    if not plans:
        raise WrongUsage(f"{path} is empty", option)
    return plans


def _entries(path: Path, option: str) -> list[dict[str, Any]]:
    try:
        content = json.loads(path.read_text())
    except OSError as error:
        raise WrongUsage(f"{path} can't be read: {error.strerror}", option) from None
    except ValueError as error:
        raise WrongUsage(f"{path} is not JSON: {error}", option) from None
    entries = content.get("partitions") if isinstance(content, dict) else None
    if not isinstance(entries, list) or not entries or not all(isinstance(entry, dict) for entry in entries):
        raise WrongUsage(f'{path} has no list of "partitions"', option)
    return entries


def _named(entry: dict[str, Any], option: str) -> TopicPartition:
    topic, partition = entry.get("topic"), entry.get("partition")
    if not isinstance(topic, str) or type(partition) is not int:
        raise WrongUsage(f'{json.dumps(entry)} has no "topic" and "partition"', option)
    return TopicPartition(topic, partition)

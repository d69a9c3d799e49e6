"""Risks of a plan: disks that fill up, writes that would be refused, fewer copies of records. Pure."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from odradek.apps.reassign.core.view import ClusterView
from odradek.apps.reassign.moves import BrokerForecast, Move
from odradek.model.topology import TopicPartition

DISK_FULL = 0.85
"""The part of a disk above which people should be warned."""


class Severity(StrEnum):
    NOTE = "note"
    WARNING = "warning"
    DANGER = "danger"


@dataclass(frozen=True, slots=True)
class Risk:
    severity: Severity
    text: str


def risks_of(moves: tuple[Move, ...], brokers: tuple[BrokerForecast, ...], view: ClusterView) -> Iterator[Risk]:
    yield from _disk_risks(brokers, view)
    yield from _isr_risks(moves, view)
    yield from _removal_risks(moves, view)
    racks = view.racks
    crowded = [move.partition for move in moves if racks and _shares_rack(move.after, racks)]
    if crowded:
        yield Risk(Severity.NOTE, f"{_some(crowded)}: two replicas in one rack although another has none")


def _disk_risks(brokers: tuple[BrokerForecast, ...], view: ClusterView) -> Iterator[Risk]:
    """Find disks that may become full: replicas are removed last, so old and new ones are on disk together."""
    for broker in brokers:
        known = view.brokers.get(broker.broker)
        if known is None or known.usable_bytes is None or not broker.bytes_in:
            continue
        if broker.bytes_in > known.usable_bytes:
            yield Risk(Severity.DANGER, f"broker {broker.broker} has no room: its disk will be full before the end")
        elif known.total_bytes and known.usable_bytes - broker.bytes_in < (1 - DISK_FULL) * known.total_bytes:
            used = 1 - (known.usable_bytes - broker.bytes_in) / known.total_bytes
            yield Risk(Severity.WARNING, f"the disk of broker {broker.broker} will be {used:.0%} full during the move")


def _isr_risks(moves: tuple[Move, ...], view: ClusterView) -> Iterator[Risk]:
    leaderless = [move.partition for move in moves if move.leader < 0]
    if leaderless:
        yield Risk(Severity.DANGER, f"{_some(leaderless)}: no leader, there is nothing to copy from")
    lagging = [
        move.partition
        for move in moves
        if move.adding and 0 < len(view.partitions[move.partition].isr) < len(move.before)
    ]
    if lagging:
        yield Risk(Severity.WARNING, f"{_some(lagging)}: not fully in sync now, the move adds to the leader's load")
    leaders = [move.partition for move in moves if move.leader not in move.after]
    if leaders:
        yield Risk(Severity.NOTE, f"{_some(leaders)}: the leader changes, clients find the new one by themselves")


def _removal_risks(moves: tuple[Move, ...], view: ClusterView) -> Iterator[Risk]:
    fewer: dict[tuple[int, int], list[TopicPartition]] = defaultdict(list)
    at_min: dict[int, list[TopicPartition]] = defaultdict(list)
    below_min: dict[int, list[TopicPartition]] = defaultdict(list)
    for move in moves:
        before, after = len(move.before), len(move.after)
        min_isr = view.min_isr.get(move.partition.topic, 1)
        if after < before:
            fewer[before, after].append(move.partition)
        if after < min_isr:
            below_min[min_isr].append(move.partition)
        elif after == min_isr > 1 and after != before:
            at_min[min_isr].append(move.partition)
    for min_isr, partitions in below_min.items():
        yield Risk(
            Severity.DANGER,
            f"{_some(partitions)}: fewer replicas than min.insync.replicas={min_isr}, writes with acks=all are refused "
            "from then on",
        )
    for min_isr, partitions in at_min.items():
        yield Risk(
            Severity.WARNING,
            f"{_some(partitions)}: no more replicas than min.insync.replicas={min_isr}; while one of their brokers is "
            "down, in a rolling restart too, writes with acks=all are refused",
        )
    for (before, after), partitions in fewer.items():
        yield Risk(
            Severity.WARNING,
            f"{_some(partitions)}: {after} {'replica' if after == 1 else 'replicas'} instead of {before}, fewer copies "
            "of each record",
        )
    alone = [move.partition for move in moves if len(move.after) == 1]
    if alone:
        yield Risk(
            Severity.WARNING,
            f"{_some(alone)}: one replica; while its broker is down the partition is offline, and if its disk is lost "
            "the records are",
        )


def _shares_rack(replicas: tuple[int, ...], racks: dict[int, str]) -> bool:
    used = {racks[broker] for broker in replicas if broker in racks}
    return len(used) < min(len(replicas), len(set(racks.values())))


def _some(partitions: list[TopicPartition]) -> str:
    shown = ", ".join(map(str, partitions[:3]))
    return shown + (f" and {len(partitions) - 3} more" if len(partitions) > 3 else "")

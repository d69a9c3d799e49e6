"""Forecast of a plan: replicas that are copied and removed, bytes in and out of each broker, time, and risks.

Pure. A replica is copied from the partition's leader. Time follows from a throttle, which limits the bytes that a
broker sends and receives; brokers copy at the same time, so the busiest one decides. The result is a lower bound: new
records have to be copied too.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from odradek.apps.reassign.core.plan import Plan
from odradek.apps.reassign.core.view import ClusterView
from odradek.apps.reassign.moves import BrokerForecast, Move
from odradek.apps.reassign.risks import Risk, Severity, risks_of


@dataclass(frozen=True, slots=True)
class Forecast:
    moves: tuple[Move, ...]
    brokers: tuple[BrokerForecast, ...]
    risks: tuple[Risk, ...]
    copied_bytes: int
    seconds: float | None
    """None without a throttle: it depends on disks and network."""

    @property
    def copied_replicas(self) -> int:
        return sum(len(move.adding) for move in self.moves)

    @property
    def removed_replicas(self) -> int:
        return sum(len(move.removing) for move in self.moves)

    @property
    def freed_bytes(self) -> int:
        return sum(move.freed_bytes for move in self.moves)


def moves_of(plan: Plan, view: ClusterView) -> tuple[Move, ...]:
    return tuple(
        Move(tp, partition.replicas, after, partition.leader, partition.size_bytes)
        for tp, after in sorted(plan.targets.items())
        if (partition := view.partitions.get(tp)) is not None and partition.replicas != after
    )


def foresee(plan: Plan, view: ClusterView, throttle_bytes: int | None) -> Forecast:
    """`throttle_bytes`: a second, for each broker."""
    moves = moves_of(plan, view)
    brokers = tuple(_brokers(moves, view))
    busiest = max((max(broker.bytes_in, broker.bytes_out) for broker in brokers), default=0)
    return Forecast(
        moves,
        brokers,
        tuple(sorted(risks_of(moves, brokers, view), key=lambda risk: -list(Severity).index(risk.severity))),
        sum(move.copied_bytes for move in moves),
        None if throttle_bytes is None else busiest / throttle_bytes,
    )


def _brokers(moves: tuple[Move, ...], view: ClusterView) -> Iterator[BrokerForecast]:
    after = {tp: partition.replicas for tp, partition in view.partitions.items()}
    after |= {move.partition: move.after for move in moves}
    before = {tp: partition.replicas for tp, partition in view.partitions.items()}
    bytes_in: Counter[int] = Counter()
    bytes_out: Counter[int] = Counter()
    bytes_freed: Counter[int] = Counter()
    removed: Counter[int] = Counter()
    for move in moves:
        bytes_out[move.leader] += move.copied_bytes
        for broker in move.adding:
            bytes_in[broker] += move.size_bytes
        for broker in move.removing:
            bytes_freed[broker] += move.size_bytes
            removed[broker] += 1
    held: list[Counter[int]] = [Counter(), Counter()]
    replicas: list[Counter[int]] = [Counter(), Counter()]
    preferred: list[Counter[int]] = [Counter(), Counter()]
    for when, assignment in enumerate((before, after)):
        for tp, brokers in assignment.items():
            preferred[when][brokers[0]] += 1
            for broker in brokers:
                replicas[when][broker] += 1
                held[when][broker] += view.partitions[tp].size_bytes
    for broker in sorted({*view.brokers, *replicas[0], *replicas[1]}):
        known = view.brokers.get(broker)
        yield BrokerForecast(
            broker,
            None if known is None else known.rack,
            bytes_in[broker],
            bytes_out[broker],
            bytes_freed[broker],
            removed[broker],
            held[0][broker],
            held[1][broker],
            replicas[0][broker],
            replicas[1][broker],
            preferred[0][broker],
            preferred[1][broker],
            None if known is None else known.usable_bytes,
        )

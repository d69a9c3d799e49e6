"""What a plan will cost: which replicas are copied, how many bytes in and out of each broker, how long, at what risk.

Pure. A replica is copied from the partition's leader. Time is told for a throttle, which holds back what each broker
sends and what it receives; brokers copy at the same time, so the busiest one decides. That is the least it can take: a
partition that is written to meanwhile has more to copy.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from odradek.model.topology import TopicPartition
from odradek.reassign.plan import Plan
from odradek.reassign.view import ClusterView

DISK_FULL = 0.85
"""The part of a disk above which people should be warned."""


@dataclass(frozen=True, slots=True)
class Move:
    partition: TopicPartition
    before: tuple[int, ...]
    after: tuple[int, ...]
    leader: int
    size_bytes: int

    @property
    def adding(self) -> tuple[int, ...]:
        return tuple(broker for broker in self.after if broker not in self.before)

    @property
    def removing(self) -> tuple[int, ...]:
        return tuple(broker for broker in self.before if broker not in self.after)

    @property
    def copied_bytes(self) -> int:
        return self.size_bytes * len(self.adding)


@dataclass(frozen=True, slots=True)
class BrokerForecast:
    broker: int
    rack: str | None
    bytes_in: int
    bytes_out: int
    held_before: int
    held_after: int
    """Bytes of all replicas, those that don't move too."""
    replicas_before: int
    replicas_after: int
    preferred_before: int
    preferred_after: int
    usable_bytes: int | None


class Gravity(StrEnum):
    NOTE = "note"
    WARNING = "warning"
    DANGER = "danger"


@dataclass(frozen=True, slots=True)
class Risk:
    gravity: Gravity
    text: str


@dataclass(frozen=True, slots=True)
class Forecast:
    moves: tuple[Move, ...]
    brokers: tuple[BrokerForecast, ...]
    risks: tuple[Risk, ...]
    copied_bytes: int
    seconds: float | None
    """None without a throttle: as long as disks and network take."""


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
        tuple(sorted(_risks(moves, brokers, view), key=lambda risk: -list(Gravity).index(risk.gravity))),
        sum(move.copied_bytes for move in moves),
        None if throttle_bytes is None else busiest / throttle_bytes,
    )


def _brokers(moves: tuple[Move, ...], view: ClusterView) -> Iterator[BrokerForecast]:
    after = {tp: partition.replicas for tp, partition in view.partitions.items()}
    after |= {move.partition: move.after for move in moves}
    before = {tp: partition.replicas for tp, partition in view.partitions.items()}
    bytes_in: Counter[int] = Counter()
    bytes_out: Counter[int] = Counter()
    for move in moves:
        bytes_out[move.leader] += move.copied_bytes
        for broker in move.adding:
            bytes_in[broker] += move.size_bytes
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
            held[0][broker],
            held[1][broker],
            replicas[0][broker],
            replicas[1][broker],
            preferred[0][broker],
            preferred[1][broker],
            None if known is None else known.usable_bytes,
        )


# --- risks -------------------------------------------------------------------------------------------------------


def _risks(moves: tuple[Move, ...], brokers: tuple[BrokerForecast, ...], view: ClusterView) -> Iterator[Risk]:
    yield from _disk_risks(brokers, view)
    yield from _isr_risks(moves, view)
    racks = view.racks
    crowded = [move.partition for move in moves if racks and _shares_rack(move.after, racks)]
    if crowded:
        yield Risk(Gravity.NOTE, f"{_some(crowded)} will have two replicas in one rack although another has none")


def _disk_risks(brokers: tuple[BrokerForecast, ...], view: ClusterView) -> Iterator[Risk]:
    """What leaves a broker is deleted last: until then both are there."""
    for broker in brokers:
        known = view.brokers.get(broker.broker)
        if known is None or known.usable_bytes is None or not broker.bytes_in:
            continue
        if broker.bytes_in > known.usable_bytes:
            yield Risk(Gravity.DANGER, f"broker {broker.broker} has no room: its disk will be full before the end")
        elif known.total_bytes and known.usable_bytes - broker.bytes_in < (1 - DISK_FULL) * known.total_bytes:
            used = 1 - (known.usable_bytes - broker.bytes_in) / known.total_bytes
            yield Risk(Gravity.WARNING, f"the disk of broker {broker.broker} will be {used:.0%} full on the way")


def _isr_risks(moves: tuple[Move, ...], view: ClusterView) -> Iterator[Risk]:
    leaderless = [move.partition for move in moves if move.leader < 0]
    if leaderless:
        yield Risk(Gravity.DANGER, f"{_some(leaderless)} has no leader: there is nothing to copy from")
    lagging = [
        move.partition
        for move in moves
        if move.adding and 0 < len(view.partitions[move.partition].isr) < len(move.before)
    ]
    if lagging:
        yield Risk(Gravity.WARNING, f"{_some(lagging)} is not fully in sync now; moving adds to what its leader sends")
    at_min = [move.partition for move in moves if len(move.after) < view.min_isr.get(move.partition.topic, 1)]
    if at_min:
        yield Risk(
            Gravity.DANGER,
            f"{_some(at_min)} will have fewer replicas than min.insync.replicas: acks=all will be refused",
        )
    alone = [move.partition for move in moves if len(move.after) == 1]
    if alone:
        yield Risk(Gravity.WARNING, f"{_some(alone)} will have one replica: whatever its broker loses is lost")
    leaders = [move.partition for move in moves if move.leader not in move.after]
    if leaders:
        yield Risk(
            Gravity.NOTE, f"the leader of {_some(leaders)} changes: clients ask again, which they do by themselves"
        )


def _shares_rack(replicas: tuple[int, ...], racks: dict[int, str]) -> bool:
    used = {racks[broker] for broker in replicas if broker in racks}
    return len(used) < min(len(replicas), len(set(racks.values())))


def _some(partitions: list[TopicPartition]) -> str:
    shown = ", ".join(map(str, partitions[:3]))
    return shown + (f" and {len(partitions) - 3} more" if len(partitions) > 3 else "")

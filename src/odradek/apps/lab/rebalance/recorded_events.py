"""Events of a group's members, with their times, and the figures derived from them. Everything but
`Recorder` is pure.
"""

import threading
import time
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from odradek.apps.legacy.observer import What
from odradek.model.topology import TopicPartition


@dataclass(frozen=True, slots=True)
class MemberEvent:
    at_s: float
    member: str
    what: What
    partitions: frozenset[TopicPartition] = frozenset()
    view: int = 0


@dataclass(frozen=True, slots=True)
class Costs:
    """Requests to ZooKeeper and to the brokers."""

    reads: int = 0
    writes: int = 0
    requests: int = 0

    def __sub__(self, earlier: "Costs") -> "Costs":
        return Costs(self.reads - earlier.reads, self.writes - earlier.writes, self.requests - earlier.requests)


class Recorder:
    """The observer of a whole group: keeps all events in their order."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._began = time.monotonic()
        self._events: list[MemberEvent] = []
        self._costs = Counter[str]()
        self._owned: dict[str, set[TopicPartition]] = {}
        self._moved_at_s = 0.0

    def now_s(self) -> float:
        return time.monotonic() - self._began

    def happened(self, member: str, what: What, partitions: Collection[TopicPartition] = (), view: int = 0) -> None:
        with self._lock:
            event = MemberEvent(self.now_s(), member, what, frozenset(partitions), view)
            self._events.append(event)
            if what in (What.OWNS, What.RELEASED):
                self._moved_at_s = event.at_s
                owned = self._owned.setdefault(member, set())
                if what is What.OWNS:
                    owned |= event.partitions
                else:
                    owned -= event.partitions

    def asked_zookeeper(self, *, reads: int = 0, writes: int = 0) -> None:
        with self._lock:
            self._costs.update(reads=reads, writes=writes)

    def asked_broker(self) -> None:
        with self._lock:
            self._costs.update(requests=1)

    def costs(self) -> Costs:
        with self._lock:
            return Costs(self._costs["reads"], self._costs["writes"], self._costs["requests"])

    def events(self) -> list[MemberEvent]:
        with self._lock:
            return list(self._events)

    def owned(self) -> tuple[dict[str, frozenset[TopicPartition]], float]:
        """Return the partitions of each member now, and the time of the last change."""
        with self._lock:
            return {member: frozenset(owned) for member, owned in self._owned.items()}, self._moved_at_s


@dataclass(frozen=True, slots=True)
class Stretch:
    """A partition had this many owners from one time to another."""

    partition: TopicPartition
    owners: int
    from_s: float
    to_s: float

    @property
    def seconds(self) -> float:
        return self.to_s - self.from_s


def stretches(
    events: Iterable[MemberEvent], partitions: Iterable[TopicPartition], from_s: float, to_s: float
) -> list[Stretch]:
    """Count the owners of each partition, from the one time to the other; earlier events count."""
    owners: dict[TopicPartition, set[str]] = {tp: set() for tp in partitions}
    since = dict.fromkeys(owners, from_s)
    found: list[Stretch] = []

    def end(tp: TopicPartition, at_s: float) -> None:
        if at_s > since[tp]:
            found.append(Stretch(tp, len(owners[tp]), since[tp], at_s))
        since[tp] = max(since[tp], at_s)

    for event in events:
        if event.at_s > to_s:
            break
        if event.what not in (What.OWNS, What.RELEASED):
            continue
        for tp in event.partitions & owners.keys():
            end(tp, event.at_s)
            if event.what is What.OWNS:
                owners[tp].add(event.member)
            else:
                owners[tp].discard(event.member)
    for tp in owners:
        end(tp, to_s)
    return found


@dataclass(frozen=True, slots=True)
class Windows:
    """The stretches in which partitions had no owner, or more than one."""

    partitions: int = 0
    total_s: float = 0.0
    """Summed over the partitions."""
    longest_s: float = 0.0

    @classmethod
    def of(cls, found: Sequence[Stretch]) -> "Windows":
        return cls(
            len({stretch.partition for stretch in found}),
            sum(stretch.seconds for stretch in found),
            max((stretch.seconds for stretch in found), default=0.0),
        )


def decisions_on_old_views(events: Iterable[MemberEvent]) -> int:
    """Decisions from a list of members older than that of an earlier decision: the disagreement."""
    newest = count = 0
    for event in events:
        if event.what is What.DECIDED:
            count += event.view < newest
            newest = max(newest, event.view)
    return count


def is_settled(
    owned: Mapping[str, frozenset[TopicPartition]], live: Collection[str], partitions: Collection[TopicPartition]
) -> bool:
    """Every partition has one owner among the living, and these have equal shares, but for one."""
    shares = [owned.get(member, frozenset()) for member in live]
    sizes = [len(share) for share in shares]
    held = Counter(tp for share in shares for tp in share)
    return max(sizes) - min(sizes) <= 1 and held == Counter(partitions)


@dataclass(frozen=True, slots=True)
class Phase:
    """One row of the table."""

    design: str
    members: int
    name: str
    settled_s: float | None
    """None: not within the time that it was given."""
    notifications: int = 0
    costs: Costs = field(default_factory=Costs)
    unowned: Windows = field(default_factory=Windows)
    several: Windows = field(default_factory=Windows)
    old_views: int = 0
    refused: int = 0
    retries: int = 0
    gave_up: int = 0


def summarise(
    phase: Phase, events: Sequence[MemberEvent], partitions: Collection[TopicPartition], from_s: float, to_s: float
) -> Phase:
    """Return the phase with the counts of the events between the two times; `events` begin with the group."""
    within = [event for event in events if from_s <= event.at_s <= to_s]
    counts = Counter(event.what for event in within)
    found = stretches(events, partitions, from_s, to_s)
    return replace(
        phase,
        notifications=counts[What.NOTIFIED],
        unowned=Windows.of([stretch for stretch in found if stretch.owners == 0]),
        several=Windows.of([stretch for stretch in found if stretch.owners > 1]),
        old_views=decisions_on_old_views(within),
        refused=sum(len(event.partitions) for event in within if event.what is What.REFUSED),
        retries=counts[What.RETRIED],
        gave_up=counts[What.GAVE_UP],
    )

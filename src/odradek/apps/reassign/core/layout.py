"""Replicas on brokers while a plan is being made: the replicas of each broker, their load, the racks in use. Pure."""

from collections import Counter, defaultdict
from collections.abc import Mapping

from odradek.apps.reassign.core.view import ClusterView, PartitionView
from odradek.model.topology import TopicPartition


class Layout:
    def __init__(
        self,
        view: ClusterView,
        may_stay: frozenset[int],
        may_receive: frozenset[int],
        selected: Mapping[TopicPartition, PartitionView],
    ) -> None:
        self.may_stay = may_stay
        self.may_receive = may_receive
        self.replicas: dict[TopicPartition, tuple[int, ...]] = {tp: p.replicas for tp, p in selected.items()}
        """Replicas of the selected partitions; those that stay in their order, new ones behind them."""
        self.held_by: dict[int, set[TopicPartition]] = defaultdict(set)
        """Selected partitions of each broker."""
        self.sizes = {tp: partition.size_bytes for tp, partition in view.partitions.items()}
        self.counts: Counter[int] = Counter()
        """Replicas on each broker, those of partitions that aren't selected too."""
        self.bytes: Counter[int] = Counter()
        self.of_topic: Counter[tuple[int, str]] = Counter()
        self._before = {tp: partition.replicas for tp, partition in selected.items()}
        self._racks = view.racks
        self._unselected_leaders = Counter(
            partition.replicas[0] for tp, partition in view.partitions.items() if tp not in selected
        )
        for tp, partition in view.partitions.items():
            for broker in partition.replicas:
                self._count(tp, broker, 1)

    # --- replicas ------------------------------------------------------------------------------------------------

    def add(self, tp: TopicPartition, broker: int) -> None:
        assert broker not in self.replicas[tp]
        self.replicas[tp] = (*self.replicas[tp], broker)
        self._count(tp, broker, 1)

    def remove(self, tp: TopicPartition, broker: int) -> None:
        self.replicas[tp] = tuple(held for held in self.replicas[tp] if held != broker)
        self._count(tp, broker, -1)

    def move(self, tp: TopicPartition, source: int, target: int) -> None:
        self.remove(tp, source)
        self.add(tp, target)

    def best_newcomer(self, tp: TopicPartition) -> int | None:
        """Return the best broker for one more replica: one that has it now (no copy), then a new rack, then the least
        loaded."""
        held = self.replicas[tp]
        used = {self._racks.get(broker) for broker in held}
        free = [broker for broker in self.may_receive if broker not in held]
        return min(
            free,
            key=lambda b: (
                bool(self._racks) and self._racks[b] in used,
                b not in self._before[tp],
                self.counts[b],
                self.bytes[b],
                b,
            ),
            default=None,
        )

    def most_dispensable(self, tp: TopicPartition, keep: int) -> int:
        """Return the replica to remove: one that shares its rack, then the most loaded; the leader last."""
        held = self.replicas[tp]
        racks = Counter(self._racks.get(broker) for broker in held)
        return max(
            held,
            key=lambda b: (
                b != keep,
                bool(self._racks) and racks[self._racks.get(b)] > 1,
                self.counts[b],
                held.index(b),
            ),
        )

    # --- racks ---------------------------------------------------------------------------------------------------

    def rack_count(self, replicas: tuple[int, ...]) -> int:
        """Number of racks of these brokers. A broker without a known rack is in none."""
        return len({self._racks[broker] for broker in replicas if broker in self._racks})

    def keeps_racks(self, tp: TopicPartition, source: int, target: int) -> bool:
        held = self.replicas[tp]
        after = (*(broker for broker in held if broker != source), target)
        return self.rack_count(after) >= self.rack_count(held)

    def spread_over_racks(self, tp: TopicPartition) -> None:
        """Move replicas that share a rack to racks without one, as long as there are both."""
        while self._racks:
            held = self.replicas[tp]
            racks = Counter(self._racks.get(broker) for broker in held)
            doubled = [broker for broker in held if racks[self._racks.get(broker)] > 1]
            target = self.best_newcomer(tp)
            if not doubled or target is None or racks[self._racks[target]]:
                return
            self.move(tp, max(doubled, key=lambda broker: (held.index(broker) > 0, self.counts[broker])), target)

    # --- leaders -------------------------------------------------------------------------------------------------

    def preferred(self) -> Counter[int]:
        """Number of partitions that each broker is the preferred leader of."""
        return self._unselected_leaders + Counter(replicas[0] for replicas in self.replicas.values())

    def prefer(self, tp: TopicPartition, broker: int) -> None:
        """Make a broker the first replica, by an exchange with the present first one."""
        held = list(self.replicas[tp])
        place = held.index(broker)
        held[0], held[place] = held[place], held[0]
        self.replicas[tp] = tuple(held)

    def settle_leaders(self) -> None:
        """Choose preferred leaders for partitions that lost theirs: the replica that is preferred least often, not
        always the next one."""
        leaders = self.preferred()
        for tp, held in self.replicas.items():
            if held[0] == self._before[tp][0]:
                continue
            leaders[held[0]] -= 1
            chosen = min(held, key=lambda broker: (leaders[broker], held.index(broker)))
            self.prefer(tp, chosen)
            leaders[chosen] += 1

    def _count(self, tp: TopicPartition, broker: int, change: int) -> None:
        self.counts[broker] += change
        self.bytes[broker] += change * self.sizes[tp]
        self.of_topic[broker, tp.topic] += change
        if tp in self.replicas:
            (self.held_by[broker].add if change > 0 else self.held_by[broker].discard)(tp)

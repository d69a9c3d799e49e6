"""Values of a forecast: the move of one partition, and the effect of the moves on one broker."""

from dataclasses import dataclass

from odradek.model.topology import TopicPartition


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

    @property
    def freed_bytes(self) -> int:
        """Size of the replicas that are removed, once the move has ended."""
        return self.size_bytes * len(self.removing)


@dataclass(frozen=True, slots=True)
class BrokerForecast:
    broker: int
    rack: str | None
    bytes_in: int
    bytes_out: int
    bytes_freed: int
    replicas_removed: int
    held_before: int
    held_after: int
    """Bytes of all replicas, those that don't move too."""
    replicas_before: int
    replicas_after: int
    preferred_before: int
    preferred_after: int
    usable_bytes: int | None

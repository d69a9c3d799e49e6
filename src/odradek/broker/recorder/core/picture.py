"""State of the cluster in the controller at a moment: controller, live brokers, leader and ISR of each partition.

It is a fold over the entries in their order. The writer keeps one as well and begins each file with it, so that a
journal can be replayed after its first files were deleted.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field, replace
from typing import Any

from odradek.base.value_classes import dataclass
from odradek.broker.recorder.core.entry import Entry, Kind
from odradek.model.topology import NO_LEADER, TopicPartition


@dataclass(frozen=True, slots=True)
class PartitionPicture:
    leader: int = NO_LEADER
    leader_epoch: int = -1
    isr: tuple[int, ...] = ()
    replicas: tuple[int, ...] = ()
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()
    since_ms: int = 0
    """Time at which the controller learned that this broker leads."""


@dataclass(slots=True)
class Picture:
    controller: int = -1
    controller_epoch: int = 0
    brokers: dict[int, Mapping[str, Any]] = field(default_factory=dict)
    """The live ones: id, host, port, rack, epoch."""
    partitions: dict[TopicPartition, PartitionPicture] = field(default_factory=dict)
    time_ms: int = 0
    """Time of the last entry that it was made from."""
    _unseen: set[TopicPartition] = field(default_factory=set)
    """Partitions that the present controller has not read yet."""

    @classmethod
    def at(cls, entries: Iterable[Entry], time_ms: int | None = None) -> "Picture":
        """Picture made of the merged entries up to that time, or of all."""
        picture = cls()
        for entry in entries:
            if time_ms is None or entry.time_ms <= time_ms:
                picture.apply(entry)
        return picture

    def copy(self) -> "Picture":
        return replace(self, brokers=dict(self.brokers), partitions=dict(self.partitions), _unseen=set(self._unseen))

    def apply(self, entry: Entry) -> None:
        self.time_ms = max(self.time_ms, entry.time_ms)
        match entry.kind, entry.what:
            case Kind.TERM, "Elected":
                self._change_controller(entry.broker, entry)
                self._unseen = set(self.partitions)
            case Kind.TERM, "TookOver":
                for tp in self._unseen:
                    del self.partitions[tp]
                self._unseen = set()
            case Kind.TERM, "Resigned" if self.controller == entry.broker:
                self.controller = NO_LEADER
            case Kind.PICTURE, "Controller":
                self._change_controller(entry.broker, entry)
                self._set_brokers(entry)
                self.partitions = {}
            case (Kind.READ, "Brokers"):
                self._set_brokers(entry)
            case (Kind.READ | Kind.WRITE | Kind.PICTURE, "PartitionState" | "Assignment" | "Partition"):
                self._set_partition(entry)
            case (Kind.WRITE, "TopicDeleted"):
                for tp in [tp for tp in self.partitions if tp.topic == entry.topic]:
                    self._unseen.discard(tp)
                    del self.partitions[tp]

    def entries(self) -> Iterator[dict[str, Any]]:
        """Return the first entries of a file: fields that give this picture again."""
        if self.controller == NO_LEADER:
            return
        epoch = self.controller_epoch
        members = tuple(self.brokers.values())
        yield {"kind": Kind.PICTURE, "what": "Controller", "controller_epoch": epoch, "members": members}
        for tp, partition in self.partitions.items():
            yield {
                "kind": Kind.PICTURE,
                "what": "Partition",
                "controller_epoch": epoch,
                "topic": tp.topic,
                "partition": tp.partition,
                "leader": partition.leader,
                "leader_epoch": partition.leader_epoch,
                "isr": partition.isr,
                "replicas": partition.replicas,
                "adding": partition.adding,
                "removing": partition.removing,
                "since_ms": partition.since_ms,
            }

    def _change_controller(self, broker: int, entry: Entry) -> None:
        self.controller = broker
        self.controller_epoch = entry.controller_epoch or 0

    def _set_brokers(self, entry: Entry) -> None:
        self.brokers = {int(member["id"]): member for member in entry.members or ()}

    def _set_partition(self, entry: Entry) -> None:
        tp = entry.topic_partition
        if tp is None:
            return
        self._unseen.discard(tp)
        known = self.partitions.get(tp, PartitionPicture())
        changes = {name: value for name in _COPIED if (value := getattr(entry, name)) is not None}
        if entry.leader is not None and entry.leader != known.leader and entry.since_ms is None:
            changes["since_ms"] = entry.time_ms
        self.partitions[tp] = replace(known, **changes)


_COPIED = ("leader", "leader_epoch", "isr", "replicas", "adding", "removing", "since_ms")

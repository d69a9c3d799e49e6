"""ZooKeeper of the simulation: znodes as values, and the session of the controller, whose server may be behind.

Reads of a session are answered from the znodes of its server, and a watch fires when that server has the change. A
write goes through the leader of the ensemble: when it is answered, the session's server has everything up to it, and
the watches of all that have fired before. So has the server of a session that begins with a write, as a controller's
does.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from odradek.broker.controller.core import effects
from odradek.model.topology import Broker, LeaderAndIsr, TopicAssignment, TopicPartition


@dataclass
class Znodes:
    """Contents of the znodes that a controller reads."""

    registered: dict[int, Broker] = field(default_factory=dict)
    topics: dict[str, TopicAssignment] = field(default_factory=dict)
    broken: set[str] = field(default_factory=set)
    """Topics whose znode can't be parsed."""
    states: dict[TopicPartition, LeaderAndIsr] = field(default_factory=dict)
    configs: dict[str, dict[str, str]] = field(default_factory=dict)
    to_delete: set[str] = field(default_factory=set)
    isr_notices: dict[str, frozenset[TopicPartition]] = field(default_factory=dict)
    log_dir_notices: dict[str, int] = field(default_factory=dict)
    reassignments: dict[TopicPartition, tuple[int, ...]] = field(default_factory=dict)
    preferred_elections: set[TopicPartition] = field(default_factory=set)

    def copy(self) -> "Znodes":
        return Znodes(**{each.name: getattr(self, each.name).copy() for each in fields(self)})

    def read_topics(self, effect: effects.ReadTopics) -> dict[str, TopicAssignment]:
        names = self.topics if effect.topics is None else effect.topics
        return {name: self.topics[name] for name in names if name in self.topics and name not in self.broken}


READS: Mapping[type, Callable[[Znodes, Any], Any]] = {
    effects.ReadBrokers: lambda znodes, e: dict(znodes.registered),
    effects.ReadTopicNames: lambda znodes, e: set(znodes.topics),
    effects.ReadTopics: Znodes.read_topics,
    effects.ReadPartitionStates: lambda znodes, e: {
        tp: znodes.states[tp] for tp in e.partitions if tp in znodes.states
    },
    effects.ReadTopicConfigs: lambda znodes, e: {
        name: znodes.configs[name]
        for name in (znodes.configs if e.topics is None else e.topics)
        if name in znodes.configs
    },
    effects.ReadTopicsToDelete: lambda znodes, e: set(znodes.to_delete),
    effects.ReadIsrNotifications: lambda znodes, e: (
        list(znodes.isr_notices),
        {tp for tps in znodes.isr_notices.values() for tp in tps},
    ),
    effects.ReadLogDirNotifications: lambda znodes, e: (
        list(znodes.log_dir_notices),
        set(znodes.log_dir_notices.values()),
    ),
    effects.ReadReassignmentNode: lambda znodes, e: dict(znodes.reassignments),
    effects.ReadPreferredElectionNode: lambda znodes, e: set(znodes.preferred_elections),
}


class ControllerSession:
    """Watches of the controller, and the znodes of the server that its session is connected to."""

    def __init__(self, znodes: Znodes, on_watch: Callable[[str], None]) -> None:
        self._all = znodes
        self._on_watch = on_watch
        self._watched: set[tuple[str, bool]] = set()  # path, and whether its children are meant
        self._view: Znodes | None = None  # znodes of a server that is behind
        self._unseen: list[tuple[str, bool]] = []  # changes that it doesn't have

    @property
    def is_behind(self) -> bool:
        return self._view is not None

    @property
    def znodes(self) -> Znodes:
        """Znodes as the server of the session has them."""
        return self._all if self._view is None else self._view

    def watch(self, effect: effects.Watch) -> None:
        self._watched |= {(path, True) for path in effect.children} | {(path, False) for path in effect.nodes}

    def changed(self, path: str, *, children: bool) -> None:
        """A znode has changed; a watch on it fires once."""
        if self._view is not None:
            self._unseen.append((path, children))
        elif (path, children) in self._watched:
            self._watched.remove((path, children))
            self._on_watch(path)

    def fall_behind(self) -> None:
        """The server of the session gets no further transactions for a while."""
        if self._view is None:
            self._view = self._all.copy()

    def catch_up(self) -> None:
        self._view = None
        unseen, self._unseen = self._unseen, []
        for path, children in unseen:
            self.changed(path, children=children)

    def end(self) -> None:
        self._view = None
        self._unseen.clear()
        self._watched.clear()

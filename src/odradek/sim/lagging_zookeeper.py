"""ZooKeeper as the controller's session sees it: the server that it is connected to may be behind the others.

Reads are answered from the znodes of that server, and a watch fires when the server has the change. A write goes
through the leader of the ensemble: when it is answered, the session's server has everything up to it, and the watches
of all that have fired before. So has the server of a session that begins with a write, as a controller's does.
"""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from odradek.broker.controller.core import effects
from odradek.model.topology import LeaderAndIsr, TopicPartition
from odradek.sim.world import READS, WRITES, World

_ZNODES = (
    "registered",
    "topics",
    "broken",
    "states",
    "configs",
    "to_delete",
    "isr_notices",
    "log_dir_notices",
    "reassignments",
    "preferred_elections",
)
_ZNODE_READS = frozenset(
    {
        effects.ReadBrokers,
        effects.ReadTopicNames,
        effects.ReadTopics,
        effects.ReadPartitionStates,
        effects.ReadTopicConfigs,
        effects.ReadTopicsToDelete,
        effects.ReadIsrNotifications,
        effects.ReadLogDirNotifications,
        effects.ReadReassignmentNode,
        effects.ReadPreferredElectionNode,
    }
)
UncleanElection = Callable[[TopicPartition, int], None]


class SimulatedWorld(World):
    """ZooKeeper and the controller's decisions; requests of the controller go out on the simulated network."""

    def __init__(
        self, send: Callable[[effects.Send], None], close: Callable[[int], None], on_unclean_election: UncleanElection
    ) -> None:
        super().__init__()
        self._transmit = send
        self._close = close
        self._on_unclean_election = on_unclean_election
        self._view: SimpleNamespace | None = None  # znodes of a server that is behind
        self._unseen: list[tuple[str, bool]] = []  # changes that it doesn't have

    @property
    def is_behind(self) -> bool:
        return self._view is not None

    def fall_behind(self) -> None:
        """The server of the controller's session gets no further transactions for a while."""
        if self._view is None:
            self._view = SimpleNamespace(**{name: getattr(self, name).copy() for name in _ZNODES})

    def catch_up(self) -> None:
        self._view = None
        unseen, self._unseen = self._unseen, []
        for path, children in unseen:
            super()._changed(path, children=children)

    def controller_gone(self) -> None:
        super().controller_gone()
        self._view = None
        self._unseen.clear()

    def _changed(self, path: str, *, children: bool = False) -> None:
        if self._view is not None:
            self._unseen.append((path, children))
        else:
            super()._changed(path, children=children)

    def _send(self, effect: effects.Send) -> None:
        self._transmit(effect)

    def _perform(self, effect: effects.Effect) -> Any:
        if isinstance(effect, effects.CloseChannel):
            self._close(effect.broker_id)
        kind = type(effect)
        if self._view is not None:
            if kind in _ZNODE_READS:
                view: Any = self._view
                return READS[kind](view, effect)
            if kind in WRITES and kind is not effects.Send:
                try:
                    return super()._perform(effect)
                finally:
                    self.catch_up()
        return super()._perform(effect)

    def _update_states(self, effect: effects.UpdatePartitionStates) -> dict[TopicPartition, LeaderAndIsr]:
        before = {tp: self.states.get(tp) for tp in effect.states}
        written = super()._update_states(effect)
        for tp, state in written.items():
            held = before[tp]
            if held is not None and state.leader >= 0 and state.leader not in held.isr:
                self._on_unclean_election(tp, state.leader_epoch)
        return written

"""History of a partition that may elect a leader from outside of its ISR.

Such an election loses committed batches: from then on, the log of the new leader counts. Only this loss is allowed.
All invariants apply to the batches that the new leader has and commits; leaders of former epochs, which don't know the
election yet, are ignored.
"""

from collections.abc import Collection

from odradek.model.topology import LeaderAndIsr
from odradek.sim.checkers.partition_history import PartitionHistory, Replica
from odradek.sim.checkers.violation import Violation


class UncleanPartitionHistory(PartitionHistory):
    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.elections = 0
        self.lost = 0  # committed batches
        self._since = -1  # leader epoch of the last unclean election
        self._awaits_leader = False  # the elected one has not heard of it
        self._early: list[tuple[int, int, int, int]] = []  # its acknowledgements before the next check

    def elected_uncleanly(self, leader_epoch: int) -> None:
        self.elections += 1
        self._since = leader_epoch
        self._awaits_leader = True
        self._early.clear()

    def _check_replica(self, broker_id: int, life: object, replica: Replica) -> None:
        if replica.is_leader:
            if replica.leader_epoch < self._since:
                return
            if self._awaits_leader:
                self._begin_anew(broker_id)
        super()._check_replica(broker_id, life, replica)

    def check_isr(self, state: LeaderAndIsr, excused: Collection[int] = ()) -> None:
        if not self._awaits_leader:
            super().check_isr(state, excused)
        elif state.leader >= 0 and state.leader not in state.isr:
            raise Violation(f"{self.name}: the leader isn't in the ISR: {state}")

    def acknowledge(self, broker_id: int, epoch: int, base_offset: int, crc: int) -> None:
        if epoch < self._since:
            return
        if self._awaits_leader:
            self._early.append((broker_id, epoch, base_offset, crc))
        else:
            super().acknowledge(broker_id, epoch, base_offset, crc)

    def _begin_anew(self, leader: int) -> None:
        """Drop committed batches that the new leader doesn't have, and everything behind the first of them."""
        self._awaits_leader = False
        reading = self._readings[leader]
        held = {entry.base_offset: entry for entry in reading.entries}
        missing = [offset for offset, entry in self.committed.items() if held.get(offset) != entry]
        end = min([self.committed_end, reading.end_offset, *missing])
        before = len(self.committed)
        self.committed = {offset: entry for offset, entry in self.committed.items() if offset < end}
        self.lost += before - len(self.committed)
        self.committed_end = end
        self.acknowledged = {offset: crc for offset, crc in self.acknowledged.items() if offset < end}
        for each in self._readings.values():
            each.compared = 0
        for early in self._early:
            super().acknowledge(*early)
        self._early.clear()

"""A program that consumes, transforms and produces exactly once, one of several in a group (KIP-447).

Each has a transactional id of its own, so none fences another by its epoch. The member to which the group gives the
partition reads it; offsets in a transaction are refused from a member of a former generation, and an offset is not
answered as long as the transaction of the member before may still change it.
"""

from collections.abc import Sequence
from random import Random

from odradek.broker.coordinator.groups.core.member_checks import Committer
from odradek.model.topology import TopicPartition
from odradek.sim.checkers.group_history import GroupHistory
from odradek.sim.checkers.transaction_history import TransactionHistory
from odradek.sim.clients.access import ClusterAccess
from odradek.sim.clients.group_membership import GroupMembership
from odradek.sim.clients.transactional_producer import Phase
from odradek.sim.clients.transformer import Transformer

_TIMEOUT_MS = 15_000
"""Longer than a session: a member may lose its partition, and end its transaction after that."""


class GroupTransformer(Transformer):
    def __init__(
        self,
        number: int,
        source: TopicPartition,
        partitions: Sequence[TopicPartition],
        cluster: ClusterAccess,
        history: TransactionHistory,
        offsets: GroupHistory,
        *,
        version: int = 1,
    ) -> None:
        transactional_id = f"transformer-{number}"
        super().__init__(
            number,
            source,
            partitions,
            cluster,
            history,
            offsets,
            version=version,
            transactional_id=transactional_id,
            timeout_ms=_TIMEOUT_MS,
        )
        self.pause = 0  # the number of times that it could act and doesn't
        self.pause_to_come = 0  # as long a pause, when the transaction is in that phase
        self.pauses_in = Phase.ENDING
        self.is_expelled = False  # its session has passed in this pause
        self._membership = GroupMembership(number, [source], cluster, offsets)

    @property
    def pauses_in_transaction(self) -> bool:
        """Return whether the member pauses in a transaction that it is going to commit."""
        return self.pause > 0 and self.phase is self.pauses_in and self._commits

    @property
    def owns_source(self) -> bool:
        return self.source in self._membership.assigned

    @property
    def position(self) -> int | None:
        """The offset of its group, if it reads the partition in the present generation."""
        return self._known if self.owns_source and self._is_of_generation else None

    @property
    def _is_of_generation(self) -> bool:
        return self._committer.generation == self._membership.generation

    def act(self, chance: Random, *, begins: bool = True) -> None:
        if self.phase is self.pauses_in and self.pause_to_come:
            self.pause, self.pause_to_come, self.is_expelled = self.pause_to_come, 0, False
        if self.pause:
            self.pause -= 1
            return
        self._membership.act(chance)
        super().act(chance, begins=begins)

    def _act(self, chance: Random) -> None:
        if self.phase in (Phase.READY, Phase.SEEKING):
            if not self.owns_source:
                return
            if not self._is_of_generation:
                self._known = None
        super()._act(chance)

    def _seek(self) -> None:
        self._committer = Committer(self._membership.member_id, None, self._membership.generation)
        super()._seek()

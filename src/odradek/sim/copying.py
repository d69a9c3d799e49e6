"""Programs that copy a partition exactly once, in transactions that commit their offsets too, and the checks of them.

Either one program, whose successors have its transactional id and fence it, or two members of a group, each with a
transactional id of its own. Each public method without a result is a step of a story.
"""

from collections.abc import Sequence
from random import Random
from typing import Protocol

from odradek.model.topology import TopicPartition
from odradek.sim.checkers.group_history import GroupHistory
from odradek.sim.checkers.transaction_history import TransactionHistory, check_copies, committed_values
from odradek.sim.clients.access import ClusterAccess
from odradek.sim.clients.group_membership import SESSION_TIMEOUT_MS
from odradek.sim.clients.group_transformer import GroupTransformer
from odradek.sim.clients.resuming_producer import without_fenced
from odradek.sim.clients.transactional_producer import Phase
from odradek.sim.clients.transformer import TRANSFORMERS, Transformer

_FIRST_NUMBER = 401
_TRANSFORMERS_MAX = 3
_MEMBERS = 2
_PAUSE = (30, 100)
"""Pauses of a member, in times that it could have acted: others take its partition meanwhile."""


class CopyingCluster(ClusterAccess, Protocol):
    chance: Random
    trace: list[str]

    def wait(self, ms: int, /) -> None:
        """Let time pass."""


class Copying:
    def __init__(
        self,
        cluster: CopyingCluster,
        source: TopicPartition,
        copies: Sequence[TopicPartition],
        *,
        version: int,
        in_group: bool,
    ) -> None:
        """Does nothing without partitions for the copies."""
        self.history = TransactionHistory()
        self.offsets = GroupHistory(TRANSFORMERS)
        self._cluster = cluster
        self._source = source
        self._copies = copies
        self._version = version
        self._in_group = in_group
        numbers = range(_FIRST_NUMBER, _FIRST_NUMBER + (_MEMBERS if in_group else 1)) if copies else ()
        self.transformers = [self._new_transformer(number) for number in numbers]
        """Members of the group; or the last one goes on, and those before it don't know that they are replaced."""

    @property
    def source(self) -> TopicPartition:
        return self._source

    def _new_transformer(self, number: int) -> Transformer:
        given = number, self._source, self._copies, self._cluster, self.history, self.offsets
        if self._in_group:
            return GroupTransformer(*given, version=self._version)
        return Transformer(*given, version=self._version)

    # ---- steps

    def transformer_acts(self) -> None:
        for transformer in self.transformers:
            transformer.act(self._cluster.chance)
        self._drop_fenced()

    def transformer_is_replaced(self) -> None:
        """Begin another program, while the one before doesn't know."""
        last = self.transformers[-1]
        if isinstance(last, GroupTransformer):
            self._disturb_member(last.number + 1)
        elif len(self.transformers) < _TRANSFORMERS_MAX:
            self._cluster.trace.append(f"transformer {last.number} is replaced")
            self.transformers.append(self._new_transformer(last.number + 1))

    def _disturb_member(self, next_number: int) -> None:
        """Let the owner of the partition pause with its transaction open; or it dies without LeaveGroup, and another
        member begins."""
        members = [each for each in self.transformers if isinstance(each, GroupTransformer)]
        owners = [each for each in members if each.owns_source]
        if not owners:
            return
        owner = self._cluster.chance.choice(owners)
        if self._cluster.chance.random() < 0.85:
            owner.pause_to_come = self._cluster.chance.randint(*_PAUSE)
            owner.pauses_in = self._cluster.chance.choice((Phase.COMMITTING_OFFSETS, Phase.ENDING))
            self._cluster.trace.append(f"transformer {owner.number} is to pause when {owner.pauses_in.value}")
        else:
            self._cluster.trace.append(f"transformer {owner.number} dies, {next_number} begins")
            owner.die()
            self.transformers.remove(owner)
            self.transformers.append(self._new_transformer(next_number))
            self._cluster.wait(SESSION_TIMEOUT_MS + 1)

    def paused_member_is_expelled(self) -> None:
        """Let the sessions of the group pass while a member pauses in its transaction: another member
        gets its partition before the transaction ends."""
        members = [each for each in self.transformers if isinstance(each, GroupTransformer)]
        paused = [each for each in members if each.pauses_in_transaction]
        if paused and not paused[0].is_expelled:
            paused[0].is_expelled = True
            self._cluster.trace.append(f"transformer {paused[0].number} is expelled from its group")
            self._cluster.wait(SESSION_TIMEOUT_MS + 1)

    def _drop_fenced(self) -> None:
        if not self._in_group:
            self.transformers = without_fenced(self.transformers)

    # ---- rounds in which nothing fails

    @property
    def has_begun(self) -> bool:
        """Return whether a member of the group knows from where to copy."""
        return not self.transformers or not self._in_group or self._position is not None

    def go_on_after_healing(self) -> None:
        for transformer in self.transformers:
            transformer.hurries = False

    def begin_to_heal(self) -> None:
        for transformer in self.transformers:
            transformer.hurries = True
            if isinstance(transformer, GroupTransformer):
                transformer.pause = transformer.pause_to_come = 0

    # ---- checks

    @property
    def fault(self) -> str | None:
        return next((transformer.fault for transformer in self.transformers if transformer.fault), None)

    @property
    def _position(self) -> int | None:
        """The offset up to which all is copied."""
        if not self._in_group:
            return self.transformers[-1].position
        return next((each.position for each in self.transformers if each.position is not None), None)

    def missing(self) -> str | None:
        """Return records that are not copied, or a program that has something to end."""
        if not self.transformers:
            return None
        if waiting := [each.number for each in self.transformers if not each.is_done]:
            return f"transformers {waiting} have something to end"
        leader = self._cluster.elected_leader(self._source)
        end = leader.replicas.partitions[self._source].high_watermark if leader is not None else -1
        if self._position != end:
            return f"copies of {self._source} are made up to {self._position}, it ends at {end}"
        return None

    def check_end(self) -> None:
        """Check that each record has exactly one copy in a committed transaction."""
        if not self.transformers:
            return
        leaders = {tp: self._cluster.elected_leader(tp) for tp in self._copies}
        held = {tp: committed_values(b.replicas.partitions[tp].log) for tp, b in leaders.items() if b is not None}
        self.history.check_end(held, "the leaders")
        check_copies([value for values in held.values() for value in values], self._position or 0)

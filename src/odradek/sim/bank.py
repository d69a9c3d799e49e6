"""Tellers that transfer money between accounts in transactions, and a reader of committed records that adds it up.

Each public method without a result is a step of a story. The last teller goes on; those before it don't know that they
are replaced until they are fenced.
"""

from collections.abc import Sequence
from random import Random
from typing import Protocol

from odradek.model.topology import TopicPartition
from odradek.sim.broker import SimulatedBroker
from odradek.sim.checkers.balances import Balances
from odradek.sim.checkers.transaction_history import TransactionHistory, committed_values
from odradek.sim.checkers.violation import Violation
from odradek.sim.clients.access import ClusterAccess
from odradek.sim.clients.committed_reader import CommittedReader
from odradek.sim.clients.resuming_producer import without_fenced
from odradek.sim.clients.teller import Teller

_FIRST_NUMBER = 501
_TELLERS_MAX = 3
_TRANSFERS_AT_FIRST = 3
_TRANSFERS_AT_LAST = 3


class BankCluster(ClusterAccess, Protocol):
    chance: Random
    trace: list[str]
    brokers: dict[int, SimulatedBroker]


class Bank:
    def __init__(self, cluster: BankCluster, accounts: Sequence[TopicPartition], version: int) -> None:
        """A bank without partitions of accounts does nothing."""
        self.history = TransactionHistory()
        self._cluster = cluster
        self._accounts = accounts
        self._version = version
        self._balances = Balances()
        self._transfers_wanted = _TRANSFERS_AT_FIRST
        self._reader = CommittedReader(accounts, self._balances)
        self.tellers = [self._new_teller(_FIRST_NUMBER)] if accounts else []

    def _new_teller(self, number: int) -> Teller:
        return Teller(number, self._accounts, self._cluster, self.history, version=self._version)

    # ---- steps

    def teller_acts(self) -> None:
        self._drop_fenced()
        for teller in self.tellers:
            teller.act(self._cluster.chance)

    def teller_is_replaced(self) -> None:
        """Begin another one with the same transactional id, while the one before doesn't know."""
        if len(self.tellers) < _TELLERS_MAX:
            self._cluster.trace.append(f"teller {self.tellers[-1].number} is replaced")
            self.tellers.append(self._new_teller(self.tellers[-1].number + 1))

    def balances_are_read(self) -> None:
        tp = self._cluster.chance.choice(self._accounts)
        leaders = [broker for broker in self._cluster.brokers.values() if broker.leads(tp)]
        if leaders:
            self._read(tp, self._cluster.chance.choice(leaders))

    # ---- rounds in which nothing fails

    @property
    def has_begun(self) -> bool:
        return not self.tellers or self.history.committed >= _TRANSFERS_AT_FIRST

    def begin_to_heal(self) -> None:
        """Let the last teller make some more transfers from now on, and the others end what they have begun."""
        self._transfers_wanted = self.history.committed + _TRANSFERS_AT_LAST

    def go_on(self) -> None:
        self._drop_fenced()
        for teller in self.tellers:
            is_last = teller is self.tellers[-1]
            teller.act(self._cluster.chance, begins=is_last and self.history.committed < self._transfers_wanted)
        for tp in self._accounts:
            if (leader := self._cluster.elected_leader(tp)) is not None and leader.leads(tp):
                self._read(tp, leader)

    def _drop_fenced(self) -> None:
        self.tellers = without_fenced(self.tellers)

    def _read(self, tp: TopicPartition, leader: SimulatedBroker) -> None:
        """Read from a broker that believes it leads: committed offsets are in range of it, for ever."""
        offset = self._reader.positions[tp]
        if error := self._reader.read(tp, leader):
            raise Violation(f"{tp}: leader {leader.id} tells a reader of balances at {offset}: {error.name}")

    # ---- checks

    @property
    def fault(self) -> str | None:
        return next((teller.fault for teller in self.tellers if teller.fault), None)

    def missing(self) -> str | None:
        """Return the first thing that has not ended."""
        if waiting := [teller.number for teller in self.tellers if not teller.is_done]:
            return f"tellers {waiting} have something to end"
        if self.tellers and self.history.committed < self._transfers_wanted:
            return f"{self.history.committed} transfers are made, wanted are {self._transfers_wanted}"
        for tp in self._accounts:
            leader = self._cluster.elected_leader(tp)
            end = leader.replicas.partitions[tp].high_watermark if leader is not None else -1
            if self._reader.positions[tp] != end:
                return f"a reader of balances is at {self._reader.positions[tp]} of {tp}, which ends at {end}"
        return None

    def check_end(self) -> None:
        self._balances.check_end()
        leaders = {tp: self._cluster.elected_leader(tp) for tp in self._accounts}
        held = {tp: committed_values(b.replicas.partitions[tp].log) for tp, b in leaders.items() if b is not None}
        self.history.check_end(held, "the leaders")

"""A program that transfers money between accounts, each transfer in a transaction.

It learns the balances from the records of all transfers before, as a program that keeps its state in a topic does: it
gets an epoch, which fences the tellers before it and ends their transactions, asks each leader for its last stable
offset, and reads up to it. It then goes on from what it knows, and learns it anew after an abort. Its successor has the
same transactional id.
"""

from collections.abc import Sequence
from random import Random

from odradek.broker.replication.committed_log import READ_COMMITTED
from odradek.model.topology import TopicPartition
from odradek.sim.checkers.balances import ACCOUNT_COUNT, BalanceEntry, Balances
from odradek.sim.checkers.transaction_history import TransactionHistory
from odradek.sim.clients.access import ClusterAccess
from odradek.sim.clients.committed_reader import CommittedReader
from odradek.sim.clients.resuming_producer import ResumingProducer
from odradek.sim.clients.transactional_producer import Phase

_TRANSACTIONAL_ID = "teller"
_COMMITTED = 0.85
"""Share of the transfers that it commits; it aborts the others."""


class Teller(ResumingProducer[Balances]):
    def __init__(
        self,
        number: int,
        partitions: Sequence[TopicPartition],
        cluster: ClusterAccess,
        history: TransactionHistory,
        *,
        version: int = 1,
    ) -> None:
        super().__init__(number, partitions, cluster, history, version=version, transactional_id=_TRANSACTIONAL_ID)
        self._planned: tuple[BalanceEntry, BalanceEntry] | None = None

    def _go_on(self, chance: Random) -> None:
        if self.phase is Phase.READY:
            self._begin(chance)
        else:
            super()._go_on(chance)

    # ---- balances

    def _seek(self) -> None:
        balances = self._learn()
        if balances is not None:
            self._found(balances)

    def _learn(self) -> Balances | None:
        """Read all transfers; None as long as a leader doesn't know them all."""
        balances = Balances()
        for tp in self._partitions:
            leader = self._cluster.elected_leader(tp)
            if leader is None or not self._cluster.coordinates(leader, tp):
                return None
            committed = leader.replicas.partitions[tp].committed
            if not committed.end_is_known:
                return None
            reader = CommittedReader([tp], balances)
            end = committed.visible_end(READ_COMMITTED)
            while (position := reader.positions[tp]) < end:
                if reader.read(tp, leader) or reader.positions[tp] == position:
                    return None
        return balances if balances.is_whole else None  # a teller that is fenced may meet transfers of its successor

    def _begin(self, chance: Random) -> None:
        balances = self._known
        assert balances is not None
        payer, paid = chance.sample(range(ACCOUNT_COUNT), 2)
        amount, known, number = chance.randint(1, 9), balances.of_accounts, balances.last_transfer + 1
        entries = (
            BalanceEntry(number, payer, known[payer] - amount, paid),
            BalanceEntry(number, paid, known[paid] + amount, payer),
        )
        self._planned = entries
        self._name = f"{self.number}/{next(self._transactions)}"
        by_partition: dict[TopicPartition, list[bytes]] = {}
        for entry in sorted(entries):
            tp = self._partitions[entry.account % len(self._partitions)]
            by_partition.setdefault(tp, []).append(entry.value(self._name))
        self._batches = list(by_partition.items())
        self._commits = chance.random() < _COMMITTED
        self._begun()

    def _after_commit(self) -> Balances | None:
        balances = self._known
        if balances is not None and self._planned is not None:
            for entry in self._planned:
                balances.of_accounts[entry.account] = entry.balance
            balances.last_transfer += 1
        return balances

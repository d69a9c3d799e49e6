"""A program that transfers money between accounts, each transfer in a transaction.

It learns the balances from the records of all transfers before, as a program that keeps its state in a topic does: it
gets an epoch, which fences the tellers before it and ends their transactions, asks each leader for its last stable
offset, and reads up to it. It then goes on from what it knows, and learns it anew after an abort. Its successor has the
same transactional id.
"""

from collections.abc import Sequence
from random import Random

from odradek.base.errors import ErrorCode
from odradek.broker.coordinator.transactions.core.decisions import Producer
from odradek.model.topology import TopicPartition
from odradek.sim.broker import SimulatedBroker
from odradek.sim.checkers.balances import ACCOUNT_COUNT, Balances, Entry
from odradek.sim.checkers.transaction_history import TransactionHistory
from odradek.sim.clients.access import ClusterAccess
from odradek.sim.clients.committed_reader import CommittedReader
from odradek.sim.clients.transactional_producer import Phase, TransactionalProducer

_TRANSACTIONAL_ID = "teller"
_COMMITTED = 0.85
"""Share of the transfers that it commits; it aborts the others."""


class Teller(TransactionalProducer):
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
        self._balances: Balances | None = None
        self._planned: tuple[Entry, Entry] | None = None

    @property
    def is_done(self) -> bool:
        return self.phase in (Phase.NEW, Phase.READY, Phase.SEEKING)

    def _act(self, chance: Random) -> None:
        if self.phase is Phase.READY and self._balances is None:
            self.phase = Phase.SEEKING
        if self.phase is Phase.SEEKING:
            self._balances = self._learn()
            if self._balances is not None:
                self.phase = Phase.READY
        elif self.phase is Phase.READY:
            self._begin(chance)
        else:
            super()._act(chance)

    # ---- balances

    def _learn(self) -> Balances | None:
        """Read all transfers; None as long as a leader doesn't know them all."""
        balances = Balances()
        for tp in self._partitions:
            leader = self._cluster.elected_leader(tp)
            if leader is None or not self._cluster.coordinates(leader, tp) or not _knows_its_end(leader, tp):
                return None
            reader = CommittedReader([tp], balances)
            partition = leader.replicas.partitions[tp]
            end = partition.committed.last_stable_offset(partition.high_watermark)
            while (position := reader.positions[tp]) < end:
                if reader.read(tp, leader) or reader.positions[tp] == position:
                    return None
        return balances if balances.is_whole else None  # a teller that is fenced may meet transfers of its successor

    def _begin(self, chance: Random) -> None:
        assert self._balances is not None
        payer, paid = chance.sample(range(ACCOUNT_COUNT), 2)
        amount, known, number = chance.randint(1, 9), self._balances.of_accounts, self._balances.last_transfer + 1
        entries = Entry(number, payer, known[payer] - amount, paid), Entry(number, paid, known[paid] + amount, payer)
        self._planned = entries
        self._name = f"{self.number}/{next(self._transactions)}"
        by_partition: dict[TopicPartition, list[bytes]] = {}
        for entry in sorted(entries):
            tp = self._partitions[entry.account % len(self._partitions)]
            by_partition.setdefault(tp, []).append(entry.value(self._name))
        self._batches = list(by_partition.items())
        self._commits = chance.random() < _COMMITTED
        self._begun()

    # ---- the end of a transaction

    def _ended(self, error: ErrorCode, producer: Producer | None) -> None:
        committed = self._commits
        super()._ended(error, producer)
        if error or not self.is_done:
            return
        if committed and self._balances is not None and self._planned is not None:
            for entry in self._planned:
                self._balances.of_accounts[entry.account] = entry.balance
            self._balances.last_transfer += 1
        else:
            self._balances = None

    def _abandon(self) -> None:
        super()._abandon()
        self._balances = None

    def _abort(self) -> None:
        super()._abort()
        self._balances = None


def _knows_its_end(leader: SimulatedBroker, tp: TopicPartition) -> bool:
    """Answer of ListOffsets (KIP-207): a new leader has to learn first how much is committed."""
    partition = leader.replicas.partitions[tp]
    start = partition.epoch_start_offset
    return start is None or start <= partition.high_watermark

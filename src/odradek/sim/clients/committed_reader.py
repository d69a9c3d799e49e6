"""A consumer of committed records, without a group."""

from collections.abc import Sequence
from typing import Protocol

from odradek.base.errors import ErrorCode
from odradek.broker.replication.committed_log import READ_COMMITTED
from odradek.broker.replication.leader.fetch_reader import FetchOutcome, FetchTarget, FetchTerms
from odradek.model.topology import ZERO_UUID, TopicPartition
from odradek.sim.broker import SimulatedBroker
from odradek.sim.checkers.transaction_history import visible_values

_READ_BYTES = 1_000_000


class CommittedValues(Protocol):
    def read(self, tp: TopicPartition, values: Sequence[bytes]) -> None:
        """Take records that a reader of committed ones was given."""


class KnownEpochs:
    """Leader epochs that a consumer knows (KIP-320): it fetches in the latest one, so that a leader that doesn't know
    its successor yet answers UNKNOWN_LEADER_EPOCH."""

    def __init__(self) -> None:
        self._latest: dict[TopicPartition, int] = {}

    def at(self, tp: TopicPartition, broker: SimulatedBroker) -> int:
        """Return the epoch to fetch in: that of the broker's leadership, unless a later one is known."""
        partition = broker.replicas.partitions.get(tp)
        epoch = max(self._latest.get(tp, -1), -1 if partition is None else partition.leader_epoch)
        self._latest[tp] = epoch
        return epoch


class CommittedReader:
    def __init__(self, partitions: Sequence[TopicPartition], history: CommittedValues) -> None:
        self.positions = dict.fromkeys(partitions, 0)
        self._epochs = KnownEpochs()
        self._history = history

    def read(self, tp: TopicPartition, broker: SimulatedBroker) -> ErrorCode:
        """Read from a broker that believes it leads; nothing, if the reader knows of a later leader."""
        outcomes: list[FetchOutcome] = []
        epoch = self._epochs.at(tp, broker)
        target = FetchTarget(tp, ZERO_UUID, self.positions[tp], _READ_BYTES, epoch)
        broker.replicas.fetch([target], FetchTerms(0, 1, _READ_BYTES, READ_COMMITTED), outcomes.extend)
        (outcome,) = outcomes
        if outcome.found is not None and outcome.found.records is not None:
            aborted = [(each.first_offset, each.producer_id) for each in outcome.found.aborted]
            values, end = visible_values(outcome.found.records.read(), aborted)
            self._history.read(tp, values)
            self.positions[tp] = max(self.positions[tp], end)
        return ErrorCode.NONE if outcome.error is ErrorCode.UNKNOWN_LEADER_EPOCH else outcome.error

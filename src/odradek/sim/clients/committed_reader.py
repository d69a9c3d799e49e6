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


class CommittedReader:
    def __init__(self, partitions: Sequence[TopicPartition], history: CommittedValues) -> None:
        self.positions = dict.fromkeys(partitions, 0)
        self._history = history

    def read(self, tp: TopicPartition, broker: SimulatedBroker) -> ErrorCode:
        outcomes: list[FetchOutcome] = []
        target = FetchTarget(tp, ZERO_UUID, self.positions[tp], _READ_BYTES)
        broker.replicas.fetch([target], FetchTerms(0, 1, _READ_BYTES, READ_COMMITTED), outcomes.extend)
        (outcome,) = outcomes
        if outcome.found is not None and outcome.found.records is not None:
            aborted = [(each.first_offset, each.producer_id) for each in outcome.found.aborted]
            values, end = visible_values(outcome.found.records.read(), aborted)
            self._history.read(tp, values)
            self.positions[tp] = max(self.positions[tp], end)
        return outcome.error

"""A transactional id in memory: its value, the state change being written, the end being completed; and a request about
it.
"""

from collections.abc import Callable
from typing import NamedTuple

from odradek.broker.coordinator.state.state_log import StateLog
from odradek.broker.coordinator.state.state_log_writer import StateEntry
from odradek.broker.coordinator.transactions.core.decisions import Producer
from odradek.broker.coordinator.transactions.core.transaction import Transaction, TransactionState
from odradek.broker.coordinator.transactions.core.transaction_story import TransactionStory
from odradek.model.topology import TopicPartition


class TransactionEntry(StateEntry):
    __slots__ = ("ending", "move", "story", "transaction")

    def __init__(self, transaction: Transaction, state_log: StateLog, partition: int) -> None:
        super().__init__(transaction.transactional_id, state_log, partition)
        self.transaction = transaction
        self.move: Transaction | None = None
        """The value whose record is on its way into the log."""
        self.ending: Ending | None = None
        """Set from the decision to end a transaction until its completion is written."""
        self.story: TransactionStory | None = None
        """Story for the flight recorder; None until something has happened. Guarded by the lock of the stories."""

    @property
    def is_pending(self) -> bool:
        return self.move is not None or self.ending is not None


class Ending:
    """The markers of one end of one transaction. Known by identity: the next end of the same id is another object.

    Guarded by the marker sender's lock: `remaining`, `is_cancelled`. `waiting` belongs to `EndWaiters`.
    """

    __slots__ = ("coordinator_epoch", "entry", "is_cancelled", "remaining", "retries", "transaction", "waiting")

    def __init__(self, entry: TransactionEntry, coordinator_epoch: int) -> None:
        self.entry = entry
        self.transaction = entry.transaction
        self.coordinator_epoch = coordinator_epoch
        self.remaining: set[TopicPartition] = set(entry.transaction.partitions)
        self.is_cancelled = False
        self.retries = 0  # of its completion
        self.waiting: list[Callable[[], None]] = []

    @property
    def is_commit(self) -> bool:
        return self.transaction.state is TransactionState.PREPARE_COMMIT


class Asked(NamedTuple):
    """The request that a decision answers."""

    request: str
    producer: Producer | None
    may_wait: bool = False
    """Flag of a request that waits for the end of the former transaction."""

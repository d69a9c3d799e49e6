"""A group with its offsets: committed, on their way into the log, and pending in open transactions."""

from collections.abc import Callable, Mapping
from typing import TypeAlias

from odradek.base.errors import ErrorCode
from odradek.base.logs import get_logger
from odradek.broker.coordinator.groups.core.group import Group, GroupState
from odradek.broker.coordinator.groups.core.group_records import CommittedOffset, StateRecord, encode_key
from odradek.broker.coordinator.groups.core.offsets import Offsets
from odradek.broker.coordinator.groups.core.pending_offsets import PendingOffsets
from odradek.broker.coordinator.state.core.state_batch import TransactionalProducer
from odradek.broker.coordinator.state.state_log import StateLog
from odradek.broker.coordinator.state.state_log_writer import StateEntry, StateLogWriter, Write
from odradek.broker.log.core.verification import VerificationGuard
from odradek.broker.purgatory.reaper import Timer
from odradek.model.topology import TopicPartition

log = get_logger(__name__)

OffsetChanges: TypeAlias = Mapping[TopicPartition, CommittedOffset | None]
"""New positions; None forgets one."""

_NO_CHANGES: OffsetChanges = {}


class GroupEntry(StateEntry):
    """Guarded by its lock, but any thread may look at the group's state."""

    __slots__ = ("group", "offsets", "pending", "shown", "timer")

    def __init__(
        self, group: Group, offsets: Offsets, state_log: StateLog, partition: int, pending: PendingOffsets | None = None
    ) -> None:
        super().__init__(group.id, state_log, partition)
        self.group = group
        self.offsets = offsets
        self.pending = pending or PendingOffsets()
        self.timer: Timer | None = None
        self.shown: tuple[GroupState, int] = (group.state, group.generation)  # last state in the broker's log lines

    def unsettled_offsets(self) -> set[TopicPartition]:
        """Partitions whose position may change by records that are written already."""
        unsettled = {tp for write in self.in_flight if isinstance(write, OffsetWrite) for tp in write.changes}
        return unsettled | self.pending.partitions if self.pending else unsettled


class OffsetWrite(Write):
    """Records of a group, with the offsets that they change once they are replicated."""

    __slots__ = ("changes", "held")

    def __init__(
        self,
        held: GroupEntry,
        changes: OffsetChanges,
        settle: Callable[[ErrorCode], None],
        producer: TransactionalProducer | None = None,
        guard: VerificationGuard | None = None,
    ) -> None:
        super().__init__(held, [], settle, producer, guard)
        self.held = held
        self.changes = changes

    def apply(self) -> None:
        held = self.held
        if self.producer is not None:
            held.pending.add(self.producer.producer_id, self.changes)
            return
        for tp, committed in self.changes.items():
            if committed is None:
                held.offsets.pop(tp, None)
            else:
                held.offsets[tp] = committed
        if held.pending:
            held.pending.supersede(self.changes)


class TransactionEnd(Write):
    """A marker that is in the log already. It takes its place behind the records that were written before it."""

    __slots__ = ("committed", "held", "producer_id")

    def __init__(self, held: GroupEntry, producer_id: int, *, committed: bool) -> None:
        super().__init__(held, [], lambda error: None)
        self.held = held
        self.producer_id = producer_id
        self.committed = committed
        self.error = ErrorCode.NONE

    def apply(self) -> None:
        held = self.held
        for tp, position in held.pending.end(self.producer_id, committed=self.committed).items():
            if position is None:
                held.offsets.pop(tp, None)
            else:
                held.offsets[tp] = position


class GroupWriter:
    """Writes records of groups through the writer that all coordinators share."""

    def __init__(self, writer: StateLogWriter) -> None:
        self.turn = writer.turn
        self.deferred = writer.deferred
        self._writer = writer

    def append(
        self,
        held: GroupEntry,
        records: list[StateRecord],
        settle: Callable[[ErrorCode], None],
        changes: OffsetChanges = _NO_CHANGES,
        producer: TransactionalProducer | None = None,
        guard: VerificationGuard | None = None,
    ) -> None:
        """During a turn at the group. Offset changes are applied when the records are replicated."""
        write = OffsetWrite(held, changes, settle, producer, guard)
        try:
            write.records = [(encode_key(key), value) for key, value in records]
        except Exception:
            log.exception("group records can't be encoded", group=held.group.id)
            write.error = ErrorCode.UNKNOWN_SERVER_ERROR
        self._writer.append(write)

    def end_transaction(self, held: GroupEntry, producer_id: int, *, committed: bool) -> None:
        """During a turn at the group: positions that the producer's transaction had pending count, or are dropped."""
        self._writer.append(TransactionEnd(held, producer_id, committed=committed))

"""A log of transactional producers beside a plain list of what was written, from which the truth can be told again."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from log_building import NEVER, SMALL, START_MS, TP, batch

from odradek.base.clock import ManualClock
from odradek.broker.log.core.config import LogConfig
from odradek.broker.log.core.validation import BatchRules, Origin
from odradek.broker.log.core.verification import VERIFICATION_OFF
from odradek.broker.log.files.log_environment import LogEnvironment
from odradek.broker.log.files.partition_log import PartitionLog
from odradek.format.transaction_index import AbortedTransaction
from odradek.protocol.transaction_markers import EndTransactionMarker

CLIENT = BatchRules()
COORDINATOR = BatchRules(origin=Origin.COORDINATOR)


class Written(NamedTuple):
    offset: int
    producer_id: int
    kind: str  # data, commit or abort


class TransactionalLog:
    def __init__(self, directory: Path, config: LogConfig = SMALL) -> None:
        self.directory = directory
        self.config = config
        self.written: list[Written] = []
        self.log = self._open(clean=False, recovery_point=0)

    def _open(self, *, clean: bool, recovery_point: int) -> PartitionLog:
        return PartitionLog.open(
            self.directory,
            TP,
            self.config,
            recovery_point=recovery_point,
            clean=clean,
            environment=LogEnvironment(clock=ManualClock(START_MS), background=NEVER),
        )

    def put(self, producer_id: int, value: str = "v") -> None:
        entry = self.log.producers.entries.get(producer_id)
        sequence = 0 if entry is None else entry.next_sequence(0)
        data = batch(value, producer_id=producer_id, producer_epoch=0, base_sequence=sequence, transactional=True)
        result = self.log.append_as_leader(data, leader_epoch=0, rules=CLIENT, guard=VERIFICATION_OFF)
        self.written.append(Written(result.first_offset, producer_id, "data"))

    def end(self, producer_id: int, *, committed: bool) -> None:
        marker = EndTransactionMarker(producer_id, 0, 0, committed)
        result, _ = self.log.append_markers([marker], leader_epoch=0, rules=COORDINATOR)
        if result is not None:
            self.written.append(Written(result.first_offset, producer_id, "commit" if committed else "abort"))

    def copy(self, leader: "TransactionalLog") -> None:
        """Follow another log: all that is missing comes in one fetch."""
        source, end = leader.log, leader.log.log_end_offset
        while (offset := self.log.log_end_offset) < end:
            self.log.append_as_follower(memoryview(source.read(offset, 1 << 20, upper_bound=end).records.read()))
        self.written = [*leader.written]

    def truncate(self, offset: int) -> None:
        self.log.truncate_to(offset)
        self.written = [each for each in self.written if each.offset < offset]

    def crash(self) -> None:
        """The process is gone; what it had flushed is told by the recovery point."""
        recovery_point = self.log.recovery_point
        self.log.close(clean=False)
        self.log = self._open(clean=False, recovery_point=recovery_point)

    def restart(self) -> None:
        self.log.close()
        self.log = self._open(clean=True, recovery_point=self.log.recovery_point)

    # ---- the truth, from what was written

    def open_transactions(self) -> dict[int, int]:
        """First offset by producer id."""
        found: dict[int, int] = {}
        for offset, producer_id, kind in self.written:
            if kind == "data":
                found.setdefault(producer_id, offset)
            else:
                found.pop(producer_id, None)
        return found

    def aborted(self) -> list[AbortedTransaction]:
        opened: dict[int, int] = {}
        found = []
        for offset, producer_id, kind in self.written:
            if kind == "data":
                opened.setdefault(producer_id, offset)
                continue
            first_offset = opened.pop(producer_id, None)
            if kind == "abort" and first_offset is not None:
                stable = min(opened.values(), default=offset + 1)
                found.append(AbortedTransaction(producer_id, first_offset, offset, stable))
        return sorted(found, key=lambda each: each.first_offset)

    def check(self) -> None:
        """The log says the same."""
        log = self.log
        log.producers.advance_high_watermark(log.log_end_offset)
        opened = self.open_transactions()
        entries = log.producers.entries.values()
        assert {e.producer_id: e.txn_first_offset for e in entries if e.txn_first_offset >= 0} == opened
        assert log.producers.transactions.first_unstable_offset == min(opened.values(), default=None)
        assert log.aborted_transactions(0, log.log_end_offset) == self.aborted()
        assert log.log_end_offset == (self.written[-1].offset + 1 if self.written else 0)


Step = Callable[[TransactionalLog], None]

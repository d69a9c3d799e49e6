"""History of transactions: answers to their producers, records that readers of committed records saw, and the logs in
the end.

A transaction is visible in all of its partitions or in none: in all if the answer to its producer says committed, in
none if the producer aborted it or never asked for its end, in either if the answer to its commit never came.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from itertools import pairwise
from typing import Any

from odradek.broker.log.files.partition_log import PartitionLog
from odradek.model.topology import TopicPartition
from odradek.protocol.record_batch import batches
from odradek.protocol.records import read_records
from odradek.protocol.transaction_markers import read_marker
from odradek.sim.checkers.violation import Violation


class TxnOutcome(Enum):
    OPEN = "under way"
    COMMITTED = "committed"
    ABORTED = "aborted"
    UNKNOWN = "committed or aborted"


class TransactionHistory:
    def __init__(self) -> None:
        self.outcomes: dict[str, TxnOutcome] = {}
        self._written: dict[str, dict[TopicPartition, list[bytes]]] = {}
        self._seen: dict[TopicPartition, list[bytes]] = defaultdict(list)
        self._stable: dict[tuple[object, TopicPartition, int], int] = {}
        self._told: dict[TopicPartition, int] = {}
        self._contradictions: list[str] = []

    @property
    def committed(self) -> int:
        return sum(outcome is TxnOutcome.COMMITTED for outcome in self.outcomes.values())

    # ---- what producers do and hear

    def begin(self, transaction: str, records: Mapping[TopicPartition, list[bytes]]) -> None:
        self.outcomes[transaction] = TxnOutcome.OPEN
        self._written[transaction] = dict(records)

    def end(self, transaction: str, outcome: TxnOutcome) -> None:
        self.outcomes[transaction] = outcome

    # ---- what readers see

    def read(self, tp: TopicPartition, values: Sequence[bytes]) -> None:
        """Note records that a reader of committed ones was given."""
        for value in values:
            if self.outcomes[_transaction_of(value)] is TxnOutcome.ABORTED:
                self._contradictions.append(f"{tp}: a reader is given {value!r} of an aborted transaction")
        self._seen[tp] += values

    def stable(self, tp: TopicPartition, life: object, epoch: int, offset: int) -> None:
        """The last stable offset of a leader never goes back."""
        before = self._stable.get((life, tp, epoch), 0)
        if offset < before:
            raise Violation(f"{tp}: the last stable offset went back from {before} to {offset} in epoch {epoch}")
        self._stable[life, tp, epoch] = offset

    def end_told(self, tp: TopicPartition, offset: int) -> None:
        """The last stable offset that leaders tell, one after the other, never goes back (KIP-207)."""
        before = self._told.get(tp, 0)
        if offset < before:
            raise Violation(f"{tp}: the last stable offset {offset} is told, {before} was told before")
        self._told[tp] = offset

    def check(self) -> None:
        if self._contradictions:
            raise Violation(self._contradictions[0])

    # ---- in the end

    def check_end(self, visible: Mapping[TopicPartition, Sequence[bytes]], where: str) -> None:
        for tp, values in visible.items():
            self._check_order(tp, values, where)
        for transaction, records in self._written.items():
            there = [tp for tp, values in records.items() if set(values) <= set(visible[tp])]
            parts = [tp for tp, values in records.items() if set(values) & set(visible[tp])]
            if parts != there or (there and len(there) < len(records)):
                raise Violation(f"{where}: transaction {transaction} is visible in part, in {parts} of {list(records)}")
            outcome = self.outcomes[transaction]
            if (outcome is TxnOutcome.COMMITTED and not there) or (outcome is TxnOutcome.ABORTED and there):
                raise Violation(f"{where}: transaction {transaction} is {outcome.value}, visible in {there}")

    def check_read(self, visible: Mapping[TopicPartition, Sequence[bytes]]) -> None:
        """Check that readers, which are at the end, saw exactly the committed records."""
        for tp, values in visible.items():
            if self._seen[tp] != list(values):
                raise Violation(f"{tp}: a reader was given {self._seen[tp]}, committed are {list(values)}")

    @staticmethod
    def _check_order(tp: TopicPartition, values: Sequence[bytes], where: str) -> None:
        if len(set(values)) < len(values):
            raise Violation(f"{tp} at {where}: records are stored twice: {list(values)}")
        of_producers: dict[str, list[tuple[int, ...]]] = defaultdict(list)
        for value in values:
            producer, *numbers = value.decode().split("/")
            of_producers[producer].append(tuple(map(int, numbers)))
        for producer, numbered in of_producers.items():
            if any(later < earlier for earlier, later in pairwise(numbered)):
                raise Violation(f"{tp} at {where}: records of {producer} are out of order: {numbered}")


def _transaction_of(value: bytes) -> str:
    return value.decode().rpartition("/")[0]


def visible_values(data: bytes, aborted: Iterable[tuple[int, int]]) -> tuple[list[bytes], int]:
    """The values that a consumer of committed records shows of fetched bytes, and the offset behind the bytes.

    `aborted` are the first offsets and producers that the broker names; an aborted transaction ends with its marker.
    Their order is the broker's, as franz-go takes it: one that is behind a later one is not dropped in time.
    """
    begun = list(aborted)
    dropped: set[int] = set()
    values: list[bytes] = []
    end = -1
    for at, header in batches(data):
        end = header.next_offset
        while begun and begun[0][0] <= header.next_offset - 1:
            dropped.add(begun.pop(0)[1])
        if header.is_control:
            found = read_marker(data, at, header)
            if found is not None and not found[0].is_committed:
                dropped.discard(header.producer_id)
        elif header.producer_id not in dropped:
            values += [record.value or b"" for record in read_records(data, at, header)]
    return values, end


def committed_values(log: PartitionLog) -> list[bytes]:
    """The values of committed transactions in the order of their offsets, by the markers of the log."""
    found: list[tuple[int, bytes]] = []
    open_ones: dict[int, list[tuple[int, bytes]]] = defaultdict(list)
    offset, end = log.log_start_offset, log.log_end_offset
    while offset < end:
        data: Any = log.read(offset, 1 << 20, upper_bound=end).records.read()
        for at, header in batches(data):
            offset = header.next_offset
            if not header.is_control:
                records = [(each.offset, each.value or b"") for each in read_records(data, at, header)]
                open_ones[header.producer_id] += records
            elif (marker := read_marker(data, at, header)) is not None:
                written = open_ones.pop(header.producer_id, [])
                found += written if marker[0].is_committed else []
    return [value for _, value in sorted(found)]


def check_copies(values: Iterable[bytes], end: int) -> None:
    """Check that a program which copies a partition in transactions has copied each record before `end` once."""
    copied = sorted(int(value.decode().rpartition("/")[2]) for value in values)
    if copied != list(range(end)):
        twice = sorted({offset for offset in copied if copied.count(offset) > 1})
        missing = sorted(set(range(end)) - set(copied))
        raise Violation(f"copies: records {twice} are copied twice, {missing} not at all, the group is at {end}")

"""Transactions that are open at the position of the cleaner, which moves from the start of a log to the end of the
cleaned part.

It stops at the last stable offset, so the outcome of each transaction is known before its first batch is read. Data of
an aborted transaction is removed immediately. A marker stays until a cleaning finds no more data of its transaction;
from then on it has a delete horizon like a tombstone, so that a consumer that has read some of the data still finds the
marker.

Pure: it gets the headers and returns what may be removed.
"""

from collections.abc import Iterable
from heapq import heapify, heappop

from odradek.format.transaction_index import AbortedTransaction
from odradek.protocol.record_batch import BatchHeader
from odradek.protocol.records import ControlType


class CleanedTransactions:
    __slots__ = ("_aborted", "_coming", "_committed", "_with_data", "kept")

    def __init__(self, aborted: Iterable[AbortedTransaction]) -> None:
        self._coming = [(transaction.first_offset, slot, transaction) for slot, transaction in enumerate(aborted)]
        heapify(self._coming)
        self._aborted: dict[int, AbortedTransaction] = {}  # by producer id: begun and not ended yet
        self._with_data: set[int] = set()  # of these, the ones that data was met of
        self._committed: set[int] = set()  # producers with data of a transaction that will be committed
        self.kept: list[AbortedTransaction] = []
        """Aborted ones whose marker stays: they belong into the index of the segment that the marker goes to."""

    def may_drop_data(self, header: BatchHeader) -> bool:
        """Return True for an aborted batch. The caller asks for every data batch, in order."""
        self._begin_up_to(header.last_offset)
        if not header.is_transactional:
            return False
        if header.producer_id in self._aborted:
            self._with_data.add(header.producer_id)
            return True
        self._committed.add(header.producer_id)
        return False

    def may_drop_marker(self, header: BatchHeader, kind: ControlType | None, *, is_empty: bool) -> bool:
        """Return True if the marker's transaction has no data left. The caller asks for each control batch in order."""
        self._begin_up_to(header.last_offset)
        if is_empty:
            return True
        producer_id = header.producer_id
        if kind is ControlType.ABORT:
            transaction = self._aborted.pop(producer_id, None)
            if transaction is None or producer_id not in self._with_data:
                return True
            self._with_data.discard(producer_id)
            self.kept.append(transaction)
            return False
        if kind is ControlType.COMMIT:
            if producer_id not in self._committed:
                return True
            self._committed.discard(producer_id)
        return False

    def _begin_up_to(self, offset: int) -> None:
        while self._coming and self._coming[0][0] <= offset:
            transaction = heappop(self._coming)[2]
            self._aborted.setdefault(transaction.producer_id, transaction)

"""Transactions of a partition that read_committed consumers must wait for. Pure.

A transaction is ongoing from its first record to its marker, and unreplicated from its marker until the high watermark
is past the marker. The first unstable offset is the first offset of all of these. It is one attribute that the
partition's writer replaces: readers take no lock, and must never see a transaction between the two states.
"""

from collections.abc import Container, Iterable
from typing import NamedTuple


class CompletedTransaction(NamedTuple):
    producer_id: int
    first_offset: int
    last_offset: int  # the marker's
    is_aborted: bool
    last_stable_offset: int = -1
    """Limit for readers of committed records once the marker of an aborted one is replicated: the first transaction
    still open then, or the offset after the marker."""


class OpenTransactions:
    __slots__ = ("_ongoing", "_unreplicated", "first_unstable_offset")

    def __init__(self) -> None:
        self._ongoing: dict[int, int] = {}  # first offset → producer id, in ascending order
        self._unreplicated: dict[int, int] = {}  # first offset → offset of the marker
        self.first_unstable_offset: int | None = None

    def begin(self, first_offset: int, producer_id: int) -> None:
        """A transaction whose first record has the offset. A follower, who takes many batches at once, comes to it by
        producer: one that began earlier may come later."""
        ongoing = self._ongoing
        if first_offset in ongoing:
            return
        is_last = first_offset > next(reversed(ongoing), -1)
        ongoing[first_offset] = producer_id
        if not is_last:
            self._ongoing = dict(sorted(ongoing.items()))
        unstable = self.first_unstable_offset
        if unstable is None or first_offset < unstable:
            self.first_unstable_offset = first_offset

    def first_ongoing(self, ended: Container[int]) -> int | None:
        """The first offset of all ongoing transactions but these."""
        return next((first for first in self._ongoing if first not in ended), None)

    @property
    def first_ongoing_producer(self) -> int:
        """The producer of the first ongoing transaction, -1 without one."""
        return next(iter(tuple(self._ongoing.values())), -1)

    def complete(self, transaction: CompletedTransaction) -> None:
        """The marker is in the log."""
        self._ongoing.pop(transaction.first_offset, None)
        self._unreplicated[transaction.first_offset] = transaction.last_offset
        self._refresh()

    def advance_high_watermark(self, high_watermark: int) -> None:
        if self._unreplicated:
            self._unreplicated = {first: last for first, last in self._unreplicated.items() if last >= high_watermark}
            self._refresh()

    def load(self, ongoing: Iterable[tuple[int, int]]) -> None:
        """Start over with these pairs of first offset and producer id."""
        self._ongoing = dict(sorted(ongoing))
        self._unreplicated = {}
        self._refresh()

    def _refresh(self) -> None:
        first = next(iter(self._ongoing), None)
        if self._unreplicated:
            ended = min(self._unreplicated)
            first = ended if first is None else min(first, ended)
        self.first_unstable_offset = first

"""Aborted batches of a fetch, which read_committed consumers skip. Pure.

The broker answers the aborted transactions that touch what it sends: producer id and first offset of each, sorted by
first offset. From that offset on, all transactional batches of the producer are skipped, up to its abort marker.
"""

from collections.abc import Iterable, Iterator
from heapq import heapify, heappop

from odradek.protocol.record_batch import BatchHeader, Buffer
from odradek.protocol.transaction_markers import read_marker

PlacedBatch = tuple[int, BatchHeader]
"""The position of a batch, and its header."""


class AbortedBatches:
    """Tells aborted batches; asked of every batch from the beginning of a fetch on, in order."""

    __slots__ = ("_aborting", "_coming")

    def __init__(self, aborted: Iterable[tuple[int, int]]) -> None:
        """`aborted` are pairs of producer id and first offset."""
        self._coming = [(first_offset, producer_id) for producer_id, first_offset in aborted]
        heapify(self._coming)
        self._aborting: set[int] = set()

    def is_aborted(self, buf: Buffer, pos: int, header: BatchHeader) -> bool:
        if header.producer_id < 0:
            return False
        coming = self._coming
        while coming and coming[0][0] <= header.last_offset:
            self._aborting.add(heappop(coming)[1])
        if header.is_control:
            if header.producer_id in self._aborting:
                found = read_marker(buf, pos, header)
                if found is not None and not found[0].is_committed:
                    self._aborting.discard(header.producer_id)
            return False
        return header.is_transactional and header.producer_id in self._aborting


def committed_batches(
    buf: Buffer, placed: Iterable[PlacedBatch], aborted: Iterable[tuple[int, int]]
) -> Iterator[PlacedBatch]:
    """Yield the batches of a fetch without the aborted ones."""
    skipped = AbortedBatches(aborted)
    return ((pos, header) for pos, header in placed if not skipped.is_aborted(buf, pos, header))

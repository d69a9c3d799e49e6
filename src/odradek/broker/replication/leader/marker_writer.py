"""Markers of ended transactions, written to the partitions that this broker leads.

A transaction that committed offsets of a consumer group has records in `__consumer_offsets`. The group coordinator
keeps them aside until the marker is on all replicas, and is notified by partition.
"""

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, NamedTuple, Protocol, TypeAlias

from odradek.base.errors import ErrorCode
from odradek.base.logs import get_logger
from odradek.broker.replication.partition_table import PartitionTable
from odradek.model.topic_names import OFFSETS_TOPIC
from odradek.model.topology import TopicPartition
from odradek.protocol.transaction_markers import EndTransactionMarker

log = get_logger(__name__)

TOGETHER_MAX: Final = 100
"""Number of markers in one append: the lock of the partition is held for a few milliseconds."""


class TransactionCompletionListener(Protocol):
    """Is notified of markers in `__consumer_offsets` when they are on all replicas; also of repeated markers."""

    def transaction_completed(
        self, partition: TopicPartition, producer_id: int, ended_epoch: int, committed: bool
    ) -> None: ...


class MarkerToWrite(NamedTuple):
    marker: EndTransactionMarker
    partition: TopicPartition


MarkersDone: TypeAlias = Callable[[list[ErrorCode]], None]
MarkerSettled: TypeAlias = Callable[[int, ErrorCode], None]


class MarkerWriter:
    def __init__(self, replicas: PartitionTable, listener: TransactionCompletionListener, timeout_ms: int) -> None:
        self._replicas = replicas
        self._listener = listener
        self._timeout_ms = timeout_ms

    def write(self, markers: Sequence[MarkerToWrite], done: MarkersDone) -> None:
        """`done` gets a code for each marker, in order and exactly once, when each one is on all replicas or failed."""
        self.write_each(markers, _Results(len(markers), done).settle)

    def write_each(self, markers: Sequence[MarkerToWrite], settle: MarkerSettled) -> None:
        """`settle` gets the place and the code of each marker, once, when that one is on all replicas or failed: none
        waits for another partition than its own. Markers of one partition are one append."""
        by_partition: dict[TopicPartition, list[int]] = {}
        for slot, (marker, tp) in enumerate(markers):
            if marker.producer_id < 0 or marker.producer_epoch < 0:
                settle(slot, ErrorCode.INVALID_REQUEST)
            else:
                by_partition.setdefault(tp, []).append(slot)
        written: list[TopicPartition] = []
        for tp, slots in by_partition.items():
            for together in _runs(markers, slots):
                self._write(tp, markers, together, settle, written)
        # After the last one: a follower that waits for several of the partitions gets them in one answer.
        self._replicas.complete_fetches(written)

    def _write(
        self,
        tp: TopicPartition,
        markers: Sequence[MarkerToWrite],
        slots: Sequence[int],
        settle: MarkerSettled,
        written: list[TopicPartition],
    ) -> None:
        def settled(codes: Sequence[ErrorCode]) -> None:
            if any(codes):
                counted = Counter(code.name for code in codes if code is not ErrorCode.NONE)
                log.info("markers refused", partition=str(tp), codes=dict(counted))
            for slot, code in zip(slots, codes, strict=True):
                if code is ErrorCode.NONE and tp.topic == OFFSETS_TOPIC:
                    self._tell(markers[slot].marker, tp)
                settle(slot, code)

        together = [markers[slot].marker for slot in slots]
        self._replicas.append_markers(tp, together, timeout_ms=self._timeout_ms, done=settled, written=written)

    def _tell(self, marker: EndTransactionMarker, tp: TopicPartition) -> None:
        """Notify the listener; the marker is written even if this fails."""
        try:
            self._listener.transaction_completed(tp, marker.producer_id, marker.ended_epoch, marker.is_committed)
        except Exception:
            log.exception("completed transaction not handled", partition=str(tp), producer_id=marker.producer_id)


def _runs(markers: Sequence[MarkerToWrite], slots: Iterable[int]) -> Iterator[list[int]]:
    """Yield markers that may be one append: one of each producer, because the result of the next one depends on it."""
    run: dict[int, int] = {}
    for slot in slots:
        producer_id = markers[slot].marker.producer_id
        if producer_id in run or len(run) == TOGETHER_MAX:
            yield list(run.values())
            run = {}
        run[producer_id] = slot
    yield list(run.values())


class _Results:
    """The outcomes of one request's markers, which may come from several threads."""

    def __init__(self, count: int, done: MarkersDone) -> None:
        self._codes = [ErrorCode.NONE] * count
        self._left = count
        self._done = done
        self._lock = threading.Lock()
        if not count:
            done(self._codes)

    def settle(self, slot: int, code: ErrorCode) -> None:
        with self._lock:
            self._codes[slot] = code
            self._left -= 1
            is_last = not self._left
        if is_last:
            self._done(self._codes)

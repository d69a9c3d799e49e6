"""Markers of ended transactions, written to the partitions that this broker leads.

A transaction that committed offsets of a consumer group has records in `__consumer_offsets`. The group coordinator
keeps them aside until the marker is on all replicas, and is notified by partition.
"""

import threading
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol, TypeAlias

from odradek.base.errors import ErrorCode
from odradek.base.logs import get_logger
from odradek.broker.log.core.append_result import AppendResult
from odradek.broker.replication.partition_table import PartitionTable
from odradek.model.topic_names import OFFSETS_TOPIC
from odradek.model.topology import TopicPartition
from odradek.protocol.transaction_markers import EndTransactionMarker

log = get_logger(__name__)


class TransactionCompletionListener(Protocol):
    """Hears of markers in `__consumer_offsets` when they are on all replicas; of a repeated marker, again."""

    def transaction_completed(
        self, partition: TopicPartition, producer_id: int, producer_epoch: int, committed: bool
    ) -> None: ...


class MarkerToWrite(NamedTuple):
    marker: EndTransactionMarker
    partition: TopicPartition


MarkersDone: TypeAlias = Callable[[list[ErrorCode]], None]


class MarkerWriter:
    def __init__(self, replicas: PartitionTable, listener: TransactionCompletionListener, timeout_ms: int) -> None:
        self._replicas = replicas
        self._listener = listener
        self._timeout_ms = timeout_ms

    def write(self, markers: Sequence[MarkerToWrite], done: MarkersDone) -> None:
        """`done` gets a code for each marker, in order and exactly once, when each one is on all replicas or failed."""
        results = _Results(len(markers), done)
        written: list[TopicPartition] = []
        for slot, (marker, tp) in enumerate(markers):
            if marker.producer_id < 0 or marker.producer_epoch < 0:
                results.settle(slot, ErrorCode.INVALID_REQUEST)
                continue
            self._write_one(marker, tp, results, slot, written)
        # After the last one: a follower that waits for several of the partitions gets them in one answer.
        self._replicas.complete_fetches(written)

    def _write_one(
        self,
        marker: EndTransactionMarker,
        tp: TopicPartition,
        results: "_Results",
        slot: int,
        written: list[TopicPartition],
    ) -> None:
        def settled(code: ErrorCode, result: AppendResult | None) -> None:
            if code is not ErrorCode.NONE:
                log.info("marker refused", partition=str(tp), producer_id=marker.producer_id, code=code.name)
            elif tp.topic == OFFSETS_TOPIC:
                self._tell(marker, tp)
            results.settle(slot, code)

        self._replicas.append_marker(tp, marker, timeout_ms=self._timeout_ms, done=settled, written=written)

    def _tell(self, marker: EndTransactionMarker, tp: TopicPartition) -> None:
        """Notify the listener; the marker is written even if this fails."""
        try:
            self._listener.transaction_completed(tp, marker.producer_id, marker.producer_epoch, marker.is_committed)
        except Exception:
            log.exception("completed transaction not handled", partition=str(tp), producer_id=marker.producer_id)


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

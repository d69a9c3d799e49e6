"""Ends of transactions that are decided: markers to all partitions, then the completion in the log.

An end begins when its PrepareCommit or PrepareAbort is replicated, and is over when its completion is. Requests of the
producer's next transaction may wait for that (`EndWaiters`). A completion that can't be written is retried, because its
markers can't be undone.
"""

from functools import partial

from odradek.base.clock import Clock
from odradek.base.errors import ErrorCode
from odradek.base.logs import get_logger
from odradek.broker.coordinator.state.state_log_writer import StateLogWriter, Write
from odradek.broker.coordinator.transactions.batch_channel import Connect
from odradek.broker.coordinator.transactions.core import decisions
from odradek.broker.coordinator.transactions.core.transaction_records import encode_record
from odradek.broker.coordinator.transactions.end_waiters import EndWaiters
from odradek.broker.coordinator.transactions.marker_sender import (
    RETRIES_PER_LOG_LINE,
    MarkerSender,
    later,
    retry_backoff_ms,
)
from odradek.broker.coordinator.transactions.transaction_entry import Ending, TransactionEntry
from odradek.broker.coordinator.transactions.transaction_stories import TransactionStories
from odradek.broker.purgatory.reaper import ExpirationReaper
from odradek.broker.replication.leader.marker_writer import MarkerWriter
from odradek.model.metadata_image import MetadataCache

log = get_logger(__name__)


class TransactionEnds:
    def __init__(
        self,
        broker_id: int,
        metadata: MetadataCache,
        reaper: ExpirationReaper,
        clock: Clock,
        writer: StateLogWriter,
        connect: Connect,
        marker_writer: MarkerWriter,
        stories: TransactionStories,
    ) -> None:
        self.markers = MarkerSender(
            broker_id,
            metadata,
            reaper,
            connect,
            marker_writer.write_each,
            self._markers_written,
            writer.deferred,
            stories,
        )
        self.waiters = EndWaiters(reaper)
        self._writer = writer
        self._reaper = reaper
        self._clock = clock
        self._stories = stories
        self.append_retries = 0
        """Number of completions that wait for another attempt to write them, for metrics."""

    def stop(self) -> None:
        self.markers.stop()

    def begin(self, entry: TransactionEntry, coordinator_epoch: int) -> None:
        """Start the decided end of the entry's transaction. During a turn at it."""
        entry.ending = ending = Ending(entry, coordinator_epoch)
        entry.answers.append(partial(self._send, ending))

    def give_up(self, entry: TransactionEntry) -> None:
        """Leave an end to the next coordinator of its id. During a turn at the entry."""
        if entry.ending is not None:
            self.markers.cancel(entry.ending)
            entry.answers.append(partial(self.waiters.release, entry.ending))

    def _send(self, ending: Ending) -> None:
        """Markers for this broker's own partitions are written after the answers of all ends that were decided
        together, so that those of one partition are one append."""
        self.markers.send(ending)
        self._writer.put_off(self.markers.write_own)

    def _markers_written(self, ending: Ending) -> None:
        self._writer.turn(ending.entry, partial(self._complete, ending))

    def _complete(self, ending: Ending) -> None:
        entry = ending.entry
        if entry.ending is not ending or entry.move is not None or entry.is_gone:
            return
        completed = decisions.complete(entry.transaction, self._clock.now_ms())
        entry.move = completed

        def settle(error: ErrorCode) -> None:
            entry.move = None
            if not error:
                entry.transaction, entry.ending = completed, None
                self._stories.moved(entry, ending.transaction)
                if ending.waiting:
                    entry.answers.append(partial(self.waiters.release, ending))
            elif not entry.is_gone:
                if ending.retries % RETRIES_PER_LOG_LINE == 0:
                    what = "end of a transaction can't be written, retrying"
                    log.warning(what, transactional_id=entry.key, error=error, retries=ending.retries)
                self.append_retries += 1
                later(self._reaper, retry_backoff_ms(ending.retries), partial(self._complete_again, ending))
                ending.retries += 1

        self._writer.append(Write(entry, [encode_record(completed)], settle))

    def _complete_again(self, ending: Ending) -> None:
        self.append_retries -= 1
        self._markers_written(ending)

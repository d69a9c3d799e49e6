"""Supervises the queries of a run: starts them, restarts failed ones, and ends the run if one fails permanently.

A failed query costs the others nothing. It starts again from its checkpoint, after a pause that doubles; a query that
fails repeatedly without finishing a batch ends the run, with the reason.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from odradek.apps.pipeline.checkpoint import Checkpoint
from odradek.apps.pipeline.progress import QueryProgressBoard
from odradek.apps.pipeline.queries import Query
from odradek.apps.pipeline.spark_errors import error_text
from odradek.base.errors import FatalError
from odradek.base.logs import get_logger

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

log = get_logger(__name__)

ATTEMPTS_MAX = 5
# A Python worker that didn't start within Spark's ten seconds is a busy machine, not a fault of the query.
BUSY_ATTEMPTS_MAX = 20
_BUSY = "failed to connect back"
_FIRST_PAUSE_S = 1.0
_MESSAGES = {
    "Initializing sources": "its sources",
    "Getting offsets": "offsets from the brokers",
    "Waiting for data to arrive": "records",
    "Waiting for next trigger": "its next trigger",
}
_PAUSE_MAX_S = 30.0


@dataclass(slots=True)
class _Kept:
    query: Query
    running: "StreamingQuery | None" = None
    done: bool = False
    failures: int = 0  # in a row, without a batch between them
    restarts: int = 0
    last_batch: int = -1
    again_at_s: float = 0.0


class Supervisor:
    def __init__(
        self,
        queries: Sequence[Query],
        checkpoint: Checkpoint,
        generation: int,
        trigger: str | None,
        board: QueryProgressBoard,
    ) -> None:
        """Run the queries; without a trigger each one ends after the records present at the start."""
        self._checkpoint = checkpoint
        self._generation = generation
        self._trigger = trigger
        self._board = board
        self._kept = [_Kept(query) for query in queries]

    def tend(self) -> bool:
        """Start queries that should run; called about once a second. Return whether any work is left."""
        for kept in self._kept:
            if kept.running is not None and not kept.running.isActive:
                self._ended(kept)
            is_due = kept.running is None and not kept.done and time.monotonic() >= kept.again_at_s
            if is_due and not any(_is_initializing(other) for other in self._kept):
                self._start(kept)
            self._board.wait(kept.query.name, _waits_for(kept))
        return not all(kept.done for kept in self._kept)

    def stop(self) -> None:
        """Stop the queries. The running batch is abandoned and repeated at the next start."""
        for kept in self._kept:
            try:
                if kept.running is not None and kept.running.isActive:
                    kept.running.stop()
            except Exception as error:  # Py4J raises many kinds of errors while Spark shuts down
                log.info("query was gone before it was stopped", query=kept.query.name, error=error_text(error))

    def _start(self, kept: _Kept) -> None:
        from pyspark.errors import PySparkException

        try:
            kept.running = kept.query.start(self._checkpoint, self._generation, self._trigger)
        except PySparkException as error:  # a Spark Connect server starts the query's Python before it answers
            self._failed(kept, error)

    def _ended(self, kept: _Kept) -> None:
        assert kept.running is not None
        failure = kept.running.exception()
        kept.running = None
        if failure is None:
            kept.done = True
        else:
            self._failed(kept, failure)

    def _failed(self, kept: _Kept, failure: Exception) -> None:
        batch = next(progress.batch for progress in self._board.queries() if progress.name == kept.query.name)
        kept.failures = 1 if batch > kept.last_batch else kept.failures + 1
        kept.last_batch = batch
        reason = error_text(failure)
        if kept.failures >= (BUSY_ATTEMPTS_MAX if _BUSY in reason else ATTEMPTS_MAX):
            raise FatalError(f"query {kept.query.name} failed {kept.failures} times at the same place: {reason}")
        pause_s = min(_FIRST_PAUSE_S * 2 ** (kept.failures - 1), _PAUSE_MAX_S)
        kept.again_at_s = time.monotonic() + pause_s
        kept.restarts += 1
        self._board.note(kept.query.name, restarts=kept.restarts, error=reason)
        log.warning("query failed, starts again", query=kept.query.name, pause_s=pause_s, error=reason)


def _waits_for(kept: _Kept) -> str | None:
    """Return the reason for which a query waits; None while it runs a batch."""
    if kept.done:
        return None
    if kept.running is None:
        seconds = kept.again_at_s - time.monotonic()
        return f"its next start in {seconds:.0f} s" if seconds > 0 else "the start of another query"
    status = kept.running.status
    if status["isTriggerActive"]:
        return None if status["isDataAvailable"] else _MESSAGES.get(status["message"], status["message"])
    return "its next trigger" if status["isDataAvailable"] else "records"


def _is_initializing(kept: _Kept) -> bool:
    """Return whether the query still starts. Each source starts a Python process that must answer within Spark's ten
    seconds, so queries start one after the other."""
    running = kept.running
    return running is not None and running.isActive and running.status["message"].startswith("Initializing")

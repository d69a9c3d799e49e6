"""Spark's own reports on its queries, passed on: to a board, and as offsets of a consumer group.

For any streaming query on topics, through `format("odradek")` or Spark's own connector:

    spark.streams.addListener(GroupListener("127.0.0.1:9092"))

Then query `revenue` shows as group `spark-revenue`, with lag, in every tool. Spark's listener bus does not wait here: a
thread of our own handles the reports; of several waiting ones, only the last of each query counts.
"""

import json
import threading
from collections.abc import Callable, Mapping
from typing import Any

from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)

from odradek.apps.pipeline.progress import Offsets, QueryProgressBoard, by_partition, source_offsets
from odradek.base.errors import KafkaError
from odradek.base.logs import get_logger
from odradek.client.broker_client import ConnectionFailed, UnsupportedByBroker
from odradek.client.cluster_client import ClusterClient
from odradek.client.group_admin import commit_offsets

log = get_logger(__name__)

_COMMIT_TIMEOUT_MS = 10_000


class GroupListener(StreamingQueryListener):
    """Commits the offsets of every named query. `group_of` gives the group of a query, None: it has none."""

    def __init__(
        self,
        bootstrap: str,
        group_of: Callable[[str], str | None] = "spark-{}".format,
        board: QueryProgressBoard | None = None,
    ) -> None:
        self._committer = Committer(bootstrap)
        self._group_of = group_of
        self._board = board

    def onQueryStarted(self, event: QueryStartedEvent) -> None:
        pass

    def onQueryProgress(self, event: QueryProgressEvent) -> None:
        name = event.progress.name
        if not name:
            return
        report: Mapping[str, Any] = json.loads(event.progress.json)
        if self._board is not None:
            self._board.report(name, report)
        offsets, group = source_offsets(report), self._group_of(name)
        if offsets and group:
            self._committer.put(group, offsets)

    def onQueryIdle(self, event: QueryIdleEvent) -> None:
        pass

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:
        pass

    def close(self) -> None:
        """Commit the remaining offsets, and stop."""
        self._committer.close()


class Committer:
    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self._waiting: dict[str, Offsets] = {}
        self._changed = threading.Condition()
        self._closing = False
        self._thread = threading.Thread(target=self._run, name="group commits", daemon=True)
        self._thread.start()

    def put(self, group: str, offsets: Offsets) -> None:
        with self._changed:
            self._waiting[group] = offsets
            self._changed.notify()

    def close(self) -> None:
        with self._changed:
            self._closing = True
            self._changed.notify()
        self._thread.join(timeout=2 * _COMMIT_TIMEOUT_MS / 1000)

    def _run(self) -> None:
        with ClusterClient(self._bootstrap, client_id="odradek-pipeline", timeout_ms=_COMMIT_TIMEOUT_MS) as client:
            while True:
                with self._changed:
                    self._changed.wait_for(lambda: self._waiting or self._closing)
                    if not self._waiting:
                        return
                    waiting, self._waiting = self._waiting, {}
                for group, offsets in waiting.items():
                    try:
                        commit_offsets(client, group, by_partition(offsets))
                    except (KafkaError, ConnectionFailed, UnsupportedByBroker) as error:
                        log.warning("offsets of a query not committed", group=group, error=str(error))

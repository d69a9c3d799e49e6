"""Maintenance of a pipeline's tables during a run: a thread that maintains each table when it is due."""

import threading
from collections.abc import Mapping
from pathlib import Path

from odradek.apps.pipeline.tables.maintenance import is_due, maintain
from odradek.base.errors import FatalError
from odradek.base.logs import get_logger

log = get_logger(__name__)

_LOOK_SECONDS = 5.0
_STOP_SECONDS_MAX = 30.0


class TableMaintenance:
    """Tables by sink name, each with the number of versions that it keeps."""

    def __init__(self, tables: Mapping[str, tuple[Path, int]]) -> None:
        self._tables = dict(tables)
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="table maintenance", daemon=True)

    def start(self) -> None:
        if self._tables:
            self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        if self._thread.ident is not None:
            self._thread.join(_STOP_SECONDS_MAX)

    def _run(self) -> None:
        while not self._stopping.wait(_LOOK_SECONDS):
            for sink, (table, history) in self._tables.items():
                try:
                    if is_due(table):
                        done = maintain(table, history)
                        log.info("table maintained", sink=sink, files=done.files_after, before=done.files_before)
                except (FatalError, OSError, ValueError, RuntimeError) as error:
                    # batches continue without it; the next round tries again
                    log.warning("table maintenance failed", sink=sink, table=str(table), error=str(error))

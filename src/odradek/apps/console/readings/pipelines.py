"""Status of Spark pipelines: the file that each run keeps in its project.

The counts of a query are compared between readings; the last minutes are kept for a plot.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from odradek.apps.pipeline.toml_section import FILE_NAME
from odradek.base.clock import SYSTEM_CLOCK
from odradek.base.errors import FatalError
from odradek.client.cluster_client import ClusterClient
from odradek.local.pipeline_projects import read_projects
from odradek.local.process_start import process_start

_BYTES_MAX = 4 << 20
_DEPTH = 3
LIVE = ("starting", "running", "stopping")
NEVER_RAN = "never started"
POINTS_MAX = 120


@dataclass(frozen=True, slots=True)
class PipelinesState:
    at_ms: int
    documents: tuple[Mapping[str, Any], ...]
    rates: Mapping[tuple[str, str], tuple[float, ...]] = field(default_factory=dict)
    """Rows read per second of each project and query, the newest last."""


class PipelinesReader:
    """`data`: the directory of a local cluster, which may name more projects."""

    def __init__(self, projects: Sequence[Path], data: Path | None = None) -> None:
        self._given = projects
        self._data = data

    @property
    def _projects(self) -> list[Path]:
        named = read_projects(self._data) if self._data is not None else []
        return list(dict.fromkeys([*self._given, *named]))

    def read(self, client: ClusterClient, before: PipelinesState | None) -> PipelinesState:
        projects = self._projects
        if not projects:
            raise FatalError("No project is known here: give --pipeline DIR to `odradek console` or `odradek up`.")
        documents = tuple(document for project in projects for document in statuses(project))
        now = SYSTEM_CLOCK.now_ms()
        if before is None or now <= before.at_ms:
            return PipelinesState(now, documents)
        had, seconds = _totals(before.documents), (now - before.at_ms) / 1000
        grown = {key: max(0.0, total - had.get(key, total)) / seconds for key, total in _totals(documents).items()}
        rates = {key: (*before.rates.get(key, ())[1 - POINTS_MAX :], rate) for key, rate in grown.items()}
        return PipelinesState(now, documents, rates)


def _totals(documents: Sequence[Mapping[str, Any]]) -> dict[tuple[str, str], float]:
    return {
        (str(document.get("project")), str(query.get("name"))): float(query.get("input_rows_total") or 0)
        for document in documents
        for query in document["queries"]
        if isinstance(query, dict)
    }


def statuses(directory: Path) -> Iterator[Mapping[str, Any]]:
    """Return the projects in the directory and a few levels below it; one that never ran has a name alone."""
    if (directory / FILE_NAME).is_file() and not (directory / ".odradek" / "status.json").is_file():
        yield {
            "pipeline": directory.absolute().name,
            "state": NEVER_RAN,
            "project": str(directory.absolute()),
            "directory": str(directory.absolute()),
            "queries": [],
        }
    patterns = ["/".join(["*"] * depth + [".odradek", "status.json"]) for depth in range(_DEPTH + 1)]
    for path in sorted({path for pattern in patterns for path in directory.glob(pattern)}):
        try:
            if path.stat().st_size > _BYTES_MAX:
                continue
            document = json.loads(path.read_text())
        except (OSError, ValueError):
            continue
        if isinstance(document, dict) and isinstance(document.get("queries"), list):
            yield {**_with_death(document), "directory": str(path.parent.parent)}


def _with_death(document: dict[str, Any]) -> dict[str, Any]:
    """Mark a run as died if its status says that it runs and its process is gone."""
    pid = document.get("pid")
    started = process_start(pid) if isinstance(pid, int) else None
    if document.get("state") in LIVE and started != document.get("process_start"):
        return {
            **document,
            "state": "died",
            "reason": document.get("reason") or "the process has died without a message",
        }
    return document

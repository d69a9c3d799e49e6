"""What Spark pipelines tell of themselves: the status file that each run keeps in its project."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from odradek.base.errors import FatalError
from odradek.client.cluster_client import ClusterClient

_BYTES_MAX = 4 << 20
_DEPTH = 3
_LIVE = ("starting", "running", "stopping")
PipelinesState = tuple[Mapping[str, Any], ...]


class PipelinesReader:
    def __init__(self, projects: Sequence[Path]) -> None:
        self._projects = projects

    def read(self, client: ClusterClient, before: PipelinesState | None) -> PipelinesState:
        if not self._projects:
            raise FatalError("no project is known here: start the console with --pipeline DIR")
        return tuple(document for project in self._projects for document in statuses(project))


def statuses(directory: Path) -> Iterator[Mapping[str, Any]]:
    """Of the projects in the directory and a few levels below it."""
    patterns = ["/".join(["*"] * depth + [".odradek", "status.json"]) for depth in range(_DEPTH + 1)]
    for path in sorted({path for pattern in patterns for path in directory.glob(pattern)}):
        try:
            if path.stat().st_size > _BYTES_MAX:
                continue
            document = json.loads(path.read_text())
        except (OSError, ValueError):
            continue
        if isinstance(document, dict) and isinstance(document.get("queries"), list):
            yield _with_death(document)


def _with_death(document: dict[str, Any]) -> dict[str, Any]:
    """A run that says that it runs, and whose process is gone, has died."""
    if document.get("state") in _LIVE and _start_of(document.get("pid")) != document.get("process_start"):
        return {
            **document,
            "state": "died",
            "reason": document.get("reason") or "the process is gone, and said nothing",
        }
    return document


def _start_of(pid: object) -> str | None:
    try:
        return Path(f"/proc/{int(str(pid))}/stat").read_text().rpartition(")")[2].split()[19]
    except (OSError, IndexError, ValueError):
        return None

"""`.odradek/status.json`: the status of a run for other programs, replaced about once a second.

Its shape is documented in docs/pipelines.md, and read by `pipeline status`, the demo and the web console.
"""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from odradek.apps.pipeline.progress import Offsets, QueryProgress
from odradek.apps.pipeline.queries import SinkPlan, group_of
from odradek.apps.pipeline.spec import Pipeline
from odradek.local.process_start import process_start

FORMAT = 1
FILE_NAME = "status.json"
STARTING, RUNNING, STOPPING, STOPPED, FAILED, DIED = "starting", "running", "stopping", "stopped", "failed", "died"
_LIVE = (STARTING, RUNNING, STOPPING)
_DEPTH = 3


@dataclass(frozen=True, slots=True)
class RunFacts:
    """Constant facts of a run."""

    spark: str
    started_at: str
    generation: int
    metrics_port: int | None
    sinks: Mapping[str, Sequence[SinkPlan]]  # by query
    spark_ui: str | None = None


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def status_document(
    pipeline: Pipeline,
    facts: RunFacts,
    state: str,
    reason: str | None,
    queries: Sequence[QueryProgress],
    ends: Offsets,
) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "pipeline": pipeline.name,
        "project": str(pipeline.directory),
        "state": state,
        "reason": reason,
        "pid": os.getpid(),
        "process_start": process_start(os.getpid()),
        "spark": facts.spark,
        "spark_ui": facts.spark_ui,
        "bootstrap": pipeline.bootstrap,
        "generation": facts.generation,
        "metrics_port": facts.metrics_port,
        "started_at": facts.started_at,
        "updated_at": now(),
        "dead_letters": pipeline.dead_letters,
        "queries": [
            {
                **asdict(query),
                "target": ", ".join(sink.target for sink in facts.sinks[query.name]),
                "delivery": ", ".join(dict.fromkeys(sink.delivery for sink in facts.sinks[query.name])),
                "sinks": [asdict(sink) for sink in facts.sinks[query.name]],
                "group": group_of(pipeline.name, query.name),
                "lag": lag(query.offsets, ends),
            }
            for query in queries
        ],
    }


def lag(offsets: Offsets, ends: Offsets) -> int | None:
    """Return the number of records that wait; None while it is unknown."""
    waiting = 0
    for topic, partitions in offsets.items():
        if topic not in ends:
            return None
        waiting += sum(max(0, end - partitions.get(partition, 0)) for partition, end in ends[topic].items())
    return waiting if offsets else None


def write_status(pipeline: Pipeline, document: Mapping[str, Any]) -> None:
    """Write the status without an fsync: after a power cut the pipeline does not run."""
    pipeline.state_directory.mkdir(parents=True, exist_ok=True)
    temporary = pipeline.state_directory / f".{FILE_NAME}"
    temporary.write_text(json.dumps(document, indent=1))
    temporary.replace(pipeline.state_directory / FILE_NAME)


def read_status(project: Path) -> dict[str, Any] | None:
    """Return the status of the last run, with state `died` if it claims to run and does not."""
    try:
        document: dict[str, Any] = json.loads((project / ".odradek" / FILE_NAME).read_text())
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return None
    if document["state"] in _LIVE and process_start(document["pid"]) != document["process_start"]:
        document["state"] = DIED
        document["reason"] = document["reason"] or "the process is gone, and said nothing"
    return document


def find_statuses(directory: Path) -> Iterator[dict[str, Any]]:
    """Statuses of the projects in the directory and a few levels below it."""
    patterns = ["/".join(["*"] * depth + [".odradek", FILE_NAME]) for depth in range(_DEPTH + 1)]
    for path in sorted({path for pattern in patterns for path in directory.glob(pattern)}):
        document = read_status(path.parent.parent)
        if document is not None:
            yield document


def is_live(document: Mapping[str, Any]) -> bool:
    return document["state"] in _LIVE

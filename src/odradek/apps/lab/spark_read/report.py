"""Report of the rounds: a line for each way, and a line for each aim."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, Final

from odradek.apps.lab.spark_read.ways import CONNECTOR, CONNECTOR_ON_KAFKA, FILES, OURS, STREAM

Round = dict[str, dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Aim:
    """A ratio of speeds, and the least that it should be."""

    what: str
    one: str
    other: str
    least: float


AIMS: Final = (
    Aim('read: `format("odradek")` ÷ connector', OURS, CONNECTOR, 1 / 1.5),
    Aim('read: `format("odradek-log")` ÷ `format("odradek")`', FILES, OURS, 2.0),
    Aim("read: connector on Odradek ÷ on Apache Kafka", CONNECTOR, CONNECTOR_ON_KAFKA, 1.0),
    Aim('stream: `format("odradek")` ÷ connector', STREAM + OURS, STREAM + CONNECTOR, 0.7),
    Aim("stream: connector on Odradek ÷ on Apache Kafka", STREAM + CONNECTOR, STREAM + CONNECTOR_ON_KAFKA, 1.0),
)


def tables(rounds: Sequence[Round]) -> str:
    names = list(dict.fromkeys(name for each in rounds for name in each))
    lines = ["| way | rounds | rows | seconds | rows/s | CPU seconds | largest worker |", "|---|" + "---|" * 6]
    lines += [_line(name, [each[name] for each in rounds if name in each]) for name in names]
    lines += ["", "| speed | median (least to most) | aim |", "|---|---|---|"]
    for aim in AIMS:
        ratios = [each[aim.other]["s"] / each[aim.one]["s"] for each in rounds if {aim.one, aim.other} <= set(each)]
        if ratios:
            spread = f"{median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"
            lines.append(f"| {aim.what} | {spread} | ≥ {aim.least:.2f} |")
    return "\n".join(lines)


def _line(name: str, runs: list[dict[str, Any]]) -> str:
    seconds, cpu = median(run["s"] for run in runs), median(run["cpu_s"] for run in runs)
    rows, worker_mb = runs[0]["rows"], max(run["worker_mb"] for run in runs)
    worker = f"{worker_mb:.0f} MB" if worker_mb else "–"
    return f"| {name} | {len(runs)} | {rows:,} | {seconds:.1f} | {rows / seconds:,.0f} | {cpu:.1f} | {worker} |"

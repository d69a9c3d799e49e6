"""Turns the rounds of both systems into medians, ratios and verdicts, and writes them for people and for programs."""

import os
import platform
import re
import subprocess
import sysconfig
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from odradek.apps.lab.bench.clients import Metrics
from odradek.apps.lab.bench.figures import Figure, Target
from odradek.native.load import IMPLEMENTATION

# Kafka's tools count whole milliseconds: their 0 is anything below 1.
LEAST_MS = 0.5
ITSELF = " itself"

UNITS = {
    "start_s": "s to the first answer",
    "rss_mb": "MB resident",
    "rss_mb_max": "MB resident, greatest",
    "idle_cpu_percent": "% of a core",
    "cpu_s_per_gb": "broker CPU s per GB",
    "records_per_s": "records/s",
    "requests_per_s": "requests/s",
    "sequential_per_s": "requests/s, one at a time",
    "pipelined_per_s": "requests/s, 20 in flight",
    "p50_ms": "ms, p50",
    "p99_ms": "ms, p99",
    "avg_ms": "ms, mean",
    "append_cpu": "× CPU to append",
    "read_cpu": "× CPU to read",
    "extra_s": "s more than without it",
    "created_s": "s until all have leaders",
    "outage_s": "s until writes are taken again",
    "after_session_s": "s of these after ZooKeeper ended the session",
    "created_cpu_s": "broker CPU s to create them",
    "failover_cpu_s": "broker CPU s when the controller dies",
    "descriptors": "open files and sockets",
    "stable_s": "s until all have their parts",
    "commits_per_s": "commits/s",
    "commit_p50_ms": "ms to commit, p50",
    "commit_p99_ms": "ms to commit, p99",
    "transactions_per_s": "transactions/s",
    "heartbeats_per_s": "heartbeats/s",
    "left_s": "s until all have left",
    "listed_s": "s to list them all",
    "own_cpu_s": "CPU s",
    "alike_cpu_s": "CPU s typed as Kafka's",
    "own_s": "s until it has ended",
    "moved_s": "s until every partition has a leader",
    "handshakes_per_s": "handshakes/s",
    "logins_per_s": "logins/s",
    "cpu_ms_each": "broker CPU ms each",
    "acl_cpu": "× CPU to produce",
}


@dataclass(slots=True)
class Result:
    """All rounds of one figure: round by round, by the name of the system."""

    figure: Figure
    rounds: list[dict[str, Metrics]] = field(default_factory=list)
    skipped: str = ""
    """The reason for the absence of rounds."""
    floors: dict[str, Metrics] = field(default_factory=dict)
    """Values by language."""


@dataclass(frozen=True, slots=True)
class Row:
    """One metric of one figure, both systems."""

    group: str
    figure: str
    metric: str
    unit: str
    peer: float
    ours: float
    ratio: float
    """The median of the rounds' ratios: both halves of a round ran on the machine in the same state."""
    ratios: list[float]
    target: str
    bound: float
    higher_is_better: bool
    absolute: bool
    reached: bool
    noise: float
    floors: dict[str, float]

    @property
    def spread(self) -> float:
        """Greatest less least ratio of the rounds."""
        return max(self.ratios) - min(self.ratios)


def rows_of(result: Result, peer: str, ours: str) -> list[Row]:
    return [_row(result, target, peer, ours) for target in result.figure.targets if result.rounds]


def _row(result: Result, target: Target, peer: str, ours: str) -> Row:
    metric = target.metric
    theirs_by_round = [_value(each[peer], metric) for each in result.rounds]
    ours_by_round = [_value(each[ours], metric) for each in result.rounds]
    ratios = [a / b if b else float("inf") for a, b in zip(ours_by_round, theirs_by_round, strict=True)]
    ratio = median(ratios)
    bound = f"{'≥' if target.higher_is_better else '≤'} {target.bound:g}"
    return Row(
        group=result.figure.group,
        figure=result.figure.title,
        metric=metric,
        unit=UNITS[metric],
        peer=median(theirs_by_round),
        ours=median(ours_by_round),
        ratio=ratio,
        ratios=ratios,
        target=bound + ITSELF if target.absolute else bound,
        bound=target.bound,
        higher_is_better=target.higher_is_better,
        absolute=target.absolute,
        reached=target.reached(median(ours_by_round) if target.absolute else ratio),
        noise=max(each[name]["noise"] for each in result.rounds for name in (peer, ours)),
        floors={language: known[metric] for language, known in result.floors.items() if metric in known},
    )


def _value(metrics: Metrics, metric: str) -> float:
    value = metrics[metric]
    return max(value, LEAST_MS) if metric in ("p50_ms", "p99_ms") and value == 0 else value


def summary(results: Sequence[Result], peer: str, ours: str) -> str:
    """A line per figure, for the README: ratios, bold where the aim is reached."""
    lines = [f"| | {ours} ÷ {peer} (aim) |", "|---|---|"]
    memory: list[Row] = []
    for result in results:
        rows = rows_of(result, peer, ours)
        memory += [row for row in rows if row.metric == "rss_mb_max"]
        ratio_text = "; ".join(_ratio(row) for row in rows if row.metric != "rss_mb_max")
        lines.append(f"| {result.figure.title} | {ratio_text or result.skipped.replace('|', '/')} |")
    if memory:
        lines.append(f"| memory under load, the greatest of all | {_ratio(max(memory, key=lambda row: row.ratio))} |")
    return "\n".join(lines) + "\n"


def _ratio(row: Row) -> str:
    value = _number(row.ours) if row.target.endswith(ITSELF) else f"{row.ratio:.2f}"
    marked = f"**{value}**" if row.reached else value
    return f"{UNITS[row.metric].replace(',', '')} {marked} ({row.target})"


def markdown(results: Sequence[Result], facts: dict[str, Any], peer: str, ours: str) -> str:
    """Every metric with both systems' figures."""
    lines = [
        f"| figure | unit | {peer} | {ours} | {ours} ÷ {peer} | target | |",
        "|---|---|--:|--:|--:|---|---|",
    ]
    for result in results:
        lines += [_markdown_row(row) for row in rows_of(result, peer, ours)]
        if result.skipped:
            lines.append(f"| {result.figure.title} | | | | | | {result.skipped.replace('|', '/')} |")
    environment = ", ".join(f"{key} {value}" for key, value in facts.items())
    return "\n".join(lines) + f"\n\nMedians of {facts['rounds']} interleaved rounds; {environment}.\n"


def _markdown_row(row: Row) -> str:
    verdict = "reached" if row.reached else "**missed**"
    noisy = f", noise {row.noise:.0%}" if row.noise > 0.1 else ""
    ratio = "" if row.target.endswith(ITSELF) else f"{row.ratio:.2f} (±{row.spread / 2:.2f})"
    cells = [
        row.figure,
        UNITS[row.metric],
        _number(row.peer),
        _number(row.ours),
        ratio,
        row.target,
    ]
    return "| " + " | ".join(cells) + f" | {verdict}{noisy} |"


def as_json(results: Sequence[Result], facts: dict[str, Any], peer: str, ours: str) -> dict[str, Any]:
    return {
        "machine": facts,
        "rows": [asdict(row) for result in results for row in rows_of(result, peer, ours)],
        "figures": [
            {"figure": result.figure.title, "rounds": result.rounds, "skipped": result.skipped or None}
            for result in results
        ],
    }


def rows_to_keep(results: Sequence[Result], facts: dict[str, Any], peer: str, ours: str) -> list[dict[str, Any]]:
    """Rows for the page, each with where and when it was measured."""
    origin = {
        "measured": time.strftime("%Y-%m-%d"),
        "commit": _commit(),
        "rounds": facts["rounds"],
        "machine": ", ".join(f"{key} {value}" for key, value in facts.items() if key not in ("rounds", "quick")),
    }
    return [asdict(row) | origin for result in results for row in rows_of(result, peer, ours)]


def _commit() -> str:
    command = ["git", "describe", "--always", "--dirty"]
    output = subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    return output or "unknown"


def machine_facts() -> dict[str, Any]:
    cpu = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    java = subprocess.run(["java", "-version"], capture_output=True, text=True, check=False).stderr.splitlines()
    return {
        "CPU": cpu[1] if cpu else platform.machine(),
        "cores": os.cpu_count(),
        "memory GB": round(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 1e9),
        "kernel": platform.release(),
        "Python": f"{platform.python_version()} ({'optimised' if _is_optimised() else 'not optimised'} build)",
        "inner loop": IMPLEMENTATION,
        "Java": java[0] if java else "absent",
    }


def _is_optimised() -> bool:
    """Return whether the interpreter was built with profile-guided optimisation."""
    built = f"{sysconfig.get_config_var('CONFIG_ARGS')} {sysconfig.get_config_var('PY_CORE_CFLAGS')}"
    return "enable-optimizations" in built or "profile" in built


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"

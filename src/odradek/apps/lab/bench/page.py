"""The benchmark's page, its plots and the README's table, made from the JSON that the benchmark keeps.

A run replaces the figures that it measured and leaves the others, each with its own date and commit; so a short run
after a change keeps the page true. `python -m odradek.apps.lab.bench.page` writes them again without measuring.
"""

import json
import sys
from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from odradek.apps.lab.bench.plots import plot

KEPT = "docs/benchmarks.json"
PAGE = "docs/benchmarks.md"
PLOTS = "docs/pictures"
README = "README.md"
BEGIN, END = "<!-- bench: begin, written by `make bench` -->", "<!-- bench: end -->"
NOISY = 0.1
TITLES = {
    "process": "The process: start, memory, CPU at rest",
    "wire": "Requests without records",
    "produce": "Producing",
    "compressed": "Producing compressed records",
    "transactions": "Transactions",
    "kcat": "librdkafka (kcat)",
    "consume": "Consuming",
    "single": "One record per request",
    "latency": "End-to-end latency",
    "security": "TLS, logins and ACLs",
}
README_ROWS = (
    ("process", "start_s"),
    ("process", "rss_mb"),
    ("wire", "sequential_per_s"),
    ("produce", "records_per_s"),
    ("produce", "cpu_s_per_gb"),
    ("compressed", "records_per_s"),
    ("consume", "records_per_s"),
    ("consume", "cpu_s_per_gb"),
    ("single", "requests_per_s"),
    ("latency", "p50_ms"),
    ("cluster-produce", "records_per_s"),
    ("cluster-single", "requests_per_s"),
)

EXPLANATION = """\
The ratio is Odradek ÷ Kafka in the same round, both warm, in alternating rounds: the median of the rounds, ± half of
the range; bold: the aim is reached. *Floor*: the same system calls without a broker, in C and in Python, on the same
machine. *Noise*: the greatest share of all cores that other processes used during a round; above a tenth (bold) the
row is unreliable. In the plots, the bar is the ratio, the line is the range of its rounds, the dashes are the aim."""

Rows = Sequence[Mapping[str, Any]]


def merged(kept: Rows, fresh: Rows) -> list[Mapping[str, Any]]:
    """Merge rows: those of figures that were measured again are replaced in place, new ones come at the end."""
    measured = {(row["group"], row["figure"]) for row in fresh}
    by_key = {(row["group"], row["figure"], row["metric"]): row for row in fresh}
    rows: list[Mapping[str, Any]] = []
    for row in kept:
        if (row["group"], row["figure"]) not in measured:
            rows.append(row)
        elif (again := by_key.pop((row["group"], row["figure"], row["metric"]), None)) is not None:
            rows.append(again)
    rows += by_key.values()
    groups = {group: number for number, group in enumerate(dict.fromkeys(row["group"] for row in rows))}
    return sorted(rows, key=lambda row: groups[row["group"]])


def page(rows: Rows) -> str:
    """Tables and plots of all rows, group by group."""
    lines = [EXPLANATION]
    for group, members in groupby(rows, key=lambda row: row["group"]):
        of_group = list(members)
        lines += ["", f"### {_title(group)}", "", f"![{_title(group)}](pictures/{_picture(group)})", ""]
        lines += [
            "| | unit | Kafka | Odradek | ratio | aim | floor C, Python | noise |",
            "|---|---|--:|--:|--:|--:|--:|--:|",
        ]
        lines += [_line(row) for row in of_group]
        lines += ["", *_origins(of_group)]
    return "\n".join(lines) + "\n"


def readme_table(rows: Rows) -> str:
    lines = ["| Odradek ÷ Kafka | ratio, least to greatest of its rows | aim |", "|---|--:|--:|"]
    for group, metric in README_ROWS:
        chosen = [row for row in rows if row["group"] == group and row["metric"] == metric]
        if not chosen:
            continue
        ratios = sorted(row["ratio"] for row in chosen)
        span = f"{ratios[0]:.2f}" + (f" – {ratios[-1]:.2f}" if len(ratios) > 1 else "")
        aims = " or ".join(dict.fromkeys(row["target"] for row in chosen))
        lines.append(f"| {_title(group).lower()}: {chosen[0]['unit']} | {span} | {aims} |")
    return "\n".join(lines) + "\n"


def pictures(rows: Rows) -> dict[str, str]:
    """SVG by file name; a figure of Odradek alone has no ratio to draw."""
    return {
        _picture(group): plot(f"{_title(group)}: Odradek ÷ Kafka", [row for row in members if not row["absolute"]])
        for group, members in groupby(rows, key=lambda row: row["group"])
    }


def write(root: Path) -> None:
    """Write the page, its plots and the README's table from the kept rows."""
    rows = kept_rows(root)
    for name, svg in pictures(rows).items():
        (root / PLOTS / name).write_text(svg)
    for path, text in ((root / PAGE, page(rows)), (root / README, readme_table(rows))):
        path.write_text(between_marks(path.read_text(), text))


def keep(root: Path, fresh: Rows) -> None:
    rows = merged(kept_rows(root), fresh)
    (root / KEPT).write_text(json.dumps(rows, indent=1, ensure_ascii=False) + "\n")


def kept_rows(root: Path) -> list[Mapping[str, Any]]:
    path = root / KEPT
    return json.loads(path.read_text()) if path.exists() else []


def between_marks(document: str, text: str) -> str:
    before, found, rest = document.partition(BEGIN)
    _, ended, after = rest.partition(END)
    if not (found and ended):
        raise ValueError(f"a document without the marks {BEGIN} and {END}")
    return f"{before}{BEGIN}\n{text}{END}{after}"


def _title(group: str) -> str:
    if group in TITLES:
        return TITLES[group]
    base = group.removeprefix("cluster-")
    return f"Three brokers: {TITLES.get(base, base).lower()}" if base != group else group.capitalize()


def _picture(group: str) -> str:
    return f"bench-{group}.svg"


def _line(row: Mapping[str, Any]) -> str:
    half = (max(row["ratios"]) - min(row["ratios"])) / 2
    value = "" if row["absolute"] else f"{row['ratio']:.2f}"
    ratio = f"**{value}**" if row["reached"] and value else value
    spread = f" ±{half:.2f}" if value and len(row["ratios"]) > 1 else ""
    floors = ", ".join(_number(row["floors"][name]) for name in ("C", "Python") if name in row["floors"])
    noise = f"**{row['noise']:.0%}**" if row["noise"] > NOISY else f"{row['noise']:.0%}"
    numbers = [_number(row["peer"]), _number(row["ours"]), ratio + spread, row["target"], floors, noise]
    return "| " + " | ".join([row["figure"], row["unit"], *numbers]) + " |"


def _origins(rows: Rows) -> list[str]:
    origins = dict.fromkeys((row["measured"], row["commit"], row["rounds"], row["machine"]) for row in rows)
    return [f"{when}, commit {commit}, {rounds} rounds; {machine}." for when, commit, rounds, machine in origins]


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


if __name__ == "__main__":
    write(Path(sys.argv[1] if len(sys.argv) > 1 else "."))

"""Measures the time from the start of a run to the first row in its table, with 1,000 orders waiting.

    make bench BENCH='--only pipeline-start --rounds 5 --connector .tools/spark-connector'

The sample pipeline and the plain script run in turn, both with a trigger of one second and nothing in their table. The
very first run of the pipeline, which finds no archive of Spark's classes and makes one, is told by itself.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from statistics import median
from typing import Final

from odradek.apps.lab.bench.systems import BenchError
from odradek.apps.lab.pipeline_speed.comparison import (
    NAME,
    PIPELINE,
    PLAIN,
    Run,
    broker_in_new_directory,
    fill,
    pipeline,
    plain,
)
from odradek.apps.lab.pipeline_speed.family_cost import cpu_until_now_s
from odradek.apps.lab.pipeline_speed.written_rows import table_commits
from odradek.local.owned_process import Child, start_process

ORDERS: Final = 1_000
FIRST: Final = "pipeline, for the first time"
_FIRST_ROW_S_MAX: Final = 600.0
_END_S_MAX: Final = 120.0
_LOOK_S: Final = 0.02


def compare_starts(
    rounds: int, connector: Path | None, kafka_lib: Path, out: Path | None, settings: Mapping[str, str]
) -> None:
    with broker_in_new_directory(kafka_lib) as (broker, directory):
        fill(broker.bootstrap, ORDERS)
        ways: Mapping[str, Callable[[], list[str]]] = {
            PIPELINE: lambda: [word for word in pipeline(broker, directory, settings) if word != "--once"],
            PLAIN: lambda: [*plain(broker, directory, connector), "1 second"],
        }
        tables = {PIPELINE: directory / NAME / "data" / "orders", PLAIN: directory / "plain" / "orders"}
        first = _start(ways[PIPELINE](), tables[PIPELINE], directory)
        _show(FIRST, first)
        measured: list[dict[str, Run]] = []
        for number in range(rounds):
            names = (PIPELINE, PLAIN) if number % 2 == 0 else (PLAIN, PIPELINE)
            measured.append({name: _start(ways[name](), tables[name], directory) for name in names})
            for name in names:
                _show(name, measured[-1][name])
    if out:
        out.write_text(json.dumps([{FIRST: first}, *measured]))
    print(start_table(first, measured))


def _start(command: list[str], table: Path, directory: Path) -> Run:
    environment = os.environ | {"PYSPARK_PYTHON": command[0], "XDG_CACHE_HOME": str(directory / "cache")}
    log = directory / "start.log"
    log.unlink(missing_ok=True)
    began = time.time()
    process = start_process(command, log, environment)
    try:
        while (first := next(table_commits(table), None)) is None:
            if process.poll() is not None or time.time() > began + _FIRST_ROW_S_MAX:
                raise BenchError(f"no row in the table after {time.time() - began:.0f} s: {log.read_text()[-2000:]}")
            time.sleep(_LOOK_S)
        return {"first_row_s": first[0] - began, "cpu_s": cpu_until_now_s(process.pid)}
    finally:
        _end(process)


def _end(process: Child) -> None:
    """Stop the process as a user would, and wait for what it writes at its end."""
    with suppress(ProcessLookupError):
        os.kill(process.pid, 15)
    try:
        process.wait(_END_S_MAX)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, 9)
        process.wait()


def _show(name: str, run: Run) -> None:
    load = os.getloadavg()[0]
    print(f"{name}: {', '.join(f'{key} {value:.1f}' for key, value in run.items())}, load {load:.1f}", file=sys.stderr)


def start_table(first: Run, rounds: list[dict[str, Run]]) -> str:
    lines = [f"| | {FIRST} | {PIPELINE} | {PLAIN} |", "|---|---|---|---|"]
    for metric, at_first in first.items():
        ours, theirs = (median(each[name][metric] for each in rounds) for name in (PIPELINE, PLAIN))
        lines.append(f"| {metric} | {at_first:.1f} | {ours:.1f} | {theirs:.1f} |")
    return "\n".join(lines)

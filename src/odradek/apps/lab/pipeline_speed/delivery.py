"""Measures the cost of exactly-once topics: the same pipeline with either guarantee, every order into a topic.

    make bench BENCH='--only pipeline-delivery --rounds 5'

The time is that between the end of the first batch and the end of the last: the start of Spark is the same for both.
"""

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from statistics import median
from typing import Final

from odradek.apps.lab.bench.systems import BenchError, System
from odradek.apps.lab.pipeline_speed.comparison import NAME, broker_in_new_directory, fill, pipeline

DELIVERIES: Final = ("exactly-once", "at-least-once")
_BATCHES: Final = 10
_SINK: Final = """
[sinks.priced_topic]
from = "priced"
topic = "{name}.priced"
key = ["order_id"]
"""


def compare_deliveries(
    orders: int, rounds: int, kafka_lib: Path, out: Path | None, settings: Mapping[str, str]
) -> None:
    with broker_in_new_directory(kafka_lib) as (broker, directory):
        fill(broker.bootstrap, orders)
        measured: list[dict[str, float]] = []
        for number in range(rounds):
            names = DELIVERIES if number % 2 == 0 else DELIVERIES[::-1]
            measured.append({name: _batches_s(broker, directory, name, orders, settings) for name in names})
            seconds = ", ".join(f"{name} {measured[-1][name]:.1f} s" for name in names)
            print(f"round {number + 1}: {seconds}", file=sys.stderr, flush=True)
    if out:
        out.write_text(json.dumps(measured))
    exactly, at_least = (median(each[name] for each in measured) for name in DELIVERIES)
    ratio = median(each[DELIVERIES[0]] / each[DELIVERIES[1]] for each in measured)
    print("| | exactly once | at least once | ratio |\n|---|---|---|---|")
    print(f"| seconds of all batches but the first | {exactly:.1f} | {at_least:.1f} | {ratio:.2f} |")


def _batches_s(broker: System, directory: Path, delivery: str, orders: int, settings: Mapping[str, str]) -> float:
    command = pipeline(broker, directory, settings)
    declaration = directory / NAME / "pipeline.toml"
    chosen = f'[pipeline]\ndelivery = "{delivery}"\nrecords_per_batch_max = {max(1, orders // _BATCHES)}\n'
    text = declaration.read_text().replace("[pipeline]\n", chosen)
    declaration.write_text(text + _SINK.format(name=NAME))
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False)
    if done.returncode:
        raise BenchError(f"the pipeline with {delivery} ended with status {done.returncode}: {done.stderr[-2000:]!r}")
    return batches_s(directory / NAME / ".odradek" / "checkpoint" / "g1")


def batches_s(generation: Path) -> float:
    """Seconds from the end of the first batch to the end of the last, by Spark's own notes; over all queries."""
    total = 0.0
    for commits in generation.glob("*/commits"):
        ends = [path.stat().st_mtime for path in commits.iterdir() if path.name.isdecimal()]
        total += max(ends) - min(ends)
    return total

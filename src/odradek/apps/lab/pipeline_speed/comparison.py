"""Measures the sample pipeline beside the plain script, in turn, on one broker with orders that wait.

    make bench BENCH='--only pipeline --rounds 5 --connector .tools/spark-connector'

Both run as processes. Measured are the seconds from start to end, the seconds until the table has its first rows, CPU
seconds and the most memory of the process and its children, and the broker's CPU. Ratios are medians of the rounds'
ratios. Without --connector the plain script reads through `format("odradek")`.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Final

from odradek.apps.lab.bench.process_stats import cpu_seconds
from odradek.apps.lab.bench.systems import BenchError, Odradek, System
from odradek.apps.lab.pipeline_speed.family_cost import FamilyCost, metered_family
from odradek.apps.lab.pipeline_speed.written_rows import table_commits
from odradek.apps.pipeline.sample_orders import CATEGORIES, OrderMaker, Shop
from odradek.apps.pipeline.scaffold import init_project
from odradek.client.cluster_client import ClusterClient
from odradek.client.topic_admin import create_topic

NAME: Final = "shop"
PARTITIONS: Final = 6
PLAIN_JOB: Final = Path(__file__).with_name("plain_job.py")
_ORDERS_AT_ONCE: Final = 20_000
PIPELINE: Final = "pipeline"
PLAIN: Final = "plain script"

Run = dict[str, float]


def compare(
    orders: int,
    rounds: int,
    connector: Path | None,
    kafka_lib: Path,
    out: Path | None,
    settings: Mapping[str, str],
) -> None:
    """`settings` are set in the project's `[spark]`."""
    with broker_in_new_directory(kafka_lib) as (broker, directory):
        fill(broker.bootstrap, orders)
        ways = {
            PIPELINE: lambda: pipeline(broker, directory, settings),
            PLAIN: lambda: plain(broker, directory, connector),
        }
        tables = {PIPELINE: directory / NAME / "data" / "orders", PLAIN: directory / "plain" / "orders"}
        measured = [measure(broker, ways, tables, orders, number) for number in range(rounds)]
    if out:
        out.write_text(json.dumps(measured))
    print(table(measured))


@contextmanager
def broker_in_new_directory(kafka_lib: Path) -> Iterator[tuple[System, Path]]:
    """Start a broker in a directory that is removed with it; projects and tables may lie beside its data."""
    with tempfile.TemporaryDirectory(prefix="odradek-pipeline-") as name:
        directory = Path(name)
        broker = Odradek("Odradek", directory / "odradek", kafka_lib)
        try:
            broker.start()
            yield broker, directory
        finally:
            broker.stop()


def fill(bootstrap: str, orders: int) -> None:
    create_topics(bootstrap)
    maker = OrderMaker(1)
    with Shop(bootstrap, orders=f"{NAME}.orders", categories=f"{NAME}.categories") as shop:
        shop.describe(CATEGORIES)
        for made in range(0, orders, _ORDERS_AT_ONCE):  # an order that waits for a minute to be written is late
            shop.sell_at_once(maker.make(min(_ORDERS_AT_ONCE, orders - made), datetime.now(UTC)))


def create_topics(bootstrap: str) -> None:
    with ClusterClient(bootstrap) as client:
        create_topic(client, f"{NAME}.orders", partitions=PARTITIONS)
        create_topic(client, f"{NAME}.categories", partitions=1, configs={"cleanup.policy": "compact"})
        for name in ("plain-revenue", "plain-dead-letters"):
            create_topic(client, f"{NAME}.{name}", partitions=1)


def pipeline(broker: System, directory: Path, settings: Mapping[str, str]) -> list[str]:
    project = directory / NAME
    shutil.rmtree(project, ignore_errors=True)
    init_project(project, NAME, broker.bootstrap)
    declaration = project / "pipeline.toml"
    lines = "".join(f"{json.dumps(key)} = {json.dumps(value)}\n" for key, value in settings.items())
    declaration.write_text(declaration.read_text().replace("[spark]\n", f"[spark]\n{lines}"))
    return [sys.executable, "-m", "odradek", "pipeline", "run", str(project), "--once"]


def plain(broker: System, directory: Path, connector: Path | None) -> list[str]:
    shutil.rmtree(directory / "plain", ignore_errors=True)
    python = connector.absolute() / "bin" / "python" if connector else Path(sys.executable)
    source, ivy = ("kafka", python.parent.parent / "ivy") if connector else ("odradek", directory)
    return [str(python), str(PLAIN_JOB), broker.bootstrap, NAME, str(directory / "plain"), source, str(ivy)]


def measure(
    broker: System, ways: dict[str, Callable[[], list[str]]], tables: Mapping[str, Path], orders: int, number: int
) -> dict[str, Run]:
    found: dict[str, Run] = {}
    for name in list(ways) if number % 2 == 0 else list(ways)[::-1]:
        command = ways[name]()
        environment = os.environ | {"PYSPARK_PYTHON": command[0]}
        began, broker_cpu = time.time(), cpu_seconds(broker.broker_pids)
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment)
        cost: FamilyCost = metered_family(process)
        if process.returncode:
            raise BenchError(f"{name} ended with status {process.returncode}")
        seconds = time.time() - began
        used = cpu_seconds(broker.broker_pids) - broker_cpu
        found[name] = {
            "seconds": seconds,
            "first_row_s": min(at for at, _ in table_commits(tables[name])) - began,
            "rows_per_second": orders / seconds,
            "cpu_s": cost.cpu_s,
            "memory_mb": cost.memory_mb,
            "processes": cost.processes,
            "broker_cpu_s": used,
        }
        print(f"round {number + 1}: {name} {seconds:.1f} s, {cost.cpu_s:.1f} s of CPU", file=sys.stderr, flush=True)
    return found


def table(rounds: list[dict[str, Run]]) -> str:
    lines = [f"| | {PIPELINE} | {PLAIN} | ratio |", "|---|---|---|---|"]
    for metric in rounds[0][PIPELINE]:
        ours, theirs = ([each[name][metric] for each in rounds] for name in (PIPELINE, PLAIN))
        ratio = median(a / b for a, b in zip(ours, theirs, strict=True) if b)
        lines.append(f"| {metric} | {median(ours):,.1f} | {median(theirs):,.1f} | {ratio:.2f} |")
    return "\n".join(lines)

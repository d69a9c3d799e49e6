"""Measures the time from an order's event to its row in the table and, of a broken one, to its dead letter.

    make bench BENCH='--only pipeline-latency --rounds 5 --connector .tools/spark-connector'

The sample pipeline and the plain script run in turn, both with a trigger of one second, while a shop sells at a steady
rate. Orders of the first minute are left out: a JVM that has just started compiles. A row is there when the commit of
its table has its name, which is the file's time; a dead letter when a consumer with `read_committed` has it.
"""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Final

from odradek.apps.lab.bench.systems import BenchError
from odradek.apps.lab.pipeline_speed.comparison import (
    NAME,
    PIPELINE,
    PLAIN,
    broker_in_new_directory,
    create_topics,
    pipeline,
    plain,
)
from odradek.apps.lab.pipeline_speed.written_rows import table_commits
from odradek.apps.pipeline.sample_orders import CATEGORIES, OrderMaker, SentRecord, Shop
from odradek.local.owned_process import Child, start_process

RATE: Final = 1_000
WARM_S: Final = 60.0
MEASURED_S: Final = 60.0
_FIRST_ROW_S_MAX: Final = 180.0
_LAST_ROWS_S_MAX: Final = 120.0  # a row that isn't there then is lost
_LOOK_S: Final = 1.0
_TICK_S: Final = 0.05

Latencies = dict[str, float]


@dataclass(slots=True)
class Sold:
    """Sale times of orders by their number, and of broken ones by their bytes."""

    orders: dict[str, float] = field(default_factory=dict)
    broken: dict[bytes, float] = field(default_factory=dict)

    def add(self, records: Sequence[SentRecord], at: float) -> None:
        for record in records:
            if record.order is None:
                self.broken.setdefault(record.value, at)
            elif not record.is_copy:
                self.orders[str(record.order["order_id"])] = at


def compare_latencies(
    rounds: int, connector: Path | None, kafka_lib: Path, out: Path | None, settings: Mapping[str, str]
) -> None:
    measured: list[dict[str, Latencies]] = []
    for number in range(rounds):
        names = (PIPELINE, PLAIN) if number % 2 == 0 else (PLAIN, PIPELINE)
        measured.append({name: _one_run(name, connector, kafka_lib, settings) for name in names})
        for name in names:
            figures = ", ".join(f"{metric} {value:.2f}" for metric, value in measured[-1][name].items())
            print(f"round {number + 1}: {name}: {figures}", file=sys.stderr, flush=True)
    if out:
        out.write_text(json.dumps(measured))
    print(latency_table(measured))


def _one_run(name: str, connector: Path | None, kafka_lib: Path, settings: Mapping[str, str]) -> Latencies:
    """Each run has a broker of its own, so that none finds the records of another."""
    with ExitStack() as stack:
        broker, directory = stack.enter_context(broker_in_new_directory(kafka_lib))
        create_topics(broker.bootstrap)
        if name == PIPELINE:
            command = [word for word in pipeline(broker, directory, settings) if word != "--once"]
            table, letters = directory / NAME / "data" / "orders", f"{NAME}.dead-letters"
        else:
            command = [*plain(broker, directory, connector), "1 second"]
            table, letters = directory / "plain" / "orders", f"{NAME}.plain-dead-letters"
        sold, arrivals = Sold(), Arrivals(broker.bootstrap, letters)
        environment = os.environ | {"PYSPARK_PYTHON": command[0]}
        process = start_process(command, directory / "run.log", environment)
        stack.callback(_end, process)
        since = _sell(broker.bootstrap, table, process, sold)
        wanted = sum(at >= since for at in sold.orders.values())
        rows = _last_rows(table, sold, since, wanted)
        if process.poll() is not None:
            raise BenchError(f"{name} ended: {(directory / 'run.log').read_text()[-2000:]}")
        there = arrivals.stop()
        topic = [there[value] - at for value, at in sold.broken.items() if at >= since and value in there]
        return {
            **_percentiles("table", rows),
            **_percentiles("topic", topic),
            "table_missing": float(wanted - len(rows)),
        }


def _sell(bootstrap: str, table: Path, process: Child, sold: Sold) -> float:
    """Sell until orders were measured; return the time from which on they count."""
    maker, began, first_row, made = OrderMaker(1), time.time(), None, 0
    with Shop(bootstrap, orders=f"{NAME}.orders", categories=f"{NAME}.categories") as shop:
        shop.describe(CATEGORIES)
        while first_row is None or time.time() < first_row + WARM_S + MEASURED_S:
            due = int((time.time() - began) * RATE) - made
            made += due
            at = time.time()
            records = maker.make(due, datetime.now(UTC))
            sold.add(records, at)
            shop.sell_at_once(records)
            if first_row is None and next(table_commits(table), None):
                first_row = time.time()
            is_late = first_row is None and time.time() > began + _FIRST_ROW_S_MAX
            if is_late or process.poll() is not None:
                raise BenchError(f"no row in the table after {time.time() - began:.0f} s")
            time.sleep(_TICK_S)
    return first_row + WARM_S


def _last_rows(table: Path, sold: Sold, since: float, wanted: int) -> list[float]:
    """Return the latencies of all rows; the last orders come some batches later."""
    deadline = time.time() + _LAST_ROWS_S_MAX
    while len(rows := row_latencies(table, sold, since)) < wanted and time.time() < deadline:
        time.sleep(_LOOK_S)
    time.sleep(_LOOK_S)  # records of the last batch follow its rows
    return rows


class Arrivals:
    """Times at which dead letters came to a consumer of committed records."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self._settings = {
            "bootstrap.servers": bootstrap,
            "group.id": "latency",
            "isolation.level": "read_committed",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "allow.auto.create.topics": False,
            "topic.metadata.refresh.interval.ms": 1_000,
            "log_level": 0,
        }
        self._topic = topic
        self._there: dict[bytes, float] = {}
        self._is_stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="record reader", daemon=True)
        self._thread.start()

    def stop(self) -> Mapping[bytes, float]:
        self._is_stopped.set()
        self._thread.join()
        return self._there

    def _run(self) -> None:
        from confluent_kafka import Consumer

        consumer = Consumer(self._settings)
        try:
            consumer.subscribe([self._topic])
            while not self._is_stopped.is_set():
                for message in consumer.consume(500, 0.05):
                    value = message.value()
                    if message.error() is None and value is not None:
                        self._there.setdefault(value, time.time())
        finally:
            consumer.close()


def row_latencies(table: Path, sold: Sold, since: float) -> list[float]:
    import pyarrow.parquet as pq

    return [
        at - sold.orders[number]
        for at, files in table_commits(table)
        for file in files
        for number in pq.read_table(file, columns=["order_id"]).column(0).to_pylist()
        if sold.orders.get(number, 0.0) >= since
    ]


def _percentiles(name: str, seconds: Sequence[float]) -> Latencies:
    if not seconds:
        raise BenchError(f"nothing reached the {name}")
    ordered = sorted(seconds)
    return {f"{name}_p{share}_s": ordered[min(len(ordered) - 1, len(ordered) * share // 100)] for share in (50, 99)}


def _end(process: Child) -> None:
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def latency_table(rounds: list[dict[str, Latencies]]) -> str:
    lines = [f"| | {PIPELINE} | {PLAIN} |", "|---|---|---|"]
    for metric in rounds[0][PIPELINE]:
        ours, theirs = (median(each[name][metric] for each in rounds) for name in (PIPELINE, PLAIN))
        lines.append(f"| {metric} | {ours:,.2f} | {theirs:,.2f} |")
    return "\n".join(lines)

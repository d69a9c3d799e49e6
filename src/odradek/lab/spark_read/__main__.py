"""Measures a read of one topic by Spark in three ways, in turn: the connector's, ours, and from the files.

    odradek up --detach --data bench-data
    python -m odradek.lab.spark_read --data bench-data --fill 10000000 --connector .tools/spark-connector

The connector runs in its own environment (`make soak` builds it): pyspark 4.0.0 and the connector made for it. What is
said of ratios is the median of the rounds' own ratios, because the rounds' times drift with the machine.
"""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, Final

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

READER: Final = Path(__file__).with_name("reader_process.py")
PARTITIONS: Final = 4
VALUE_BYTES: Final = 100


@dataclass(frozen=True, slots=True)
class Way:
    """One way to read, as a process that does it on demand."""

    name: str
    process: subprocess.Popen[str]

    def read(self) -> dict[str, Any]:
        assert self.process.stdin is not None
        self.process.stdin.write("read\n")
        self.process.stdin.flush()
        answer: dict[str, Any] = json.loads(self.line())
        return answer

    def line(self) -> str:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"{self.name}: ended with code {self.process.wait()}")
        return line

    def end(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(60)


def main() -> int:
    options = parse_options()
    if options.fill:
        fill(options.bootstrap_server, options.topic, options.fill)
    with ExitStack() as stack:
        ways = start_all(options)
        for way in ways:
            stack.callback(way.end)
        for way in ways:
            assert way.line().strip() == "ready", way.name
        for way in ways:
            way.read()  # the first read pays for compilers and connections
        rounds: list[dict[str, dict[str, Any]]] = []
        for number in range(options.rounds):
            rounds.append({way.name: way.read() for way in turn(ways, number)})
            told = (f"{way.name} {rounds[-1][way.name]['s']:.2f} s" for way in ways)
            print(f"round {number + 1}: {', '.join(told)}", file=sys.stderr, flush=True)
    print(table(rounds, [way.name for way in ways]))
    return 0


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="odradek.lab.spark_read", description=__doc__.split("\n\n")[0])
    parser.add_argument("--bootstrap-server", default="127.0.0.1:9092")
    parser.add_argument("--data", type=Path, help="the cluster's directory; without it, files aren't read")
    parser.add_argument("--topic", default="spark-read")
    parser.add_argument(
        "--fill", type=int, default=0, metavar="N", help="create the topic with so many records of 100 B"
    )
    parser.add_argument(
        "--connector", type=Path, help="environment with pyspark 4.0.0; without it, only ours is measured"
    )
    parser.add_argument("--rounds", type=int, default=5)
    return parser.parse_args()


def fill(bootstrap: str, topic: str, records: int) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(topic, PARTITIONS, 1)])[topic].result(30)
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 50, "batch.size": 131072})
    value = b"x" * VALUE_BYTES
    for number in range(records):
        while True:
            try:
                producer.produce(topic, value, b"%09d" % number, number % PARTITIONS)
                break
            except BufferError:
                producer.poll(0.1)
        if number % 10_000 == 0:
            producer.poll(0)
    if producer.flush(300):
        raise SystemExit("not all records were acknowledged")


def start_all(options: argparse.Namespace) -> list[Way]:
    brokers = {"kafka.bootstrap.servers": options.bootstrap_server, "subscribe": options.topic}
    ways = [start("odradek", Path(sys.executable), brokers)]
    if options.data:
        ways.append(start("odradek-log", Path(sys.executable), {"path": str(options.data), "topics": options.topic}))
    if options.connector:
        ways.append(start("kafka", options.connector.absolute() / "bin" / "python", brokers))
    return ways


def start(reads_with: str, python: Path, options: Mapping[str, str]) -> Way:
    ivy = python.parent.parent / "ivy"
    command = [str(python), str(READER), reads_with, str(ivy), *(f"{name}={value}" for name, value in options.items())]
    environment = os.environ | {"PYSPARK_PYTHON": str(python)}
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment
    )
    return Way(reads_with, process)


def turn(ways: list[Way], number: int) -> list[Way]:
    """Each round begins with another, so that none always comes after the same."""
    start = number % len(ways)
    return ways[start:] + ways[:start]


def table(rounds: list[dict[str, dict[str, Any]]], names: list[str]) -> str:
    lines = [
        "| read with | rows | seconds | rows/s | CPU seconds | time ÷ odradek | CPU ÷ odradek |",
        "|---|" + "---|" * 6,
    ]
    for name in names:
        seconds = median(each[name]["s"] for each in rounds)
        cpu = median(each[name]["cpu_s"] for each in rounds)
        rows = rounds[0][name]["rows"]
        time_ratio = median(each[name]["s"] / each["odradek"]["s"] for each in rounds)
        cpu_ratio = median(each[name]["cpu_s"] / each["odradek"]["cpu_s"] for each in rounds)
        lines.append(
            f'| `format("{name}")` | {rows:,} | {seconds:.2f} | {rows / seconds:,.0f} | {cpu:.2f} '
            f"| {time_ratio:.2f} | {cpu_ratio:.2f} |"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())

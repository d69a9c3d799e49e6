"""Measures Spark on topics: reads and streams, by its own connector and by ours, on our brokers and on Apache Kafka's.

    make kafka-jars
    python -m odradek.apps.lab.spark_read --records 10000000 --connector .tools/spark-connector --directory spark-bench

One broker of each kind is started on free ports, its topic filled where it isn't yet, and every way to read it is
measured in turn, round by round, in Spark sessions on local[2] that stay. Ratios are medians of the rounds' ratios,
because times drift with the machine. With --directory the topics stay: `--rounds 0` only fills them, later runs
measure. The connector runs in its own environment (`make soak` builds it): pyspark 4.0.0 and the connector made for it.
"""

import json
import os
import signal
import sys
import tempfile
from contextlib import ExitStack
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Final

from odradek.apps.cli.grammar.declaration import Option
from odradek.apps.cli.grammar.noun import command
from odradek.apps.cli.main import run as run_command_line
from odradek.apps.cli.usage import WrongUsage
from odradek.apps.lab.bench.systems import Kafka, Odradek, System
from odradek.apps.lab.spark_read.filling import fill
from odradek.apps.lab.spark_read.report import Round, tables
from odradek.apps.lab.spark_read.sessions import Session
from odradek.apps.lab.spark_read.ways import Way, reading_ways, streaming_ways

TOPIC: Final = "events"
WARM_TOPIC: Final = "few-events"
WARM_RECORDS: Final = 200_000


class Figures(StrEnum):
    READ = "read"
    STREAM = "stream"


@dataclass(frozen=True, slots=True)
class ReadOptions:
    records: Annotated[int, Option("--records", min=1, help="Records of 100 bytes in the topic.")] = 1_000_000
    rounds: Annotated[int, Option("--rounds", min=0, help="Rounds of each way; 0: only fill the topics.")] = 3
    only: Annotated[Figures | None, Option("--only", help="One of the two figures.", show_default=False)] = None
    skip: Annotated[
        str, Option("--skip", metavar="WAY,…", help="Ways to leave out, by their names.", show_default=False)
    ] = ""
    connector: Annotated[
        Path | None, Option("--connector", help="Environment with pyspark 4.0.0.", show_default="our source alone")
    ] = None
    directory: Annotated[
        Path | None, Option("--directory", help="Where the data of the brokers stay.", show_default="they don't stay")
    ] = None
    out: Annotated[
        Path | None, Option("--out", help="Add the measured times to this file, as JSON.", show_default=False)
    ] = None


@command(examples=["odradek lab spark-read --records 10000000 --connector .tools/spark-connector --directory spark"])
def spark_read(options: ReadOptions) -> None:
    """Measure reads and streams of topics by Spark, on brokers of both kinds."""
    kafka_lib = Path(os.environ.get("ODRADEK_KAFKA_LIB", ".tools/kafka-lib")).absolute()
    if not list(kafka_lib.glob("kafka-clients-*.jar")):
        raise WrongUsage(f"no Kafka jars in {kafka_lib}: run `make kafka-jars` or set ODRADEK_KAFKA_LIB")
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))  # not without stopping what was started
    with ExitStack() as stack:
        directory = options.directory or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="odradek-spark-")))
        ours, kafka = start_systems(options, kafka_lib, directory.absolute(), stack)
        if not options.rounds:
            return
        work = stack.enter_context(tempfile.TemporaryDirectory(prefix="work-", dir=directory))
        ways = start_ways(options, ours, kafka, Path(work), stack)
        print(tables(measure(ways, options)))


def start_systems(
    options: ReadOptions, kafka_lib: Path, directory: Path, stack: ExitStack
) -> tuple[System, System | None]:
    """Brokers with both topics in them; Apache Kafka only where the connector is there to read from it."""
    ours: System = Odradek("Odradek", directory / "odradek", kafka_lib)
    kafka: System | None = Kafka("Kafka", directory / "kafka", kafka_lib) if options.connector else None
    for system in (ours, kafka) if kafka else (ours,):
        stack.callback(system.stop)
        system.start()
        for topic, records in ((WARM_TOPIC, WARM_RECORDS), (TOPIC, options.records)):
            if fill(system.bootstrap, topic, records):
                print(f"filled {topic} of {system.name} with {records:,} records", file=sys.stderr, flush=True)
    return ours, kafka


def start_ways(options: ReadOptions, ours: System, kafka: System | None, work: Path, stack: ExitStack) -> list[Way]:
    own = Session.start("odradek", Path(sys.executable))
    stack.callback(own.end)
    connector = None
    if options.connector:
        connector = Session.start("kafka", options.connector.absolute() / "bin" / "python")
        stack.callback(connector.end)
    files = ours.directory / "data-0"
    ways: list[Way] = []
    if options.only is not Figures.STREAM:
        ways += reading_ways(own, connector, ours.bootstrap, kafka.bootstrap if kafka else None, files)
    if options.only is not Figures.READ:
        ways += streaming_ways(own, connector, ours.bootstrap, kafka.bootstrap if kafka else None, work)
    return [way for way in ways if way.name not in options.skip.split(",")]


def measure(ways: list[Way], options: ReadOptions) -> list[Round]:
    rounds: list[Round] = json.loads(options.out.read_text()) if options.out and options.out.exists() else []
    for way in ways:
        way.go(WARM_TOPIC, WARM_RECORDS)  # pays for compilers and connections
    for number in range(options.rounds):
        rounds.append({})
        for way in turn(ways, number):
            run = rounds[-1][way.name] = way.go(TOPIC, options.records)
            print(f"round {len(rounds)}: {way.name} {run['s']:.1f} s", file=sys.stderr, flush=True)
            if options.out:
                options.out.write_text(json.dumps(rounds))
    return rounds


def turn(ways: list[Way], number: int) -> list[Way]:
    """Order of the ways in a round: each round begins with another one, so that no way always follows the same one."""
    start = number % len(ways)
    return ways[start:] + ways[:start]


if __name__ == "__main__":
    sys.exit(run_command_line(["lab", "spark-read", *sys.argv[1:]]))

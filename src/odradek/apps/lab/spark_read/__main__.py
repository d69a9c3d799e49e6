"""Measures Spark on topics: reads and streams, by its own connector and by ours, on our brokers and on Apache Kafka's.

    make kafka-jars
    python -m odradek.apps.lab.spark_read --records 10000000 --connector .tools/spark-connector --directory spark-bench

One broker of each kind is started on free ports, its topic filled where it isn't yet, and every way to read it is asked
in turn, round by round, in Spark sessions on local[2] that stay. What is said of ratios is the median of the rounds'
own, because times drift with the machine. With --directory the topics stay: `--rounds 0` fills, later runs measure.
The connector runs in its own environment (`make soak` builds it): pyspark 4.0.0 and the connector made for it.
"""

import argparse
import json
import os
import signal
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from odradek.apps.lab.bench.systems import Kafka, Odradek, System
from odradek.apps.lab.spark_read.filling import fill
from odradek.apps.lab.spark_read.report import Round, tables
from odradek.apps.lab.spark_read.sessions import Session
from odradek.apps.lab.spark_read.ways import Way, reading_ways, streaming_ways

TOPIC: Final = "events"
WARM_TOPIC: Final = "few-events"
WARM_RECORDS: Final = 200_000


def main() -> int:
    options = parse_options()
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))  # not without stopping what was started
    with ExitStack() as stack:
        directory = options.directory or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="odradek-spark-")))
        ours, kafka = start_systems(options, directory.absolute(), stack)
        if not options.rounds:
            return 0
        work = stack.enter_context(tempfile.TemporaryDirectory(prefix="work-", dir=directory))
        ways = start_ways(options, ours, kafka, Path(work), stack)
        rounds = measure(ways, options)
        print(tables(rounds))
    return 0


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="odradek.apps.lab.spark_read", description=__doc__.split("\n\n")[0])
    parser.add_argument("--records", type=int, default=1_000_000, help="of 100 bytes, in the topic (1000000)")
    parser.add_argument("--rounds", type=int, default=3, help="0: only fill the topics")
    parser.add_argument("--only", choices=("read", "stream"), help="one of the two figures")
    parser.add_argument("--skip", default="", metavar="WAY,…", help="ways that aren't measured, by their names")
    parser.add_argument("--connector", type=Path, help="environment with pyspark 4.0.0; without it, ours alone")
    parser.add_argument("--directory", type=Path, help="where the brokers' data stay; by default they don't")
    parser.add_argument("--out", type=Path, help="write what was measured here, as JSON, added to what is there")
    options = parser.parse_args()
    options.kafka_lib = Path(os.environ.get("ODRADEK_KAFKA_LIB", ".tools/kafka-lib")).absolute()
    if not list(options.kafka_lib.glob("kafka-clients-*.jar")):
        parser.error(f"no Kafka jars in {options.kafka_lib}: run `make kafka-jars` or set ODRADEK_KAFKA_LIB")
    return options


def start_systems(options: argparse.Namespace, directory: Path, stack: ExitStack) -> tuple[System, System | None]:
    """Brokers with both topics in them; Apache Kafka only where the connector is there to read from it."""
    ours: System = Odradek("Odradek", directory / "odradek", options.kafka_lib)
    kafka: System | None = Kafka("Kafka", directory / "kafka", options.kafka_lib) if options.connector else None
    for system in (ours, kafka) if kafka else (ours,):
        stack.callback(system.stop)
        system.start()
        for topic, records in ((WARM_TOPIC, WARM_RECORDS), (TOPIC, options.records)):
            if fill(system.bootstrap, topic, records):
                print(f"filled {topic} of {system.name} with {records:,} records", file=sys.stderr, flush=True)
    return ours, kafka


def start_ways(
    options: argparse.Namespace, ours: System, kafka: System | None, work: Path, stack: ExitStack
) -> list[Way]:
    own = Session.start("odradek", Path(sys.executable))
    stack.callback(own.end)
    connector = None
    if options.connector:
        connector = Session.start("kafka", options.connector.absolute() / "bin" / "python")
        stack.callback(connector.end)
    files = ours.directory / "data-0"
    ways: list[Way] = []
    if options.only != "stream":
        ways += reading_ways(own, connector, ours.bootstrap, kafka.bootstrap if kafka else None, files)
    if options.only != "read":
        ways += streaming_ways(own, connector, ours.bootstrap, kafka.bootstrap if kafka else None, work)
    return [way for way in ways if way.name not in options.skip.split(",")]


def measure(ways: list[Way], options: argparse.Namespace) -> list[Round]:
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
    """Each round begins with another, so that none always comes after the same."""
    start = number % len(ways)
    return ways[start:] + ways[:start]


if __name__ == "__main__":
    sys.exit(main())

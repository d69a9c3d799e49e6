"""Runs the benchmark: figure by figure, round by round, the two systems in turn."""

import json
import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

from odradek.apps.cli.grammar.declaration import Option
from odradek.apps.cli.grammar.noun import command
from odradek.apps.cli.main import run as run_command_line
from odradek.apps.cli.usage import Exit, WrongUsage
from odradek.apps.lab.bench import page
from odradek.apps.lab.bench.cli_figures import cli_figures
from odradek.apps.lab.bench.clients import Clients, Metrics, Records, has_kcat, topic
from odradek.apps.lab.bench.cluster_figures import cluster_figures
from odradek.apps.lab.bench.figures import (
    LARGE_BATCHES,
    PARTITIONS,
    SMALL_BATCHES,
    Figure,
    Work,
    new_topic_name,
    one_broker_figures,
)
from odradek.apps.lab.bench.floor import measure_floors
from odradek.apps.lab.bench.group_figures import group_figures
from odradek.apps.lab.bench.process_stats import metered
from odradek.apps.lab.bench.report import Result, as_json, machine_facts, markdown, rows_of, rows_to_keep, summary
from odradek.apps.lab.bench.scale_figures import scale_figures
from odradek.apps.lab.bench.security_figures import listener_stores, security_figures
from odradek.apps.lab.bench.systems import Kafka, Odradek, System
from odradek.apps.lab.bench.transaction_figures import transaction_figures
from odradek.apps.lab.pipeline_speed.comparison import compare as compare_pipeline
from odradek.apps.lab.pipeline_speed.delivery import compare_deliveries
from odradek.apps.lab.pipeline_speed.latency import compare_latencies
from odradek.apps.lab.pipeline_speed.start import compare_starts
from odradek.base.errors import FatalError

DEFAULT_KAFKA_LIB = ".tools/kafka-lib"
PIPELINE = "pipeline"
PIPELINE_LATENCY = "pipeline-latency"
PIPELINE_START = "pipeline-start"
PIPELINE_DELIVERY = "pipeline-delivery"
PIPELINE_ORDERS = 1_000_000
DELIVERY_ORDERS = 300_000


@dataclass(frozen=True, slots=True)
class BenchOptions:
    rounds: Annotated[
        int | None,
        Option("--rounds", min=1, help="Rounds per figure; the median is reported.", show_default="5; 1 with --quick"),
    ] = None
    quick: Annotated[bool, Option("--quick", help="A tenth of the work.")] = False
    only: Annotated[
        str | None, Option("--only", metavar="GROUP,…", help="Groups of figures.", show_default="all of them")
    ] = None
    out: Annotated[Path | None, Option("--out", help="Write JSON here, and the table beside it as .md.")] = None
    page: Annotated[
        Path | None,
        Option("--page", help="Keep the rows in this checkout, and write its page and plots; not with --quick."),
    ] = None
    warm_s: Annotated[
        float | None,
        Option("--warm-s", help="Seconds for which both are warmed up first.", show_default="60; 5 with --quick"),
    ] = None
    log_gb: Annotated[float, Option("--log-gb", help="Size of the log that `open` opens.")] = 2.0
    directory: Annotated[
        Path | None,
        Option(
            "--directory", help="Where both systems keep their data.", show_default="the directory for temporary files"
        ),
    ] = None
    against_itself: Annotated[
        bool, Option("--against-itself", help="Kafka on both sides: the spread of ratios on this machine.")
    ] = False
    orders: Annotated[
        int | None,
        Option("--orders", min=1, help="Orders of `pipeline`.", show_default="1,000,000; 100,000 with --quick"),
    ] = None
    connector: Annotated[
        Path | None,
        Option("--connector", help="Environment with pyspark 4.0.0, for `pipeline`.", show_default="our own source"),
    ] = None
    spark: Annotated[
        list[str] | None,
        Option("--spark", metavar="KEY=VALUE", help="Setting of the Spark of `pipeline`; may be given again."),
    ] = None


@command(examples=["odradek lab bench --quick --only produce,latency"])
def bench(options: BenchOptions) -> None:
    """Measure Odradek beside Apache Kafka, on this machine, figure by figure."""
    kafka_lib = Path(os.environ.get("ODRADEK_KAFKA_LIB", DEFAULT_KAFKA_LIB)).absolute()
    if not list(kafka_lib.glob("kafka-clients-*.jar")):
        raise WrongUsage(f"no Kafka jars in {kafka_lib}: run `make kafka-jars` or set ODRADEK_KAFKA_LIB")
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))  # not without stopping the brokers
    if options.only in (PIPELINE, PIPELINE_LATENCY, PIPELINE_DELIVERY, PIPELINE_START):
        pipeline_figures(options, kafka_lib)
        return
    chosen = chosen_figures(options.only)
    with tempfile.TemporaryDirectory(prefix="odradek-bench-", dir=options.directory) as directory:
        if code := run(options, chosen, Path(directory), kafka_lib):
            raise Exit(code)


def pipeline_figures(options: BenchOptions, kafka_lib: Path) -> None:
    """Compare two ways into Spark, or two promises, not two brokers."""
    settings = dict(each.split("=", 1) for each in options.spark or () if "=" in each)
    rounds = options.rounds or (1 if options.quick else 3)
    if options.only == PIPELINE_LATENCY:
        compare_latencies(rounds, options.connector, kafka_lib, options.out, settings)
        return
    if options.only == PIPELINE_START:
        compare_starts(rounds, options.connector, kafka_lib, options.out, settings)
        return
    most = PIPELINE_ORDERS if options.only == PIPELINE else DELIVERY_ORDERS
    orders = options.orders or (most // 10 if options.quick else most)
    if options.only == PIPELINE:
        compare_pipeline(orders, rounds, options.connector, kafka_lib, options.out, settings)
    else:
        compare_deliveries(orders, rounds, kafka_lib, options.out, settings)


def chosen_figures(only: str | None) -> list[Figure]:
    figures = all_figures()
    groups = sorted({figure.group for figure in figures})
    wanted = groups if only is None else only.split(",")
    if unknown := set(wanted) - set(groups):
        raise WrongUsage(
            f"no figures {', '.join(sorted(unknown))}; there are {', '.join(groups)}, and alone {PIPELINE}, "
            f"{PIPELINE_LATENCY}, {PIPELINE_DELIVERY} and {PIPELINE_START}",
            "--only",
        )
    return [figure for figure in figures if figure.group in wanted]


def all_figures() -> list[Figure]:
    clusters = [*cluster_figures(), *scale_figures(), *group_figures(), *transaction_figures()]
    return [*one_broker_figures(), *clusters, *cli_figures(), *security_figures()]


def run(options: BenchOptions, chosen: Sequence[Figure], directory: Path, kafka_lib: Path) -> int:
    rounds = options.rounds or (1 if options.quick else 5)
    warm_s = (5.0 if options.quick else 60.0) if options.warm_s is None else options.warm_s
    checkout = None if options.quick or options.against_itself else options.page
    clients = Clients(kafka_lib, directory)
    clients.prepare()
    work = Work(clients, options.quick, options.log_gb / 10 if options.quick else options.log_gb)
    facts = machine_facts() | {"rounds": rounds, "quick": options.quick}
    peer_name, our_name = "Kafka", "Kafka again" if options.against_itself else "Odradek"
    results: list[Result] = []
    known_floors = measure_floors({figure.floor for figure in chosen if figure.floor}, directory, quick=options.quick)
    for size, is_secured in sorted({(figure.brokers, figure.is_secured) for figure in chosen}):
        kind = f"{size}{'-secured' * is_secured}"
        peer: System = Kafka(peer_name, directory / f"kafka-{kind}", kafka_lib, size)
        second = Kafka if options.against_itself else Odradek
        ours: System = second(our_name, directory / f"odradek-{kind}", kafka_lib, size)
        if is_secured:
            peer.security, ours.security = listener_stores(directory), listener_stores(directory)
        with ExitStack() as stack:
            for system in (peer, ours):
                stack.callback(stop, system)
                system.start()
            warm = False
            for figure in [each for each in chosen if (each.brokers, each.is_secured) == (size, is_secured)]:
                if not warm and figure.group not in ("process", "cluster-process"):
                    warm = True
                    try:
                        warm_up(work, (peer, ours), warm_s)
                    except FatalError as error:  # the figures show whether it mattered
                        print(f"warm-up failed: {error}", file=sys.stderr)
                results.append(measure(figure, work, (peer, ours), rounds))
                results[-1].floors = known_floors.get(figure.floor, {})
                tell(results[-1], peer.name, ours.name)
                save(options.out, results, facts, peer.name, ours.name)
                if checkout is not None:
                    page.keep(checkout, rows_to_keep(results[-1:], facts, peer.name, ours.name))
    if checkout is not None:
        page.write(checkout)
    print("\n" + markdown(results, facts, peer_name, our_name))
    print(summary(results, peer_name, our_name))
    return 0


def measure(figure: Figure, work: Work, systems: tuple[System, System], rounds: int) -> Result:
    result = Result(figure)
    if figure.needs_kcat and not has_kcat():
        result.skipped = "kcat is absent"
    if result.skipped:
        return result
    try:
        with ExitStack() as stack:
            measures = {system.name: stack.enter_context(figure.session(work, system)) for system in systems}
            for number in range(rounds):
                order = systems if number % 2 == 0 else systems[::-1]
                result.rounds.append({system.name: metered_round(system, measures[system.name]) for system in order})
    except Exception as error:  # one figure that fails must not cost the others
        result.skipped = "failed: " + " / ".join(str(error).splitlines())
    return result


def metered_round(system: System, measure_once: Callable[[], Metrics]) -> Metrics:
    with metered(system.broker_pids) as cost:
        metrics = measure_once()
    metrics = asdict(cost) | metrics
    if "bytes" in metrics:
        metrics["cpu_s_per_gb"] = metrics["broker_cpu_s"] / (metrics["bytes"] / 1e9)
    return metrics


def warm_up(work: Work, systems: tuple[System, System], seconds: float) -> None:
    """Warm up both systems, for the JVM's compiler: large and small batches, reads and single requests, in turn."""
    records = Records(work.scaled(200_000), 1024)
    end = time.monotonic() + seconds
    while True:
        for system in systems:
            with topic(system, new_topic_name(), PARTITIONS) as name:
                work.clients.producer_performance(system, name, records, LARGE_BATCHES, "1")
                work.clients.producer_performance(system, name, records, SMALL_BATCHES, "all")
                work.clients.probe("consume", system, name, records.count, 0)
                work.clients.probe("single", system, name, 1, 1, 2, "all")
        if time.monotonic() > end:
            return


def stop(system: System) -> None:
    with suppress(FatalError):
        system.stop()


def tell(result: Result, peer: str, ours: str) -> None:
    """Print one line per metric, as soon as it is known."""
    clock = time.strftime("%H:%M:%S")
    for row in rows_of(result, peer, ours):
        verdict = "reached" if row.reached else "MISSED"
        figures = f"{row.metric:18} {row.peer:12,.2f} {row.ours:12,.2f}  ratio {row.ratio:6.2f} ±{row.spread / 2:.2f}"
        print(f"{clock} {row.figure:46} {figures}  {row.target:12} {verdict}  noise {row.noise:.0%}", flush=True)
    if result.skipped:
        print(f"{clock} {result.figure.title:46} {result.skipped}", flush=True)


def save(out: Path | None, results: list[Result], facts: dict[str, Any], peer: str, ours: str) -> None:
    """Save the results. Called after every figure, so that an aborted run keeps its measurements."""
    if out is not None:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(json.dumps(as_json(results, facts, peer, ours), indent=1, ensure_ascii=False) + "\n")
        out.with_suffix(".md").write_text(f"{markdown(results, facts, peer, ours)}\n{summary(results, peer, ours)}")


if __name__ == "__main__":
    sys.exit(run_command_line(["lab", "bench", *sys.argv[1:]]))

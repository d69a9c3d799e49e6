"""`odradek pipeline`: data pipelines on Spark, from topics to tables and back."""

import os
import signal
import time
from collections.abc import Container, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from odradek.apps.cli.grammar.declaration import Argument, Option
from odradek.apps.cli.grammar.noun import Noun
from odradek.apps.cli.output import (
    DEFAULT_BOOTSTRAP,
    BootstrapOption,
    Format,
    FormatOption,
    note,
    print_json,
    print_rows,
    warn,
)
from odradek.apps.cli.pipeline_project import add_project_verbs
from odradek.apps.cli.pipeline_tables import add_table_verbs
from odradek.apps.cli.spark_output import log_in_errors, spark_output_in
from odradek.apps.cli.usage import Exit, WrongUsage
from odradek.apps.figures import plural
from odradek.apps.pipeline.checkpoint import make_directory
from odradek.apps.pipeline.cluster_side import absent_topics
from odradek.apps.pipeline.declaration import read_pipeline
from odradek.apps.pipeline.queries import plan
from odradek.apps.pipeline.replay import Replay, parse_offset
from odradek.apps.pipeline.replay import replay as prepare
from odradek.apps.pipeline.runner import RunOptions, run, validate
from odradek.apps.pipeline.scaffold import check_name, init_project
from odradek.apps.pipeline.session import LOCAL, SparkTarget, require_spark
from odradek.apps.pipeline.status import DIED, FAILED, find_statuses, is_live, read_status
from odradek.apps.pipeline.targets import short_target
from odradek.apps.pipeline.transform_checks import check_transforms
from odradek.base.errors import FatalError
from odradek.client.moments import parse_moment
from odradek.local.process_start import process_start

app = Noun("Data pipelines on Spark: from topics to tables and back.")

_STOP_SECONDS_MAX = 60.0
_STATUS_COLUMNS = ("group", "state", "target", "batch", "input_rows_total", "late_rows_total", "lag")

ProjectArgument = Annotated[Path, Argument(metavar="PROJECT", help="The directory with pipeline.toml.")]
MasterOption = Annotated[str, Option("--master", help="Spark's master: local[N], spark://…, yarn, k8s://…")]
RemoteOption = Annotated[str | None, Option("--remote", help="A Spark Connect server: sc://HOST:PORT.")]


@app.verb(examples=["odradek pipeline init shop", "cd shop && odradek pipeline run"])
def init(
    name: Annotated[str, Argument(help="Name of the pipeline, with which its topics begin.", check=check_name)],
    directory: Annotated[
        Path | None, Option("--directory", help="Directory of the project; by default a new one with the name.")
    ] = None,
    bootstrap_server: BootstrapOption = DEFAULT_BOOTSTRAP,
) -> None:
    """Write a small project that runs as it is."""
    target = directory or Path(name)
    for path in init_project(target, name, bootstrap_server):
        note(f"wrote {target / path}")
    where = "" if bootstrap_server == DEFAULT_BOOTSTRAP else f" -b {bootstrap_server}"
    note(f"next, with a cluster at {bootstrap_server}:")
    note(f"  cd {target}")
    note(f"  odradek topics create {name}.orders --partitions 3{where}")
    note(f"  odradek topics create {name}.categories --config cleanup.policy=compact{where}")
    note("  odradek pipeline run         # and in another terminal: python generate.py")


@app.verb("run", examples=["odradek pipeline run", "odradek pipeline run shop --master spark://host:7077"])
def run_command(
    project: ProjectArgument = Path(),
    master: MasterOption = LOCAL,
    remote: RemoteOption = None,
    once: Annotated[bool, Option("--once", help="Process the available records, then end.")] = False,
    metrics_port: Annotated[
        int | None, Option("--metrics-port", min=0, max=65535, help="Serve /metrics for Prometheus; 0: any port.")
    ] = None,
) -> None:
    """Run the pipeline until it is stopped. It continues where the last run ended."""
    from odradek.apps.pipeline.live_view import LiveView
    from odradek.apps.pipeline.rich_console import note_console

    pipeline = read_pipeline(project)
    for query in plan(pipeline):
        note(f"{query.name} → {query.target}, {query.delivery}")
    make_directory(pipeline.state_directory)
    log = pipeline.state_directory / "spark.log"
    with log_in_errors(log), spark_output_in(log) as terminal:
        console = note_console(terminal)
        options = RunOptions(SparkTarget(master, remote), once, metrics_port)
        with LiveView(console) as view:
            run(pipeline, options, view.show, lambda text: console.print(text))


@app.verb("validate", examples=["odradek pipeline validate", "odradek pipeline validate shop"])
def validate_command(
    project: ProjectArgument = Path(), master: MasterOption = LOCAL, remote: RemoteOption = None
) -> None:
    """Validate pipeline.toml, the schemas, the SQL and the functions, without reading a record."""
    pipeline = read_pipeline(project)
    make_directory(pipeline.state_directory)
    check_transforms(pipeline)
    require_spark()
    note("Spark starts, and plans the queries …")
    log = pipeline.state_directory / "spark.log"
    with log_in_errors(log), spark_output_in(log):
        columns = validate(pipeline, SparkTarget(master, remote))
    rows = [
        {
            "sink": query.name,
            "target": short_target(query.target),
            "delivery": query.delivery,
            "columns": ", ".join(f"{name} {kind}" for name, kind in columns[query.name]),
        }
        for query in plan(pipeline)
        if query.name in columns
    ]
    print_rows(rows, ("sink", "target", "delivery", "columns"), Format.TABLE)
    note(f"pipeline {pipeline.name} is valid")
    try:
        absent = absent_topics(pipeline, pipeline.input_topics)
    except FatalError as error:
        warn(f"whether its topics exist is not known: {error}")
    else:
        if absent:
            warn(f"there is no topic {', '.join(absent)} to read yet")


@app.verb(examples=["odradek pipeline status", "odradek pipeline status ~/pipelines --format json"])
def status(
    directory: Annotated[Path, Argument(help="A project, or a directory with projects below it.")] = Path(),
    output: FormatOption = Format.TABLE,
) -> None:
    """Show the pipelines here and below, and the progress of their queries. Exit code 1: one failed."""
    if not directory.is_dir():
        raise FatalError(f"there is no directory {directory}")
    found = list(find_statuses(directory.absolute()))
    if output is Format.JSON:
        print_json(found)
    elif output is Format.CSV:
        print_rows([{"state": d["state"], **query} for d in found for query in d["queries"]], _STATUS_COLUMNS, output)
    else:
        _print_statuses(found, directory)
    if any(document["state"] in (FAILED, DIED) for document in found):
        raise Exit(1)


def _print_statuses(found: Sequence[Mapping[str, Any]], directory: Path) -> None:
    from odradek.apps.pipeline.live_view import status_panel
    from odradek.apps.pipeline.rich_console import data_console

    if not found:
        note(f"no pipeline has run in {directory.absolute()} or below")
    for document in found:
        data_console().print(status_panel(document))
        if document["reason"]:
            note(f"{document['pipeline']}: {document['reason']}")
            note(f"Spark's log: {Path(document['project']) / '.odradek' / 'spark.log'}")


@app.verb(examples=["odradek pipeline stop", "odradek pipeline stop shop"])
def stop(project: ProjectArgument = Path()) -> None:
    """Stop a running pipeline, and wait until it has."""
    document = read_status(project.absolute())
    if document is None or not is_live(document):
        raise FatalError(f"no pipeline runs in {project.absolute()}")
    pid, started = document["pid"], document["process_start"]
    os.kill(pid, signal.SIGTERM)
    deadline = time.monotonic() + _STOP_SECONDS_MAX
    while process_start(pid) == started:
        if time.monotonic() > deadline:
            raise FatalError(f"pipeline {document['pipeline']} (process {pid}) doesn't stop")
        time.sleep(0.1)
    note(f"pipeline {document['pipeline']} has stopped")


@app.verb(
    examples=[
        "odradek pipeline replay --from-offset earliest",
        "odradek pipeline replay --from-offset shop.orders:0:1200,shop.orders:1:1180 --execute",
        "odradek pipeline replay --from-time '2h ago' --execute",
    ]
)
def replay(
    project: ProjectArgument = Path(),
    from_offset: Annotated[
        str | None, Option("--from-offset", help="earliest, N, or TOPIC:PARTITION:OFFSET,…", check=parse_offset)
    ] = None,
    from_time: Annotated[
        str | None, Option("--from-time", help="A time: 15m ago, ISO (UTC), or milliseconds.", check=parse_moment)
    ] = None,
    dry_run: Annotated[bool, Option("--dry-run", help="Only show the changes; the default.")] = False,
    execute: Annotated[bool, Option("--execute, --yes", help="Do it.")] = False,
) -> None:
    """Compute again from earlier offsets at the next run. Later batches are removed from tables; topics get the rows
    again."""
    if (from_offset is None) == (from_time is None):
        raise WrongUsage("either --from-offset or --from-time is required")
    if dry_run and execute:
        raise WrongUsage("--dry-run and --execute exclude each other; give one of them")
    pipeline = read_pipeline(project)
    running = read_status(pipeline.directory)
    if running is not None and is_live(running):
        raise FatalError(f"pipeline {pipeline.name} runs; stop it first with: {_command('stop', project)}")
    done = prepare(pipeline, from_offset=from_offset, from_time=from_time, dry_run=not execute)
    dimensions = {dimension.topic for dimension in pipeline.dimensions.values()}
    print_rows(replay_rows(done, dimensions), ("topic", "partition", "read_to", "from_offset"), Format.TABLE)
    removed = "removed" if execute else "would be removed"
    for name, batches in done.retired.items():
        if batches:
            note(f"{name}: {plural(batches, 'batch', 'batches')} {removed}, to be computed again")
    for name in done.kept_lake_tables:
        note(f"{name} keeps its rows: delete yourself those that would be duplicates")
    note("topics keep what was written, and get it again; windows and deduplication begin with empty state")
    if execute:
        note(f"run {done.generation} begins with the next: {_command('run', project)}")
    else:
        note("nothing was changed; --execute does it")


def replay_rows(done: Replay, dimensions: Container[str]) -> list[dict[str, object]]:
    """Partitions of the sources: the offset that was reached, and the one from which they are read again."""
    return [
        {
            "topic": topic,
            "partition": int(partition),
            "read_to": done.read.get(topic, {}).get(partition, 0),
            "from_offset": offset,
        }
        for topic, partitions in done.starting.items()
        if topic not in dimensions
        for partition, offset in sorted(partitions.items(), key=lambda item: int(item[0]))
    ]


add_project_verbs(app)
add_table_verbs(app)


def _command(verb: str, project: Path) -> str:
    return f"odradek pipeline {verb}" + ("" if project == Path() else f" {project}")

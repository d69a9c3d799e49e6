"""`odradek pipeline tables`, `query`, `optimize`, `migrate`: the tables that a pipeline has written."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

from odradek.apps.cli.grammar.declaration import Argument, Option
from odradek.apps.cli.grammar.noun import Noun
from odradek.apps.cli.output import Format, FormatOption, note, print_rows
from odradek.apps.cli.usage import WrongUsage
from odradek.apps.pipeline.declaration import read_pipeline
from odradek.apps.pipeline.spec import Pipeline
from odradek.apps.pipeline.status import is_live, read_status
from odradek.apps.pipeline.tables.reading import Moment, parse_batch
from odradek.base.errors import FatalError
from odradek.client.moments import parse_moment

ProjectOption = Annotated[Path, Option("--project", metavar="DIR", help="The directory with pipeline.toml.")]
ProjectArgument = Annotated[Path, Argument(metavar="PROJECT", help="The directory with pipeline.toml.")]
_TABLE_COLUMNS = ("table", "rows", "files", "megabytes", "version", "oldest_version", "path")


def tables(project: ProjectArgument = Path(), output: FormatOption = Format.TABLE) -> None:
    """List the Delta tables of a pipeline, with rows, files and versions that can be read."""
    from odradek.apps.pipeline.tables.commit_log import commits, is_delta, snapshot

    rows: list[dict[str, Any]] = []
    for name, sink in read_pipeline(project).own_delta_tables.items():
        if not is_delta(sink.path):
            note(f"{name} has no batch yet")
            continue
        now = snapshot(sink.path)
        rows.append(
            {
                "table": name,
                "rows": sum(file.rows for file in now.files),
                "files": len(now.files),
                "megabytes": round(sum(file.size for file in now.files) / 1e6, 1),
                "version": now.version,
                "oldest_version": min(commits(sink.path)),
                "path": str(sink.path),
            }
        )
    print_rows(rows, _TABLE_COLUMNS, output)


def query(
    sql: Annotated[str, Argument(help="A query; each table has the name of its sink.")],
    project: ProjectOption = Path(),
    batch: Annotated[
        str | None, Option("--batch", help="Tables as they were after this batch: N or gG-N.", check=parse_batch)
    ] = None,
    version: Annotated[int | None, Option("--version", min=0, help="Tables at this version.")] = None,
    at: Annotated[
        str | None, Option("--at", help="Tables at this time: 15m ago, ISO (UTC).", check=parse_moment)
    ] = None,
    output: FormatOption = Format.TABLE,
) -> None:
    """Answer a SQL query from the pipeline's tables, with DuckDB. The pipeline may run or not."""
    from odradek.apps.pipeline.tables.query import query_tables

    if sum(given is not None for given in (batch, version, at)) > 1:
        raise WrongUsage("one of --batch, --version and --at says which state is read")
    moment = parse_batch(batch) if batch else Moment(version=version, at_ms=parse_moment(at) if at else None)
    answer = query_tables(read_pipeline(project), sql, moment)
    print_rows(list(answer.rows()), answer.columns, output)


def optimize(project: ProjectArgument = Path(), output: FormatOption = Format.TABLE) -> None:
    """Merge the small files of a pipeline's tables and remove old versions, also while it runs."""
    from odradek.apps.pipeline.tables.maintenance import maintain

    rows: list[dict[str, Any]] = []
    for name, sink in read_pipeline(project).own_delta_tables.items():
        done = maintain(sink.path, sink.history, everything=True)
        rows.append({"table": name, **asdict(done)})
    print_rows(rows, ("table", "files_before", "files_after", "versions_removed", "directories_removed"), output)


def migrate(project: ProjectArgument = Path()) -> None:
    """Make Delta tables of tables that an earlier release wrote, a directory per batch. The pipeline must not run."""
    from odradek.apps.pipeline.tables.migration import is_of_directories, migrate_table

    pipeline = read_pipeline(project)
    _refuse_running(pipeline)
    from odradek.apps.pipeline.checkpoint import Checkpoint
    from odradek.apps.pipeline.targets import target

    for name, sink in pipeline.own_delta_tables.items():
        if not is_of_directories(sink.path):
            note(f"{name}: nothing to do")
            continue
        batches, files = migrate_table(sink.path, pipeline.name, name, sink.partition_by)
        Checkpoint(pipeline.checkpoint).retarget(name, target(sink))
        note(f"{name}: {batches} batch{'es' * (batches != 1)} in {files} file{'s' * (files != 1)} of a Delta table")


def _refuse_running(pipeline: Pipeline) -> None:
    running = read_status(pipeline.directory)
    if running is not None and is_live(running):
        raise FatalError(f"pipeline {pipeline.name} runs; stop it first with: odradek pipeline stop")


def add_table_verbs(app: Noun) -> None:
    app.verb(examples=["odradek pipeline tables"])(tables)
    app.verb(
        examples=[
            'odradek pipeline query "SELECT count(*) FROM orders_table"',
            'odradek pipeline query "SELECT * FROM orders_table LIMIT 5" --batch 12 --format json',
        ]
    )(query)
    app.verb(examples=["odradek pipeline optimize"])(optimize)
    app.verb(examples=["odradek pipeline migrate"])(migrate)

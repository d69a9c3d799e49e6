"""`odradek audit`: every replica's files read by Spark and compared; what is found is shown, and makes it fail."""

import tempfile
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from odradek.base.errors import FatalError
from odradek.cli.output import Format, note, print_json, print_rows, warn
from odradek.cli.usage import examples

if TYPE_CHECKING:
    from odradek.pipeline.audit.findings import AuditReport

app = typer.Typer(add_completion=False)

_TOPIC_COLUMNS = ("topic", "partitions", "replicas", "records", "batches", "bytes", "uncommitted")
_FINDING_COLUMNS = ("topic", "partition", "offset", "kind", "brokers", "detail")


class AuditFormat(StrEnum):
    TABLE = "table"
    JSON = "json"


@app.command(
    epilog=examples(
        "odradek audit odradek-data",
        "odradek audit /var/lib/broker-0 /var/lib/broker-1 --topic orders --html audit.html",
        "odradek audit odradek-data --format json",
    )
)
def audit(
    directories: Annotated[
        list[str],
        typer.Argument(
            metavar="DIR…", help="Log directories of the brokers, or the directory of `odradek up`.", show_default=False
        ),
    ],
    topic: Annotated[list[str] | None, typer.Option("--topic", help="Only this topic; again for more.")] = None,
    output: Annotated[AuditFormat, typer.Option("--format", help="A table, or json.")] = AuditFormat.TABLE,
    html: Annotated[Path | None, typer.Option("--html", metavar="FILE", help="Write the report as a page too.")] = None,
    master: Annotated[
        str, typer.Option("--master", help="The Spark cluster to run on; its workers must see the directories.")
    ] = "local[*]",
) -> None:
    """Compare all replicas of all partitions below the high watermark; exit code 1 if anything is wrong.

    Checks checksums, offsets, producers' sequences, and that replicas hold the same bytes. Reads files only, so brokers
    may run or not; the directories of all replicas are needed to compare them.
    """
    report = _run(directories, frozenset(topic or ()), master)
    from odradek.pipeline.audit.report import as_html, as_json, verdict

    if html is not None:
        html.write_text(as_html(report))
    if output is AuditFormat.JSON:
        print_json(as_json(report))
    else:
        print_rows([asdict(each) for each in report.topics], _TOPIC_COLUMNS, Format.TABLE)
        if report.findings:
            print_rows([asdict(each) for each in report.findings], _FINDING_COLUMNS, Format.TABLE, title="findings")
    if not report.findings:
        note(verdict(report))
        return
    if len(report.findings) < report.findings_in_all:
        warn(f"only the first {len(report.findings)} findings are listed")
    raise FatalError(verdict(report))


def _run(directories: list[str], topics: frozenset[str], master: str) -> "AuditReport":
    from odradek.pipeline.session import SparkTarget, start_session

    with tempfile.TemporaryDirectory(prefix="odradek-audit-") as work:
        spark = start_session("audit", SparkTarget(master), {"spark.log.level": "ERROR"}, Path(work))
        try:
            from odradek.pipeline.audit.job import audit as run_audit
            from odradek.pipeline.source.errors import OptionError

            try:
                return run_audit(spark, directories, topics)
            except OptionError as error:
                raise FatalError(str(error)) from None
        finally:
            spark.stop()

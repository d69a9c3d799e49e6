"""`odradek audit`: every replica's files read by Spark and compared; what is found is shown, and makes it fail."""

import tempfile
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from odradek.base.errors import FatalError
from odradek.cli.grammar.declaration import Argument, Option
from odradek.cli.grammar.noun import command
from odradek.cli.output import Format, note, print_json, print_rows, warn
from odradek.cli.spark_output import spark_output_in

if TYPE_CHECKING:
    from odradek.pipeline.audit.findings import AuditReport


_TOPIC_COLUMNS = ("topic", "partitions", "replicas", "records", "batches", "bytes", "uncommitted")
_FINDING_COLUMNS = ("topic", "partition", "offset", "kind", "brokers", "detail")


class AuditFormat(StrEnum):
    TABLE = "table"
    JSON = "json"


@command(
    examples=[
        "odradek audit odradek-data",
        "odradek audit /var/lib/broker-0 /var/lib/broker-1 --topic orders --html audit.html",
        "odradek audit odradek-data --format json",
    ]
)
def audit(
    directories: Annotated[
        list[str],
        Argument(
            metavar="DIR", help="Log directories of the brokers, or the directory of `odradek up`.", show_default=False
        ),
    ],
    topic: Annotated[list[str] | None, Option("--topic", help="Only this topic; again for more.")] = None,
    output: Annotated[AuditFormat, Option("--format", help="A table, or json.")] = AuditFormat.TABLE,
    html: Annotated[Path | None, Option("--html", metavar="FILE", help="Write the report as a page too.")] = None,
    master: Annotated[
        str, Option("--master", help="The Spark cluster to run on; its workers must see the directories.")
    ] = "local[*]",
) -> None:
    """Compare all replicas of all partitions below the high watermark; exit code 1 if anything is wrong.

    Checks checksums, offsets, producers' sequences, and that replicas hold the same bytes. Reads files only, so brokers
    may run or not; the directories of all replicas are needed to compare them.
    """
    topics = frozenset(topic or ())
    if master.startswith("local"):  # what isn't there is told at once, not after the start of Spark
        _existing(directories, topics)
    note("Spark starts, and reads the files …")
    report = _run(directories, topics, master)
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


def _existing(directories: list[str], topics: frozenset[str]) -> None:
    from odradek.pipeline.cold.log_directories import existing_replicas
    from odradek.pipeline.source.errors import OptionError

    try:
        existing_replicas(directories, topics)
    except OptionError as error:
        raise FatalError(f"{error}; give log directories, or the directory of `odradek up`") from None


def _run(directories: list[str], topics: frozenset[str], master: str) -> "AuditReport":
    from odradek.pipeline.session import SparkTarget, start_session
    from odradek.pipeline.spark_errors import in_one_sentence

    with (
        tempfile.TemporaryDirectory(prefix="odradek-audit-") as work,
        spark_output_in(Path(work) / "spark.log"),
        in_one_sentence(),
    ):
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

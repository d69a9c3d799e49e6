"""`odradek audit`: every replica's files read by Spark and compared; findings are shown, and the exit code is 1.

Open transactions, left-over files and replicas that can't be compared are shown too; they are no fault of the replicas,
and don't change the exit code.
"""

import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from odradek.apps.cli.audit_assignment import find_assignment
from odradek.apps.cli.grammar.declaration import Argument, Option
from odradek.apps.cli.grammar.noun import command
from odradek.apps.cli.output import Format, note, print_json, print_rows, warn
from odradek.apps.cli.spark_output import spark_output_in
from odradek.base.errors import FatalError
from odradek.client.bootstrap import parse_bootstrap

if TYPE_CHECKING:
    from odradek.apps.pipeline.audit.assignment import AuditScope
    from odradek.apps.pipeline.audit.findings import AuditReport


_TOPIC_COLUMNS = ("topic", "partitions", "replicas", "records", "batches", "bytes", "uncommitted")
_FINDING_COLUMNS = ("topic", "partition", "offset", "kind", "brokers", "detail")
_OPEN_COLUMNS = ("topic", "partition", "offset", "held_back", "producer_id", "producer_epoch", "since_ms", "is_hanging")
_LEFT_OVER_COLUMNS = ("topic", "partition", "broker", "bytes", "reason", "path")
_NOT_COMPARED_COLUMNS = ("broker", "reason", "partitions")


@command(
    examples=[
        "odradek audit odradek-data",
        "odradek audit /var/lib/broker-0 /var/lib/broker-1 --bootstrap-server kafka-0:9092",
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
    bootstrap_server: Annotated[
        str | None,
        Option(
            "--bootstrap-server, -b",
            metavar="HOST:PORT,…",
            check=parse_bootstrap,
            help="A broker of the cluster, to ask which brokers hold which partition.",
            show_default="the ZooKeeper of `odradek up`, if a directory has one",
        ),
    ] = None,
    topic: Annotated[list[str] | None, Option("--topic, -t", help="Only this topic; may be repeated.")] = None,
    output: Annotated[
        Format, Option("--format, -o", help="Tables for people, wide with every column; json; the findings as csv.")
    ] = Format.TABLE,
    html: Annotated[
        Path | None, Option("--html", metavar="FILE", help="A file for the report as an HTML page.")
    ] = None,
    master: Annotated[
        str, Option("--master", help="The Spark cluster to run on; its workers must see the directories.")
    ] = "local[*]",
) -> None:
    """Compare all replicas of all partitions below their high watermarks; exit code 1 if anything is wrong.

    Checks checksums, offsets, producers' sequences, and that replicas hold the same bytes. Reads files only, so brokers
    may run or not; the directories of all replicas are needed to compare them. Files of a partition on a broker that
    doesn't hold it are named as left-overs. Transactions without an end are listed; one that is open for more than 15
    minutes counts as hanging.
    """
    scope = _scope(directories, frozenset(topic or ()), bootstrap_server)
    note(f"assignment: {scope.assignment}")
    note("Spark starts, and reads the files …")
    report = _run(scope, master)
    from odradek.apps.pipeline.audit.report import as_html, as_json, verdict

    if html is not None:
        html.write_text(as_html(report))
    if output is Format.JSON:
        print_json(as_json(report))
    elif output is Format.CSV:
        print_rows([asdict(each) for each in report.findings], _FINDING_COLUMNS, output)
    else:
        _print_tables(report, output)
    if not report.findings:
        note(verdict(report))
        return
    if len(report.findings) < report.findings_in_all:
        warn(f"only the first {len(report.findings)} findings are listed")
    raise FatalError(verdict(report))


def _print_tables(report: "AuditReport", output: Format) -> None:
    from odradek.apps.pipeline.audit.report import named_partitions

    print_rows([asdict(each) for each in report.topics], _TOPIC_COLUMNS, output)
    skipped = [asdict(each) | {"partitions": named_partitions(each)} for each in report.not_compared]
    for title, columns, rows in (
        ("findings", _FINDING_COLUMNS, [asdict(each) for each in report.findings]),
        ("open transactions", _OPEN_COLUMNS, [asdict(each) for each in report.open_transactions]),
        ("left-over files", _LEFT_OVER_COLUMNS, [asdict(each) for each in report.left_overs]),
        ("not compared", _NOT_COMPARED_COLUMNS, skipped),
    ):
        if rows:
            print_rows(rows, columns, output, title=title)


def _scope(directories: list[str], topics: frozenset[str], bootstrap_server: str | None) -> "AuditScope":
    """Files to audit. Called before Spark starts, so that a wrong path is an error at once."""
    from odradek.apps.pipeline.audit.assignment import AuditedFiles
    from odradek.apps.pipeline.source.errors import OptionError

    try:
        files = AuditedFiles.below(directories, topics)
    except OptionError as error:
        raise FatalError(f"{error}; give log directories, or the directory of `odradek up`") from None
    try:
        return files.scope(find_assignment(bootstrap_server, directories))
    except OptionError as error:
        raise FatalError(str(error)) from None


def _run(scope: "AuditScope", master: str) -> "AuditReport":
    from odradek.apps.pipeline.session import SparkTarget, start_session
    from odradek.apps.pipeline.spark_errors import in_one_sentence

    with (
        tempfile.TemporaryDirectory(prefix="odradek-audit-") as work,
        spark_output_in(Path(work) / "spark.log"),
        in_one_sentence(),
    ):
        spark = start_session("audit", SparkTarget(master), {"spark.log.level": "ERROR"}, Path(work))
        try:
            from odradek.apps.pipeline.audit.job import audit as run_audit

            return run_audit(spark, scope)
        finally:
            spark.stop()

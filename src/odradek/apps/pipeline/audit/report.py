"""An audit's report as JSON and as one HTML page."""

from collections.abc import Iterable
from dataclasses import asdict

from odradek.apps.figures import moment, plural
from odradek.apps.html_page import heading, html_table, page, paragraph, verdict_line
from odradek.apps.pipeline.audit.findings import AuditReport, NotCompared

_NAMED_MAX = 10


def verdict(report: AuditReport) -> str:
    topics, found = len(report.topics), report.findings_in_all
    brokers = f"broker{'s' * (len(report.brokers) != 1)} {_ids(report.brokers)}"
    where = f"{topics} topic{'s' * (topics != 1)} on {brokers}"
    if report.findings:
        said = f"{found} finding{'s' * (found != 1)}"
    elif report.topics:
        said = "all replicas are identical"
    else:
        said = "nothing to compare, no file is of a replica"
    return f"{where}: {said}{_hanging(report)}{_left_over_bytes(report)}"


def _hanging(report: AuditReport) -> str:
    count = sum(each.is_hanging for each in report.open_transactions)
    return f"; {plural(count, 'hanging transaction')}" if count else ""


def _left_over_bytes(report: AuditReport) -> str:
    if not report.left_overs:
        return ""
    brokers = sorted({each.broker for each in report.left_overs})
    size = sum(each.bytes for each in report.left_overs)
    return f"; left-over files on broker{'s' * (len(brokers) > 1)} {_ids(brokers)}: {size:,} bytes"


def _ids(brokers: Iterable[int]) -> str:
    return ", ".join(map(str, brokers))


def named_partitions(each: NotCompared) -> str:
    """The first of them, and how many more."""
    more = len(each.partitions) - _NAMED_MAX
    return ", ".join(each.partitions[:_NAMED_MAX]) + (f" and {more} more" if more > 0 else "")


def as_json(report: AuditReport) -> dict[str, object]:
    return {"verdict": verdict(report), **asdict(report)}


def as_html(report: AuditReport) -> str:
    sections = [
        heading("Audit", 1),
        verdict_line(verdict(report), is_good=not report.findings),
        paragraph("Read: " + ", ".join(report.directories)),
        paragraph("Assignment: " + report.assignment),
    ]
    if report.findings:
        rows = [[f"{f.topic}-{f.partition}", str(f.offset), _ids(f.brokers), f.kind, f.detail] for f in report.findings]
        sections += [
            heading("Findings"),
            html_table(("partition", "offset", "brokers", "what", "detail"), rows, words=5),
        ]
    if len(report.findings) < report.findings_in_all:
        sections.append(paragraph(f"The first {len(report.findings)} of {report.findings_in_all} are listed."))
    if report.open_transactions:
        rows = [
            [
                f"{each.topic}-{each.partition}",
                *(f"{number:,}" for number in (each.offset, each.held_back, each.producer_id, each.producer_epoch)),
                moment(each.since_ms) + (", hanging" if each.is_hanging else ""),
            ]
            for each in report.open_transactions
        ]
        sections += [
            heading("Open transactions"),
            html_table(("partition", "first offset", "offsets held back", "producer", "epoch", "since"), rows, words=1),
        ]
    if report.left_overs:
        rows = [
            [f"{each.topic}-{each.partition}", str(each.broker), f"{each.bytes:,}", each.reason, each.path]
            for each in report.left_overs
        ]
        sections += [
            heading("Left-over files"),
            html_table(("partition", "broker", "bytes", "why", "directory"), rows, words=5),
        ]
    if report.not_compared:
        rows = [[str(each.broker), each.reason, named_partitions(each)] for each in report.not_compared]
        sections += [heading("Not compared"), html_table(("broker", "why", "partitions"), rows, words=3)]
    counts = [
        [t.topic, *(f"{n:,}" for n in (t.partitions, t.replicas, t.records, t.batches, t.bytes, t.uncommitted))]
        for t in report.topics
    ]
    head = ("topic", "partitions", "replicas", "records", "batches", "bytes", "records above the high watermark")
    return page("Audit", [*sections, heading("Topics"), html_table(head, counts, words=1)])

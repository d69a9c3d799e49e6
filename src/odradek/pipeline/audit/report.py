"""An audit's report as JSON and as one HTML page."""

from dataclasses import asdict

from odradek.base.html_page import heading, html_table, page, paragraph, verdict_line
from odradek.pipeline.audit.findings import AuditReport


def verdict(report: AuditReport) -> str:
    topics, found = len(report.topics), report.findings_in_all
    where = f"{topics} topic{'s' * (topics != 1)} on brokers {', '.join(map(str, report.brokers))}"
    if not report.findings:
        return f"{where}: every replica agrees, nothing is broken"
    return f"{where}: {found} finding{'s' * (found != 1)}"


def as_json(report: AuditReport) -> dict[str, object]:
    return {"verdict": verdict(report), **asdict(report)}


def as_html(report: AuditReport) -> str:
    sections = [
        heading("Audit", 1),
        verdict_line(verdict(report), is_good=not report.findings),
        paragraph("Read: " + ", ".join(report.directories)),
    ]
    if report.findings:
        rows = [
            [f"{f.topic}-{f.partition}", str(f.offset), ", ".join(map(str, f.brokers)), f.kind, f.detail]
            for f in report.findings
        ]
        sections += [
            heading("Findings"),
            html_table(("partition", "offset", "brokers", "what", "detail"), rows, words=5),
        ]
    if len(report.findings) < report.findings_in_all:
        sections.append(paragraph(f"The first {len(report.findings)} of {report.findings_in_all} are listed."))
    counts = [
        [t.topic, *(f"{n:,}" for n in (t.partitions, t.replicas, t.records, t.batches, t.bytes, t.uncommitted))]
        for t in report.topics
    ]
    head = ("topic", "partitions", "replicas", "records", "batches", "bytes", "records above the high watermark")
    return page("Audit", [*sections, heading("Topics"), html_table(head, counts, words=1)])

"""The page that `odradek sim --report` writes."""

from collections.abc import Sequence

from odradek.apps.html_page import heading, html_table, page, paragraph, verdict_line
from odradek.sim.simulation import Outcome

_TOLD_AT_THE_END = 30


def report_page(outcomes: Sequence[Outcome], seconds: float) -> str:
    failed = [outcome for outcome in outcomes if outcome.fault is not None]
    hours = sum(outcome.broker_hours for outcome in outcomes)
    verdict = f"{len(failed)} of {len(outcomes)} stories failed" if failed else f"{len(outcomes)} stories held"
    figures = [
        ("seeds", f"{len(outcomes):,}"),
        ("simulated broker-hours", f"{hours:,.1f}"),
        ("records acknowledged", f"{sum(outcome.acknowledged for outcome in outcomes):,}"),
        ("seconds", f"{seconds:,.0f}"),
        ("seeds an hour", f"{len(outcomes) / seconds * 3600:,.0f}"),
    ]
    sections = [heading("Simulated clusters", 1), verdict_line(verdict, is_good=not failed)]
    sections.append(html_table(("figure", "value"), figures, words=1))
    for outcome in failed:
        sections.append(heading(f"Seed {outcome.seed}"))
        sections.append(paragraph(f"{outcome.fault}"))
        sections.append(paragraph(f"odradek sim --seed {outcome.seed}"))
        sections.append(html_table(("settings", ""), [(k, str(v)) for k, v in outcome.options.items()], words=2))
        last = [(line,) for line in outcome.trace[-_TOLD_AT_THE_END:]]
        sections.append(html_table(("the end of its story",), last, words=1))
    counts: dict[str, int] = {}
    for outcome in outcomes:
        for step, number in outcome.step_counts.items():
            counts[step] = counts.get(step, 0) + number
    sections.append(heading("Steps"))
    sections.append(html_table(("step", "times"), [(s.replace("_", " "), f"{n:,}") for s, n in counts.items()], 1))
    return page("Odradek: simulated clusters", sections)

"""The demo as a page: orders sent and results, over time and in sum."""

from itertools import pairwise
from typing import TYPE_CHECKING

from odradek.apps.html_page import (
    COLOURS,
    colour_key,
    heading,
    html_table,
    page,
    paragraph,
    plots,
    strips,
    time_plot,
    verdict_line,
)

if TYPE_CHECKING:
    from odradek.apps.demo.story import Telling

_ALIVE, _DEAD = "#86c59a", "#dc2626"


def html_report(telling: "Telling") -> str:
    proof, sent = telling.proof, telling.sent
    checks = [[c.what, *(f"{n:,}" for n in (c.expected, c.found, c.lost, c.twice, c.wrong))] for c in proof.checks]
    verdict = "Nothing is lost, nothing is counted twice." if proof.ok else "Records are lost or doubled."
    return page(
        "Odradek: the demo",
        [
            heading("A shop, a pipeline, and a broker that died" if _deaths(telling) else "A shop and a pipeline", 1),
            verdict_line(verdict, is_good=proof.ok),
            paragraph(
                f"Three brokers acknowledged {sent.total:,} records: {sent.good:,} orders, {sent.twice:,} of them "
                f"sent twice on purpose, and {sent.bad:,} that are no orders. This is what the pipeline made of them, "
                "counted by readers other than Spark:"
            ),
            html_table(("what", "expected", "found", "lost", "twice", "wrong"), checks, 1),
            heading("What happened"),
            html_table(("second", "what"), [[f"{at:.0f}", text] for at, text in telling.marks], 2),
            _brokers(telling),
            plots(_over_time(telling)),
            heading("Revenue by category, in windows of ten seconds"),
            _revenue(telling),
            heading("Why records were put aside"),
            html_table(("reason", "records"), [[reason, f"{n:,}"] for reason, n in sorted(proof.reasons.items())], 1),
        ],
    )


def _brokers(telling: "Telling") -> str:
    rows: dict[str, list[tuple[float, float, str]]] = {}
    samples = telling.samples
    for before, after in pairwise(samples):
        for broker, leads in after.leads.items():  # a snapshot during a broker's crash takes a while
            bars = rows.setdefault(f"broker {broker}", [])
            colour = _DEAD if leads is None else _ALIVE
            if bars and bars[-1][2] == colour:
                bars[-1] = (bars[-1][0], after.at_s, colour)
            else:
                bars.append((before.at_s, after.at_s, colour))
    end = samples[-1].at_s if samples else 0.0
    marks = [(at, "dead" if "is dead" in text else "back") for at, text in telling.marks if text.startswith("broker")]
    return colour_key(["alive", "dead"], [_ALIVE, _DEAD]) + strips("Brokers", rows, marks, end)


def _deaths(telling: "Telling") -> list[float]:
    """Return the times at which a broker died or came back."""
    return [at for at, text in telling.marks if text.startswith("broker")]


def _over_time(telling: "Telling") -> list[str]:
    samples = telling.samples
    marks = _deaths(telling)
    series = {
        "records acknowledged, and read": {
            "acknowledged": [(s.at_s, float(s.sent)) for s in samples],
            "read": [(s.at_s, float(s.processed)) for s in samples],
        },
        "records that wait to be read": {"waiting": [(s.at_s, float(s.lag)) for s in samples if s.lag is not None]},
        "milliseconds of a batch": {"batch": [(s.at_s, float(s.batch_ms)) for s in samples if s.batch_ms]},
    }
    return [time_plot(title, lines, COLOURS, marks) for title, lines in series.items()]


def _revenue(telling: "Telling") -> str:
    windows = telling.proof.windows
    starts = sorted({start for _, start in windows})
    categories = sorted({category for category, _ in windows})
    lines = {
        category: [(10.0 * n, windows.get((category, start), (0, 0.0))[1]) for n, start in enumerate(starts)]
        for category in categories
    }
    sums = {category: sum(sum_ for (c, _), (_, sum_) in windows.items() if c == category) for category in categories}
    orders = {category: sum(n for (c, _), (n, _) in windows.items() if c == category) for category in categories}
    rows = [[category, f"{orders[category]:,}", f"{sums[category]:,.2f}"] for category in categories]
    drawing = time_plot("revenue of each window, by its start", lines, COLOURS, (), width=720)
    return plots([drawing]) + html_table(("category", "orders", "revenue"), rows, 1)

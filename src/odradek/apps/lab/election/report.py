"""Report of the elections: a table for the terminal, and a page."""

from collections.abc import Callable, Mapping, Sequence

from odradek.apps.html_page import COLOURS, colour_key, heading, html_table, line_plot, page, paragraph, plots
from odradek.apps.lab.election.experiment import Election
from odradek.apps.text_table import text_table

DESIGNS = ("naive", "controller")
HEAD = ("design", "partitions", "led by the dead", "led again s", "notified", "zk reads", "zk writes", "requests")
WORDS = 1
NUMERIC = [number >= WORDS for number in range(len(HEAD))]
_COLOURS = dict(zip(DESIGNS, COLOURS, strict=False))
_EXPLANATIONS = {
    "naive": "Every replica watches its partition's leader, an ephemeral node; the creator of the next one leads.",
    "controller": "One broker is elected in this way, and elects the leaders of all partitions.",
}
_PLOTS: Mapping[str, Callable[[Election], float | None]] = {
    "seconds until every partition is led again": lambda election: election.led_again_s,
    "watch notifications": lambda election: election.notifications,
    "reads of znodes": lambda election: election.reads,
    "writes of znodes": lambda election: election.writes,
    "requests of the controller": lambda election: election.requests,
}


def cells(election: Election) -> list[str]:
    return [
        election.design,
        f"{election.partitions:,}",
        f"{election.led_by_the_dead:,}",
        "never" if election.led_again_s is None else f"{election.led_again_s:.2f}",
        *(f"{n:,}" for n in (election.notifications, election.reads, election.writes, election.requests)),
    ]


def _rows(elections: Sequence[Election]) -> list[list[str]]:
    ordered = sorted(elections, key=lambda election: (election.partitions, DESIGNS.index(election.design)))
    return [cells(election) for election in ordered]


def text_report(elections: Sequence[Election]) -> str:
    return text_table(HEAD, NUMERIC, _rows(elections))


def html_report(elections: Sequence[Election]) -> str:
    return page(
        "Elections",
        [
            heading("A broker dies: leaders elected per partition, and by the controller", 1),
            *(paragraph(f"{design.capitalize()}: {text}") for design, text in _EXPLANATIONS.items()),
            paragraph("One of three brokers dies; it led a third of the partitions. Time runs from its session's end."),
            colour_key(DESIGNS),
            plots(_plot(title, value, elections) for title, value in _PLOTS.items()),
            heading("All figures"),
            html_table(HEAD, _rows(elections), WORDS),
        ],
    )


def _plot(title: str, value: Callable[[Election], float | None], elections: Sequence[Election]) -> str:
    series = {
        design: sorted((e.partitions, value(e)) for e in elections if e.design == design)
        for design in dict.fromkeys(election.design for election in elections)
    }
    return line_plot(title, series, _COLOURS)

"""Report of the rebalances: a table for the terminal, and a page."""

from collections.abc import Callable, Mapping, Sequence

from odradek.apps.html_page import (
    COLOURS,
    captioned,
    colour_key,
    heading,
    html_table,
    line_plot,
    page,
    paragraph,
    plots,
    strips,
)
from odradek.apps.lab.rebalance.experiment import Outcome
from odradek.apps.lab.rebalance.group_members import DESIGNS
from odradek.apps.lab.rebalance.recorded_events import Phase, Windows
from odradek.apps.text_table import text_table

HEAD = (
    "design",
    "phase",
    "members",
    "settled s",
    "notified",
    "zk reads",
    "zk writes",
    "requests",
    "unowned",
    "longest s",
    "two owners",
    "longest s",
    "old views",
    "refused",
    "retries",
    "gave up",
)
WORDS = 2
NUMERIC = [number >= WORDS for number in range(len(HEAD))]
_STRIPS_MEMBERS_MAX = 10
_OWNER_COLOURS = {0: "#dc2626", 1: "#86c59a"}
_SEVERAL = "#7e22ce"
_EXPLANATIONS = {
    "one": "Every member watches the group, decides for itself and claims its part.",
    "two": "Members register in ZooKeeper; one elected coordinator watches, decides and writes the owners.",
    "three": "A broker coordinates: JoinGroup, SyncGroup, heartbeats. ZooKeeper is not asked.",
}
_PLOTS: Mapping[str, Callable[[Phase], float | None]] = {
    "seconds until settled": lambda phase: phase.settled_s,
    "watch notifications": lambda phase: phase.notifications,
    "operations on znodes": lambda phase: phase.costs.reads + phase.costs.writes,
    "requests to brokers": lambda phase: phase.costs.requests,
    "partition-seconds without owner": lambda phase: phase.unowned.total_s,
    "partition-seconds with two owners": lambda phase: phase.several.total_s,
    "decisions from old views": lambda phase: phase.old_views,
    "claims refused": lambda phase: phase.refused,
}
_HIGHLIGHTS = (
    (
        "join",
        "operations on znodes",
        "The herd. One more member joins: in design one every member is notified and reads the registrations of all.",
    ),
    (
        "start",
        "claims refused",
        "The disagreement. All start at once: in design one they decide from lists of different ages.",
    ),
    (
        "cut off",
        "partition-seconds with two owners",
        "The one who doesn't know. Cut off, it reads on; in design three it knows when its session is over.",
    ),
)


def cells(phase: Phase) -> list[str]:
    """A row of the table."""
    return [
        phase.design,
        phase.name,
        str(phase.members),
        "never" if phase.settled_s is None else f"{phase.settled_s:.2f}",
        *(f"{count:,}" for count in (phase.notifications, phase.costs.reads, phase.costs.writes, phase.costs.requests)),
        *_window_cells(phase.unowned),
        *_window_cells(phase.several),
        *(f"{count:,}" for count in (phase.old_views, phase.refused, phase.retries, phase.gave_up)),
    ]


def _window_cells(windows: Windows) -> list[str]:
    return [str(windows.partitions), f"{windows.longest_s:.2f}"]


def in_order(phases: Sequence[Phase]) -> list[Phase]:
    """The designs of one phase and size below each other."""
    names = list(dict.fromkeys(phase.name for phase in phases))
    return sorted(phases, key=lambda p: (p.members, names.index(p.name), DESIGNS.index(p.design)))


def text_report(phases: Sequence[Phase]) -> str:
    return text_table(HEAD, NUMERIC, [cells(phase) for phase in in_order(phases)])


def html_report(outcomes: Mapping[tuple[str, int], Outcome], facts: Sequence[str]) -> str:
    phases = [phase for outcome in outcomes.values() for phase in outcome.phases]
    designs = [design for design in DESIGNS if any(phase.design == design for phase in phases)]
    names = list(dict.fromkeys(phase.name for phase in phases))
    sections = [
        heading("Rebalances of consumer groups, in three designs", 1),
        *(paragraph(f"Design {design}: {_EXPLANATIONS[design]}") for design in designs),
        paragraph(" ".join(facts)),
        colour_key([f"design {design}" for design in designs], [_colour(design) for design in designs]),
        plots(
            captioned(_plot(f"{name}: {title}", _PLOTS[title], name, phases, designs), text)
            for name, title, text in _HIGHLIGHTS
            if name in names
        ),
    ]
    for name in names:
        sections.append(heading(f"{name}: over the number of members"))
        sections += _of_phase(name, [phase for phase in phases if phase.name == name], designs)
    sections.append(heading("Who owned what, when"))
    sections.append(
        colour_key(["one owner", "no owner", "two owners"], [_OWNER_COLOURS[1], _OWNER_COLOURS[0], _SEVERAL])
    )
    sections += [
        _strips(f"design {design}, {members} members", outcome)
        for (design, members), outcome in outcomes.items()
        if members <= _STRIPS_MEMBERS_MAX
    ]
    sections += [heading("All figures"), html_table(HEAD, [cells(phase) for phase in in_order(phases)], WORDS)]
    return page("Rebalances", sections)


def _of_phase(name: str, phases: Sequence[Phase], designs: Sequence[str]) -> list[str]:
    """Plots of a phase, without empty ones."""
    never = [title for title, value in _PLOTS.items() if all(value(phase) == 0 for phase in phases)]
    shown = plots(_plot(title, value, name, phases, designs) for title, value in _PLOTS.items() if title not in never)
    return [shown, *([paragraph(f"Nowhere: {', '.join(never)}.")] if never else [])]


def _plot(
    title: str, value: Callable[[Phase], float | None], name: str, phases: Sequence[Phase], designs: Sequence[str]
) -> str:
    series = {
        f"design {design}": sorted((p.members, value(p)) for p in phases if p.design == design and p.name == name)
        for design in designs
    }
    return line_plot(title, series, {f"design {design}": _colour(design) for design in designs})


def _colour(design: str) -> str:
    return COLOURS[DESIGNS.index(design)]


def _strips(title: str, outcome: Outcome) -> str:
    rows: dict[str, list[tuple[float, float, str]]] = {}
    for stretch in sorted(outcome.stretches, key=lambda stretch: (stretch.partition, stretch.from_s)):
        colour = _OWNER_COLOURS.get(stretch.owners, _SEVERAL)
        rows.setdefault(str(stretch.partition.partition), []).append((stretch.from_s, stretch.to_s, colour))
    end = max((stretch.to_s for stretch in outcome.stretches), default=0.0)
    return strips(title, rows, outcome.marks, end)

"""The pieces that several screens draw: tables, figures, broker marks, plots, pagers. All of it pure."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from odradek.apps.console.markup import Content, Html, tag, together
from odradek.apps.figures import clock_time

PAGE_ROWS = 50
_PLOT_POINTS = 120
_SPARK_POINTS = 30
_MINUTE_MS = 60_000
_DAY_POINTS_MIN = 3


@dataclass(frozen=True, slots=True)
class Page:
    """A window on many rows."""

    number: int
    pages: int
    rows: int

    @property
    def window(self) -> slice:
        return slice((self.number - 1) * PAGE_ROWS, self.number * PAGE_ROWS)


def paged(rows: int, wanted: int) -> Page:
    pages = max(1, -(-rows // PAGE_ROWS))
    return Page(min(max(1, wanted), pages), pages, rows)


def pager(page: Page) -> Html:
    if page.pages == 1:
        return Html("")
    return tag(
        "div",
        f"{page.rows:,} in {page.pages:,} pages",
        tag(
            "button",
            "‹",
            cls="btn small",
            data_act="page",
            data_to=page.number - 1,
            disabled=page.number == 1,
            aria_label="Previous page",
        ),
        tag("span", page.number),
        tag(
            "button",
            "›",
            cls="btn small",
            data_act="page",
            data_to=page.number + 1,
            disabled=page.number == page.pages,
            aria_label="Next page",
        ),
        cls="pager",
    )


@dataclass(frozen=True, slots=True)
class Column:
    title: str
    numeric: bool = False
    small: bool = True
    """True if it is shown on a phone."""
    sort: str | None = None

    @property
    def cls(self) -> str:
        return " ".join(filter(None, ["n" if self.numeric else "", "" if self.small else "hide-small"]))


def table(
    columns: Sequence[Column], rows: Iterable[Sequence[Content]], *, empty: str = "", sorted_by: str = ""
) -> Html:
    body = [
        tag("tr", [tag("td", cell, cls=column.cls) for column, cell in zip(columns, row, strict=True)]) for row in rows
    ]
    if not body:
        return tag("div", empty, cls="card empty")
    head = tag("tr", [tag("th", _title(column, sorted_by), cls=column.cls, scope="col") for column in columns])
    return tag("div", tag("table", tag("thead", head), tag("tbody", body), cls="rows"), cls="card table")


def _title(column: Column, sorted_by: str) -> Content:
    if column.sort is None:
        return column.title
    arrow = {column.sort: " ↑", f"-{column.sort}": " ↓"}.get(sorted_by, "")
    other = f"-{column.sort}" if sorted_by == column.sort else column.sort
    return tag("button", column.title + arrow, cls="sort", data_act="sort", data_by=other)


def figure(label: str, value: Content, more: Content = None, tone: str = "") -> Html:
    return tag(
        "div",
        tag("div", label, cls="label"),
        tag("div", value, cls=f"value {tone}".strip()),
        tag("div", more, cls="more") if more is not None else None,
        cls="card figure",
    )


def chip(text: Content, tone: str = "") -> Html:
    return tag("span", text, cls=f"chip {tone}".strip())


def button(text: str, act: str, *, cls: str = "btn", disabled: bool = False, **data: object) -> Html:
    attributes = {f"data_{name}": value for name, value in data.items()}
    return tag("button", text, cls=cls, data_act=act, disabled=disabled, **attributes)


def replica_marks(
    replicas: Sequence[int],
    leader: int,
    isr: Sequence[int],
    offline: frozenset[int] = frozenset(),
    adding: Sequence[int] = (),
) -> Html:
    return tag(
        "span",
        [
            tag(
                "span",
                broker,
                cls=f"b {replica_role(broker, leader, isr, offline, adding)}",
                title=f"broker {broker}: {ROLES[replica_role(broker, leader, isr, offline, adding)]}",
            )
            for broker in replicas
        ],
        cls="bs",
    )


ROLES = {
    "leader": "leads",
    "isr": "follows, in sync",
    "out": "follows, out of sync",
    "offline": "offline",
    "adding": "being added",
}


def replica_role(
    broker: int, leader: int, isr: Sequence[int], offline: frozenset[int], adding: Sequence[int] = ()
) -> str:
    if broker == leader:
        return "leader"
    if broker in offline:
        return "offline"
    if broker in isr:
        return "isr"
    return "adding" if broker in adding else "out"


def spark(values: Sequence[float]) -> Html:
    """A small line without axes, of the last moments only: a page has fifty of them."""
    line = _line(values[-_SPARK_POINTS:], 96, 22, _SPARK_POINTS)
    return tag("svg", line, cls="spark", viewBox="0 0 96 22", preserveAspectRatio="none", aria_hidden="true")


def plot(title: str, now: str, values: Sequence[float], peak: str, span: str) -> Html:
    """The last minutes as an area, the newest on the right; `span` is the text of the duration."""
    return tag(
        "div",
        tag("div", tag("span", title, cls="soft"), tag("span", now, cls="now"), cls="head"),
        tag(
            "svg",
            _line(values, 300, 84, _PLOT_POINTS),
            viewBox="0 0 300 84",
            preserveAspectRatio="none",
            role="img",
            aria_label=f"{title}: {now}",
        ),
        tag("div", tag("span", "peak ", peak), tag("span", span), cls="note head"),
        cls="card plot",
    )


def day_html(title: str, points: Sequence[tuple[int, float]], text: Callable[[float | None], str]) -> Html:
    """A day by minutes, with gaps; empty for only a few points."""
    if len(points) < _DAY_POINTS_MIN:
        return Html("")
    values = [value for _, value in points]
    top = max([*values, 1e-9])
    first, last = points[0][0], points[-1][0]
    span = last - first + _MINUTE_MS
    bars = [
        tag(
            "rect",
            x=round((at - first) / span * 1000, 1),
            y=round(84 - value / top * 78, 1),
            width=max(1.0, round(_MINUTE_MS / span * 1000, 1)),
            height=round(value / top * 78, 1),
            fill="var(--accent)",
            fill_opacity="0.6",
        )
        for at, value in points
    ]
    svg = tag("svg", bars, viewBox="0 0 1000 84", preserveAspectRatio="none", role="img", aria_label=title)
    return tag(
        "div",
        tag(
            "div",
            tag("span", f"{title}, minute by minute", cls="soft"),
            tag("span", text(values[-1]), cls="now"),
            cls="head",
        ),
        svg,
        tag(
            "div",
            tag("span", "peak ", text(max(values))),
            tag("span", f"{clock_time(first)} to {clock_time(last + _MINUTE_MS)}"),
            cls="note head",
        ),
        cls="card plot",
        style="margin-top: 16px",
    )


def _line(values: Sequence[float], width: int, height: int, points_max: int) -> Html:
    top = max([*values, 1e-9])
    step = width / (points_max - 1)
    first = points_max - len(values)
    points = [
        (round((first + i) * step, 1), round(height - 2 - value / top * (height - 8), 1))
        for i, value in enumerate(values)
    ]
    base = tag("line", x1=0, x2=width, y1=height - 1, y2=height - 1, stroke="var(--line)", stroke_width=1)
    if len(points) < 2:
        return base
    line = " ".join(f"{x},{y}" for x, y in points)
    area = f"{points[0][0]},{height - 1} {line} {points[-1][0]},{height - 1}"
    return together(
        base,
        tag("polygon", points=area, fill="var(--accent)", fill_opacity="0.14"),
        tag(
            "polyline",
            points=line,
            fill="none",
            stroke="var(--accent)",
            stroke_width="1.6",
            vector_effect="non-scaling-stroke",
            stroke_linejoin="round",
        ),
    )


def meter(share: float, title: str = "", tone: str = "") -> Html:
    width = f"width:{min(max(share, 0), 1) * 100:.1f}%"
    return tag("div", tag("i", style=width), cls=f"meter {tone}".strip(), title=title)

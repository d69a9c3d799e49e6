"""Drawings of the flight recorder: a timeline, the cluster at a moment, and the causes of changes."""

from collections.abc import Sequence

from odradek.apps.console.markup import Html, tag, together
from odradek.apps.console.readings.history import Moment
from odradek.apps.console.views.parts import Column, chip, paged, pager, replica_marks, table
from odradek.apps.figures import clock_time, moment, plural
from odradek.broker.recorder.core.picture import Picture
from odradek.model.topic_names import is_internal

_EFFECTS_SHOWN = 6
_EFFECTS_MAX = 200
_AROUND = 12


def timeline(moments: Sequence[Moment], at: int) -> Html:
    """Draw every moment as a tick by time; neighbouring ticks are merged; the chosen one is highlighted."""
    if not moments:
        return Html("")
    first, last = moments[0].time_ms, moments[-1].time_ms
    span = max(last - first, 1)
    drawn: dict[int, tuple[int, str]] = {}
    for item in moments:
        x = 6 + (item.time_ms - first) * 988 // span // 2 * 2
        tall, tone = drawn.get(x, (0, ""))
        drawn[x] = max(tall, 10 + min(10, len(item.effects))), tone or item.tone
    ticks = [_tick(x, tall, "bad" if tone else "accent", 1.5) for x, (tall, tone) in sorted(drawn.items())]
    ticks.append(_tick(6 + (moments[at].time_ms - first) * 988 // span, 24, "ink", 3))
    return tag(
        "div",
        tag(
            "svg",
            tag("line", x1=0, x2=1000, y1=35, y2=35, stroke="var(--line)"),
            ticks,
            viewBox="0 0 1000 40",
            preserveAspectRatio="none",
            aria_hidden="true",
        ),
        tag(
            "div",
            tag("span", moment(first)[:19]),
            tag("span", moment(last)[:19]),
            cls="note",
            style="display:flex;justify-content:space-between",
        ),
        cls="timeline-box",
    )


def _tick(x: int, tall: int, colour: str, width: float) -> Html:
    return tag("line", x1=x, x2=x, y1=34 - tall, y2=34, stroke=f"var(--{colour})", stroke_width=width)


def heading(item: Moment, place: int, total: int) -> Html:
    return tag(
        "div",
        tag("b", moment(item.time_ms), cls="mono"),
        tag("span", f"event {place + 1} of {total}", cls="soft"),
        tag("b", item.title),
        tag("span", summary(item), cls="bad" if item.tone else "soft"),
        cls="row-of",
        style="align-items:baseline;gap:16px",
    )


def summary(item: Moment) -> str:
    """The effects in a line: all of them where they are few."""
    shown = "; ".join(item.effects[:2])
    return f"{shown}; and {len(item.effects) - 2} more" if len(item.effects) > 2 else shown


def brokers_html(picture: Picture, known: Sequence[int]) -> Html:
    """The brokers as the controller knew them then."""
    return tag("div", [_broker_box(picture, broker) for broker in known], cls="brokers")


def partitions_html(picture: Picture, known: Sequence[int], item: Moment, text: str, number: int) -> Html:
    """List the partitions that changed at that moment first, internal topics last."""
    words = text.lower().split()
    found = [(tp, p) for tp, p in picture.partitions.items() if all(word in str(tp).lower() for word in words)]
    found.sort(key=lambda pair: (str(pair[0]) not in item.touched, is_internal(pair[0].topic), pair[0]))
    page = paged(len(found), number)
    dead = frozenset(known) - frozenset(picture.brokers)
    rows = [
        (
            tag("b" if str(tp) in item.touched else "span", str(tp)),
            "none" if p.leader < 0 else p.leader,
            p.leader_epoch,
            replica_marks(p.replicas or p.isr, p.leader, p.isr, dead, p.adding),
            chip("changed just now", "accent") if str(tp) in item.touched else "",
        )
        for tp, p in found[page.window]
    ]
    columns = [
        Column("Partition"),
        Column("Leader", numeric=True),
        Column("Epoch", numeric=True, small=False),
        Column("Replicas"),
        Column("", small=False),
    ]
    return together(table(columns, rows, empty="There was no such partition."), pager(page))


def _broker_box(picture: Picture, broker: int) -> Html:
    live = broker in picture.brokers
    leads = sum(p.leader == broker for p in picture.partitions.values())
    in_sync = sum(broker in p.isr for p in picture.partitions.values())
    held = sum(broker in (p.replicas or p.isr) for p in picture.partitions.values())
    role = chip(f"controller · {picture.controller_epoch}", "accent") if picture.controller == broker else None
    return tag(
        "div",
        tag("div", f"Broker {broker}", role if live else chip("down", "bad"), cls="name"),
        tag("div", f"leader of {leads}, in sync in {in_sync} of {held}", cls="note"),
        cls=f"card brokerbox {'live' if live else 'dead'}",
        data_broker=broker,
        data_leads=leads,
    )


def moments_html(moments: Sequence[Moment], at: int) -> Html:
    """List the moments around the chosen one, newest first; each with its chain of causes."""
    low, high = max(0, at - _AROUND), min(len(moments), at + _AROUND + 1)
    return tag("div", [_moment_html(moments[i], i, at) for i in reversed(range(low, high))], cls="card table moments")


def _moment_html(item: Moment, place: int, at: int) -> Html:
    shown = [tag("div", effect) for effect in item.effects[:_EFFECTS_SHOWN]]
    more = len(item.effects) - _EFFECTS_SHOWN
    if more > 0:
        rest = [tag("div", effect) for effect in item.effects[_EFFECTS_SHOWN:_EFFECTS_MAX]]
        shown.append(tag("details", tag("summary", f"and {more:,} more", cls="faint"), rest))
    chain = None
    if item.chain:
        links = [tag("div", f"→ {link}") for link in item.chain]
        chain = tag(
            "details",
            tag("summary", plural(len(item.chain), "controller step")),
            links,
            cls="chain mono",
        )
    return tag(
        "div",
        tag(
            "button",
            clock_time(item.time_ms),
            cls="sort mono",
            data_act="at",
            data_to=place,
            aria_current="true" if place == at else None,
        ),
        tag(
            "div",
            tag("div", tag("b", item.title), chip("selected", "accent") if place == at else None, cls="row-of"),
            shown,
            chain,
        ),
        cls=f"moment {'future' if place > at else ''}".strip(),
    )

"""Line above every page: current problems, and the age of the data."""

from typing import Any

from odradek.apps.console.feeds import Reading
from odradek.apps.console.markup import Html, tag, together
from odradek.apps.console.readings.cluster import ClusterState
from odradek.apps.console.readings.coordination import CoordinationState
from odradek.apps.figures import duration_text, plural


def banner(reading: Reading[ClusterState], coordination: CoordinationState | None, now_ms: int) -> Html:
    return together(_brokers(reading, now_ms), _zookeeper(coordination))


def gap(what: str, reading: Reading[Any]) -> Html:
    """Line for a part of a page that could not be read."""
    return Html("") if reading.problem is None else _line("bad", what, reading.problem)


def not_found(kind: str, name: str, href: str, back: str) -> Html:
    """Page for an object that doesn't exist, or that the user may not see."""
    return tag(
        "div",
        tag("h1", "Not found"),
        tag("p", f"There is no {kind} ", tag("b", name), ", or you may not see it."),
        tag("p", tag("a", f"To {back}", href=href, cls="btn")),
        cls="card empty",
        role="alert",
    )


def nothing_yet(reading: Reading[Any]) -> Html:
    """Placeholder of a part that has not been read yet."""
    return tag("div", "Reading…" if not reading.version else "Nothing could be read yet.", cls="card empty")


def _zookeeper(state: CoordinationState | None) -> Html:
    if state is None or state.answers:
        return Html("")
    return _line(
        "warn",
        f"ZooKeeper at {state.connect} does not answer.",
        "Records are written and read as long as leaders live; nothing is elected, created or moved until it is back.",
    )


def _brokers(reading: Reading[ClusterState], now_ms: int) -> Html:
    if reading.problem is not None:
        age = f" What is shown is {duration_text(now_ms - reading.at_ms)} old." if reading.value is not None else ""
        return _line("bad", "No broker answers.", f"{reading.problem}.{age} This page refreshes when one is back.")
    state = reading.value
    if state is None:
        return Html("")
    missing = sorted(state.known_brokers - {broker.id for broker in state.brokers})
    if missing:
        names = ", ".join(map(str, missing))
        return _line(
            "warn", f"{plural(len(missing), 'broker')} down: {names}.", "Leaders moved where a replica was in sync."
        )
    if state.controller < 0:
        return _line(
            "warn", "There is no controller at the moment.", "Nothing is elected or created until there is one."
        )
    return Html("")


def _line(tone: str, what: str, more: str) -> Html:
    return tag("div", tag("b", what), tag("span", more), cls=f"banner {tone}", role="alert")

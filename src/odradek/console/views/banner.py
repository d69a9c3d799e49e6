"""The line above every page: what is missing at the moment, and how old what is shown is."""

from odradek.console.feeds import Reading
from odradek.console.markup import Html, tag
from odradek.console.readings.cluster import ClusterState
from odradek.console.views.figures import duration, plural


def banner(reading: Reading[ClusterState], now_ms: int) -> Html:
    if reading.problem is not None:
        age = f" What is shown is {duration(now_ms - reading.at_ms)} old." if reading.value is not None else ""
        return _line(
            "bad", "No broker answers.", f"{reading.problem}.{age} This page goes on by itself when one is back."
        )
    state = reading.value
    if state is None:
        return Html("")
    missing = sorted(state.known_brokers - {broker.id for broker in state.brokers})
    if missing:
        names = ", ".join(map(str, missing))
        return _line(
            "warn", f"{plural(len(missing), 'broker')} missing: {names}.", "Others lead what they led, where they can."
        )
    if state.controller < 0:
        return _line(
            "warn", "There is no controller at the moment.", "Nothing is elected or created until there is one."
        )
    return Html("")


def _line(tone: str, what: str, more: str) -> Html:
    return tag("div", tag("b", what), tag("span", more), cls=f"banner {tone}", role="alert")

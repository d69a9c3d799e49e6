"""Picture of a plan in the terminal: copied and removed replicas, data of each broker, risks."""

from collections.abc import Iterable

from odradek.apps.cli.terminal import print_columns, say
from odradek.apps.figures import size_text, time_left_text
from odradek.apps.reassign.core.forecast import Forecast
from odradek.apps.reassign.moves import BrokerForecast, Move
from odradek.apps.reassign.risks import Severity
from odradek.apps.text_table import Align, Cell, Column

_ROWS_MAX = 40
_BAR_WIDTH = 20  # so that everything fits into eighty columns
_STYLES = {Severity.NOTE: "", Severity.WARNING: "yellow", Severity.DANGER: "bold red"}


def print_forecast(forecast: Forecast, throttle_bytes: int | None) -> None:
    say(summary(forecast, throttle_bytes), "bold")
    if not forecast.moves:
        return
    if removed := removals(forecast):
        say(removed, "bold")
    print()
    print_columns(_moves(forecast))
    hidden = len(forecast.moves) - _ROWS_MAX
    if hidden > 0:
        say(f"… and {hidden} partitions more; --format json has them all")
    say("★ preferred leader   ● stays   + is copied there   - is removed", "dim")
    print()
    print_columns(_bars(forecast.brokers))
    print_columns(_figures(forecast.brokers))
    for risk in forecast.risks:
        say(f"{risk.severity}: {risk.text}", _STYLES[risk.severity])


def summary(forecast: Forecast, throttle_bytes: int | None) -> str:
    if not forecast.moves:
        return "nothing to move: the goal is reached already"
    changes = _counted(len(forecast.moves), "partition changes", "partitions change")
    if not forecast.copied_replicas:
        only_order = "only in the order of replicas: nothing is copied or removed"
        return f"{changes}, {'no replica is copied' if forecast.removed_replicas else only_order}"
    copied = _counted(forecast.copied_replicas, "replica is copied", "replicas are copied")
    said = f"{changes}, {copied}, {size_text(forecast.copied_bytes)}"
    if forecast.seconds is None or throttle_bytes is None:
        return f"{said}; without a throttle, as fast as disks and network go"
    return f"{said}; at {size_text(throttle_bytes)}/s for each broker at least {time_left_text(forecast.seconds)}"


def removals(forecast: Forecast) -> str:
    """Replicas that are removed and the bytes that this frees, in all and on each broker; empty without any."""
    if not forecast.removed_replicas:
        return ""
    each = [
        f"{broker.replicas_removed} on broker {broker.broker} ({size_text(broker.bytes_freed)})"
        for broker in forecast.brokers
        if broker.replicas_removed
    ]
    removed = _counted(forecast.removed_replicas, "replica is removed", "replicas are removed")
    return f"{removed}, {size_text(forecast.freed_bytes)} freed at the end: {', '.join(each)}"


def _counted(number: int, one: str, several: str) -> str:
    return f"{number} {one if number == 1 else several}"


def _moves(forecast: Forecast) -> list[Column]:
    moves = forecast.moves[:_ROWS_MAX]
    brokers = sorted({broker for move in forecast.moves for broker in (*move.before, *move.after)})
    return [
        _column("partition", (str(move.partition) for move in moves)),
        *(Column(str(broker), tuple(_cell(move, broker) for move in moves), "center") for broker in brokers),
        _column("before", (",".join(map(str, move.before)) for move in moves)),
        _column("after", (",".join(map(str, move.after)) for move in moves)),
        _column("size", (size_text(move.size_bytes) for move in moves), "right"),
    ]


def _column(heading: str, texts: Iterable[str], align: Align = "left") -> Column:
    return Column(heading, tuple(map(Cell, texts)), align)


def _cell(move: Move, broker: int) -> Cell:
    star = "★" if move.after[0] == broker else ""
    if broker in move.adding:
        return Cell(f"+{star}", "green")
    if broker in move.removing:
        return Cell("-", "red")
    return Cell(star or "●") if broker in move.after else Cell("·", "dim")


def _bars(brokers: tuple[BrokerForecast, ...]) -> list[Column]:
    """Bars of the brokers' bytes, or of their replicas if there are no bytes."""
    by_bytes = any(broker.held_before or broker.held_after for broker in brokers)
    held = [(b.held_before, b.held_after) if by_bytes else (b.replicas_before, b.replicas_after) for b in brokers]
    most = max((max(pair) for pair in held), default=0) or 1
    return [
        _column("broker", (f"{b.broker} ({b.rack})" if b.rack else str(b.broker) for b in brokers)),
        _column("before", (_bar(before / most) for before, _ in held)),
        Column("after", tuple(Cell(_bar(a / most), "green" if a >= b else "yellow") for b, a in held)),
        _column("held", (_change(size_text(b.held_before), size_text(b.held_after)) for b in brokers), "right"),
    ]


def _figures(brokers: tuple[BrokerForecast, ...]) -> list[Column]:
    return [
        _column("broker", (str(b.broker) for b in brokers)),
        _column("replicas", (_change(b.replicas_before, b.replicas_after) for b in brokers), "right"),
        _column("preferred", (_change(b.preferred_before, b.preferred_after) for b in brokers), "right"),
        _column("in", (size_text(b.bytes_in) if b.bytes_in else "" for b in brokers), "right"),
        _column("out", (size_text(b.bytes_out) if b.bytes_out else "" for b in brokers), "right"),
        _column("freed", (size_text(b.bytes_freed) if b.bytes_freed else "" for b in brokers), "right"),
        _column("free now", ("" if b.usable_bytes is None else size_text(b.usable_bytes) for b in brokers), "right"),
    ]


def _bar(part: float) -> str:
    return "█" * round(part * _BAR_WIDTH)


def _change(before: object, after: object) -> str:
    return str(before) if before == after else f"{before} → {after}"

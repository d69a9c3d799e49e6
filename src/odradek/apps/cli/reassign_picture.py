"""Picture of a plan in the terminal: replicas that are copied and removed, what each broker holds, the risks."""

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from odradek.apps.cli.terminal import data_console
from odradek.apps.figures import size_text, time_left_text
from odradek.apps.reassign.core.forecast import Forecast
from odradek.apps.reassign.moves import BrokerForecast, Move
from odradek.apps.reassign.risks import Severity

_ROWS_MAX = 40
_BAR_WIDTH = 20  # so that everything fits into eighty columns
_STYLES = {Severity.NOTE: "", Severity.WARNING: "yellow", Severity.DANGER: "bold red"}


def print_forecast(forecast: Forecast, throttle_bytes: int | None) -> None:
    console = data_console()
    console.print(Text(summary(forecast, throttle_bytes), style="bold"))
    if not forecast.moves:
        return
    if removed := removals(forecast):
        console.print(Text(removed, style="bold"))
    console.print(_moves(forecast))
    hidden = len(forecast.moves) - _ROWS_MAX
    if hidden > 0:
        console.print(Text(f"… and {hidden} partitions more; --format json has them all"))
    console.print(Text("★ preferred leader   ● stays   + is copied there   - is removed", style="dim"))
    console.print(_bars(forecast.brokers))
    console.print(_figures(forecast.brokers))
    for risk in forecast.risks:
        console.print(Text(f"{risk.severity}: {risk.text}", style=_STYLES[risk.severity]))


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


def _moves(forecast: Forecast) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("partition")
    brokers = sorted({broker for move in forecast.moves for broker in (*move.before, *move.after)})
    for broker in brokers:
        table.add_column(str(broker), justify="center")
    for heading in ("before", "after"):
        table.add_column(heading)
    table.add_column("size", justify="right")
    for move in forecast.moves[:_ROWS_MAX]:
        table.add_row(
            str(move.partition),
            *(_cell(move, broker) for broker in brokers),
            ",".join(map(str, move.before)),
            ",".join(map(str, move.after)),
            size_text(move.size_bytes),
        )
    return table


def _cell(move: Move, broker: int) -> Text:
    star = "★" if move.after[0] == broker else ""
    if broker in move.adding:
        return Text(f"+{star}", style="green")
    if broker in move.removing:
        return Text("-", style="red")
    return Text(star or "●") if broker in move.after else Text("·", style="dim")


def _bars(brokers: tuple[BrokerForecast, ...]) -> Table:
    """Bytes held; where there are none yet, replicas."""
    by_bytes = any(broker.held_before or broker.held_after for broker in brokers)
    held = [(b.held_before, b.held_after) if by_bytes else (b.replicas_before, b.replicas_after) for b in brokers]
    most = max((max(pair) for pair in held), default=0) or 1
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for heading in ("broker", "before", "after"):
        table.add_column(heading)
    table.add_column("held", justify="right")
    for broker, (before, after) in zip(brokers, held, strict=True):
        name = f"{broker.broker} ({broker.rack})" if broker.rack else str(broker.broker)
        bar = Text(_bar(after / most), style="green" if after >= before else "yellow")
        sizes = _change(size_text(broker.held_before), size_text(broker.held_after))
        table.add_row(name, _bar(before / most), bar, sizes)
    return table


def _figures(brokers: tuple[BrokerForecast, ...]) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("broker")
    for heading in ("replicas", "preferred", "in", "out", "freed", "free now"):
        table.add_column(heading, justify="right")
    for broker in brokers:
        table.add_row(
            str(broker.broker),
            _change(broker.replicas_before, broker.replicas_after),
            _change(broker.preferred_before, broker.preferred_after),
            size_text(broker.bytes_in) if broker.bytes_in else "",
            size_text(broker.bytes_out) if broker.bytes_out else "",
            size_text(broker.bytes_freed) if broker.bytes_freed else "",
            "" if broker.usable_bytes is None else size_text(broker.usable_bytes),
        )
    return table


def _bar(part: float) -> str:
    return "█" * round(part * _BAR_WIDTH)


def _change(before: object, after: object) -> str:
    return str(before) if before == after else f"{before} → {after}"

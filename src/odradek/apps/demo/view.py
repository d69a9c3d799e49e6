"""The demo on the terminal: brokers, the shop, the pipeline's queries, and the revenue as it grows."""

from collections.abc import Mapping
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.text import Text

from odradek.apps.demo.observer import Sample
from odradek.apps.pipeline.live_view import QueriesTable

_BAR = 40


class DemoView:
    """View that moves in place on a terminal; elsewhere it prints a line for each event."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._live = Live(console=console, auto_refresh=False) if console.is_terminal else None

    def __enter__(self) -> "DemoView":
        if self._live:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live:
            self._live.stop()

    def tell(self, at_s: float, text: str) -> None:
        (self._live.console if self._live else self._console).print(f"{at_s:6.1f} s  {text}", highlight=False)

    def show(self, sample: Sample, status: Mapping[str, Any] | None, hint: str) -> None:
        if self._live:
            parts: list[RenderableType] = [_brokers(sample), _shop(sample)]
            if status and any(query["batch"] >= 0 for query in status["queries"]):
                parts.append(QueriesTable(status["queries"]))
                parts += [_revenue(sample.revenue)] if sample.revenue else []
            else:
                parts.append(Text("Spark starts, and makes its first batch …", style="yellow"))
            self._live.update(Group(*parts, Text(hint, style="bold cyan")), refresh=True)


def _brokers(sample: Sample) -> Text:
    line = Text("brokers  ", style="bold")
    for broker, leads in sorted(sample.leads.items()):
        label = f" {broker}: leads {leads} " if leads is not None else f" {broker}: dead "
        line.append(label, style="white on green" if leads is not None else "white on red")
        line.append(" ")
    return line


def _shop(sample: Sample) -> Text:
    return Text.assemble(
        ("shop     ", "bold"), f"{sample.sent:,} records acknowledged, {sample.sent_per_second:,.0f} a second"
    )


def _revenue(revenue: Mapping[str, float]) -> Text:
    text = Text("revenue\n", style="bold")
    top = max(revenue.values(), default=1.0)
    for category, amount in sorted(revenue.items(), key=lambda item: -item[1]):
        text.append(f"  {category:<9}", style="")
        text.append("█" * max(1, round(amount / top * _BAR)), style="cyan")
        text.append(f" {amount:,.2f}\n", style="")
    return text

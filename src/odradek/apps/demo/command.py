"""The command line of the demo."""

import sys
from pathlib import Path
from typing import Annotated

from odradek.apps.cli.grammar.declaration import Option
from odradek.apps.cli.grammar.noun import command
from odradek.apps.cli.usage import Exit


@command(examples=["odradek demo", "odradek demo --seconds 120 --rate 1000", "odradek demo --quick"])
def demo(
    quick: Annotated[bool, Option("--quick", help="One broker and many records, without Spark: seconds.")] = False,
    records: Annotated[int, Option("--records", min=1, help="With --quick: how many.")] = 100_000,
    seconds: Annotated[int, Option("--seconds", min=10, help="How long the shop sells.")] = 30,
    rate: Annotated[int, Option("--rate", min=1, max=5_000, help="Orders a second.")] = 300,
    kill_broker: Annotated[
        bool | None,
        Option(
            "--kill-broker/--no-kill-broker",
            help="Crash a broker halfway; on a terminal you are asked, elsewhere it is done.",
        ),
    ] = None,
    report: Annotated[Path, Option("--report", help="File for the page with the plots.")] = Path("odradek-demo.html"),
) -> None:
    """Run three brokers, a shop and a pipeline, kill a broker under load, verify that none is lost or duplicated."""
    if quick:
        from odradek.apps.demo.quick import quick_demo

        quick_demo(records)
        return
    from odradek.apps.demo.story import Plan, tell

    asks = kill_broker is None and sys.stdin.isatty()
    ok = tell(Plan(seconds=seconds, rate=rate, kills=kill_broker is not False and not asks, asks=asks, report=report))
    if not ok:
        raise Exit(1)

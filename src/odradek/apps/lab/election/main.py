"""`odradek lab election`: a ZooKeeper ensemble, and for each number of partitions both designs in turn."""

import sys
import tempfile
from pathlib import Path
from typing import Annotated

from odradek.apps.cli.grammar.declaration import Option
from odradek.apps.cli.grammar.noun import command
from odradek.apps.lab.election.experiment import Election, controller_election, naive_election
from odradek.apps.lab.election.report import html_report, text_report
from odradek.apps.lab.lagging_ensemble import LaggingEnsemble
from odradek.apps.lab.options import Progress, check_page, end_cleanly_when_killed, numbers
from odradek.base import logs

_SIZES = numbers(3, 10_000)


@command(examples=["odradek lab election --partitions 10,100,1000 --out election.html"])
def election(
    partitions: Annotated[str, Option("--partitions", metavar="N,N", help="Sizes.", check=_SIZES)] = "10,100,1000",
    out: Annotated[Path, Option("--out", help="The page.", check=check_page)] = Path("election.html"),
) -> None:
    """Elect leaders after the death of a broker, per partition and by the controller.

    One of three brokers dies: leaders elected per partition by ephemeral nodes, and by the controller, on a real
    ZooKeeper ensemble. Prints a table and writes a page with plots.
    """
    end_cleanly_when_killed()
    logs.configure(level="error", stream=sys.stderr)
    tell = Progress()
    elections: list[Election] = []
    with tempfile.TemporaryDirectory(prefix="odradek-lab-") as name:
        directory = Path(name)
        tell("starting three ZooKeeper servers …")
        with LaggingEnsemble(directory, lag_ms=0) as ensemble:
            for count in _SIZES(partitions):
                tell(f"{count} partitions, elected one by one …")
                elections.append(naive_election(ensemble, count))
                tell(f"{count} partitions, elected by the controller …")
                elections.append(controller_election(ensemble, directory / f"cluster-{count}", count))
                # after each: an interrupted run keeps its results
                out.write_text(html_report(elections))
    print(text_report(elections))
    print(f"\nPlots: {out}")

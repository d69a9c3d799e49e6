"""`odradek lab election`: a ZooKeeper ensemble, and for each number of partitions both designs in turn."""

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from odradek.apps.lab.election.experiment import Election, controller_election, naive_election
from odradek.apps.lab.election.report import html_report, text_report
from odradek.apps.lab.lagging_ensemble import LaggingEnsemble
from odradek.apps.lab.options import Progress, end_cleanly_when_killed, numbers, page_path
from odradek.base import logs


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="odradek lab election",
        description="One of three brokers dies: leaders elected per partition by ephemeral nodes, and by the "
        "controller, on a real ZooKeeper ensemble. Prints a table and writes a page with plots.",
        allow_abbrev=False,
    )
    parser.add_argument(
        "--partitions", type=numbers(3, 10_000), default=[10, 100, 1000], metavar="N,N", help="sizes (10,100,1000)"
    )
    parser.add_argument("--out", type=page_path, default=Path("election.html"), help="the page (election.html)")
    return parser.parse_args(list(arguments))


def main(arguments: Sequence[str]) -> int:
    options = parse(arguments)
    end_cleanly_when_killed()
    logs.configure(level="error", stream=sys.stderr)
    tell = Progress()
    elections: list[Election] = []
    with tempfile.TemporaryDirectory(prefix="odradek-lab-") as name:
        directory = Path(name)
        tell("starting three ZooKeeper servers …")
        with LaggingEnsemble(directory, lag_ms=0) as ensemble:
            for partitions in options.partitions:
                tell(f"{partitions} partitions, elected one by one …")
                elections.append(naive_election(ensemble, partitions))
                tell(f"{partitions} partitions, elected by the controller …")
                elections.append(controller_election(ensemble, directory / f"cluster-{partitions}", partitions))
                # after each: whoever breaks off keeps what there is
                options.out.write_text(html_report(elections))
    print(text_report(elections))
    print(f"\nPlots: {options.out}")
    return 0

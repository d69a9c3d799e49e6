"""`odradek lab`: finds the experiment and runs it. Each one loads only its own modules."""

import sys
from collections.abc import Sequence

_USAGE = """\
usage: odradek lab EXPERIMENT [OPTIONS]

  rebalance   consumer groups in three designs: what a join, a leave and a crash cost
  election    leaders elected per partition in ZooKeeper, and by the controller
  bench       Odradek beside Apache Kafka, figure by figure

See `odradek lab EXPERIMENT --help` for each."""


def app(words: Sequence[str], prog_name: str) -> int:
    """Called as every command is; the command line of an experiment is its own."""
    try:
        return _run(words, prog_name)
    except SystemExit as end:  # argparse's way to end
        return end.code if isinstance(end.code, int) else 0


def _run(words: Sequence[str], prog_name: str) -> int:
    name, *rest = words or ["--help"]
    if name in ("--help", "-h"):
        print(_USAGE)
        return 0
    if name == "rebalance":
        from odradek.apps.lab.rebalance.main import main as rebalance

        return rebalance(rest)
    if name == "election":
        from odradek.apps.lab.election.main import main as election

        return election(rest)
    if name == "bench":
        from odradek.apps.lab.bench.__main__ import main as bench

        sys.argv = [f"{prog_name} bench", *rest]
        return bench()
    print(f"error: there is no experiment {name!r}\n{_USAGE}", file=sys.stderr)
    return 2

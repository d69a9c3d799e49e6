"""`odradek lab`: finds the experiment and runs it. Each one loads only its own modules."""

from collections.abc import Callable, Sequence
from importlib import import_module

from odradek.apps.cli.grammar.help_page import noun_page
from odradek.apps.cli.grammar.parsing import like
from odradek.apps.cli.usage import WrongUsage

_PURPOSE = "Experiments on clusters of their own."
_EXPERIMENTS = {
    "rebalance": ("rebalance.main", "rebalance", "consumer groups in three designs: cost of a join, a leave, a crash"),
    "election": ("election.main", "election", "leaders elected per partition in ZooKeeper, and by the controller"),
    "bench": ("bench.__main__", "bench", "Odradek beside Apache Kafka, figure by figure"),
    "spark-read": ("spark_read.__main__", "spark_read", "Spark's reads of topics, by its own connector and by ours"),
}


def app(words: Sequence[str], name: str) -> int:
    experiment, *rest = words or ["--help"]
    if experiment in ("--help", "-h"):
        print(noun_page(name, _PURPOSE, {known: entry[2] for known, entry in _EXPERIMENTS.items()}, ()))
        return 0
    if experiment not in _EXPERIMENTS:
        hint = like(experiment, _EXPERIMENTS) or f"; there are {', '.join(_EXPERIMENTS)}"
        raise WrongUsage(f"there is no experiment {experiment!r}{hint}").see(name)
    return command_of(experiment)(rest, f"{name} {experiment}")


def command_of(experiment: str) -> Callable[[Sequence[str], str], int]:
    module, attribute, _ = _EXPERIMENTS[experiment]
    command: Callable[[Sequence[str], str], int] = getattr(import_module(f"odradek.apps.lab.{module}"), attribute)
    return command

"""Events of a simulated cluster, drawn from a seed: the same seed, the same story.

The network delays, reorders and loses. Requests of one term of a controller reach a broker in order, but those of an
earlier term may come after them, and so may the first copy of one that was sent twice; a fetch or produce whose
connection broke may still arrive. Brokers are killed, frozen, restarted, cut off from ZooKeeper, lose a directory, and
one at a time loses what it had not flushed: only while everybody else is well, for that is what replication promises
to survive. Meanwhile topics come and go, partitions move, logs are compacted and shortened, groups rebalance.
"""

from collections.abc import Callable, Iterable
from pathlib import Path
from random import Random
from typing import NamedTuple

from odradek.sim.actions import Actions
from odradek.sim.calm_cluster import CalmCluster
from odradek.sim.cluster import SimulatedCluster
from odradek.sim.faults import Faults
from odradek.sim.healing import Healing
from odradek.sim.incidents import Incidents
from odradek.sim.invariants import Invariants
from odradek.sim.options import Options
from odradek.sim.transaction_incidents import TransactionIncidents


class Step(NamedTuple):
    """One thing that happens, and the seed of its own choices: without it, the steps after it stay what they are."""

    name: str
    seed: int


def steps_of(seed: int, options: Options) -> list[Step]:
    """The story of a seed: steps that are drawn, then incidents, each in a cluster that has healed."""
    chance = Random(seed)
    names, weights = list(options.weights), list(options.weights.values())
    drawn = chance.choices(names, weights, k=options.steps)
    drawn += [name for incident in options.incidents for name in ("cluster_heals", incident)]
    return [Step(name, chance.getrandbits(32)) for name in drawn]


class Story:
    """A cluster and the steps that happen to it."""

    def __init__(self, directory: Path, options: Options | None = None) -> None:
        self.cluster = SimulatedCluster(directory, options)
        self._invariants = Invariants(self.cluster)
        self._healing = Healing(self.cluster, self._invariants)
        self._actions = Actions(self.cluster)
        self._faults = Faults(self.cluster)
        calm = CalmCluster(self.cluster, self._healing, self._actions)
        self._incidents = (Incidents(calm), TransactionIncidents(calm))

    def run(self, steps: Iterable[Step], on_step: Callable[[Step], None] = lambda step: None) -> None:
        """Run the steps; `on_step` is called after each of them."""
        self._healing.warm_up()
        for step in steps:
            self.cluster.chance.seed(step.seed)
            self._do(step)
            self._invariants.check()
            on_step(step)
        self._healing.heal()
        self.cluster.stop()

    def _do(self, step: Step) -> None:
        owners = (self._faults, self.cluster.bank, self.cluster.copying, self._actions, *self._incidents)
        getattr(next(each for each in owners if hasattr(each, step.name)), step.name)()

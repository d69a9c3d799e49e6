"""Simulations of seeds: each runs in a directory of its own, in memory where there is such a place."""

import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from odradek.base import logs
from odradek.sim.cluster import START_MS, SimulatedCluster
from odradek.sim.options import Options
from odradek.sim.story import Step, Story, steps_of

_MEMORY = Path("/dev/shm")


@dataclass(frozen=True, slots=True)
class Outcome:
    """Result of a seed. `fault` is None if everything held."""

    seed: int
    steps: Sequence[Step]
    trace: Sequence[str]
    simulated_ms: int
    brokers: int
    acknowledged: int
    fault: str | None = None
    options: Mapping[str, object] = field(default_factory=dict)
    step_counts: Mapping[str, int] = field(default_factory=dict)

    def brief(self) -> "Outcome":
        """Result without steps, and without the story if it held, to be kept of many seeds."""
        return replace(self, steps=(), trace=() if self.fault is None else self.trace[-100:])

    @property
    def broker_hours(self) -> float:
        return self.brokers * self.simulated_ms / 3_600_000


@contextmanager
def scratch_directory() -> Iterator[Path]:
    """A directory in memory if possible: stories fsync a lot, and none outlives its run."""
    root = Path(tempfile.mkdtemp(prefix="odradek-sim-", dir=_MEMORY if os.access(_MEMORY, os.W_OK) else None))
    try:
        yield root
    finally:
        shutil.rmtree(root, ignore_errors=True)


@contextmanager
def quiet_logs() -> Iterator[None]:
    """The brokers' own log lines are not shown: a story has hundreds of refusals on purpose."""
    before = logs.thresholds()[logs.ROOT]
    logs.set_threshold(logs.ROOT, "FATAL")
    try:
        yield
    finally:
        logs.set_threshold(logs.ROOT, before)


def simulate(
    seed: int,
    kept: Sequence[int] | None = None,
    on_step: Callable[[SimulatedCluster, int, Step], None] | None = None,
) -> Outcome:
    """Run the story of a seed, or only the steps of it that are kept, by their numbers."""
    options = Options.draw(seed)
    drawn = steps_of(seed, options)
    numbers = range(len(drawn)) if kept is None else kept
    steps = [drawn[number] for number in numbers]
    with scratch_directory() as directory, quiet_logs():
        story = Story(directory, options)
        remaining = iter(numbers)
        tell = (lambda step: None) if on_step is None else lambda step: on_step(story.cluster, next(remaining), step)
        fault = None
        try:
            story.run(steps, tell)
        except Exception as error:
            fault = f"{type(error).__name__}: {error}"
            story.cluster.crash()
    return Outcome(
        seed,
        steps,
        story.cluster.trace,
        story.cluster.clock.now_ms() - START_MS,
        options.brokers,
        story.cluster.acknowledged_records,
        fault,
        options.shown(),
        dict(sorted(Counter(step.name for step in steps).items())),
    )

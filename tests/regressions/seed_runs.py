"""Stories in a process with fixed hashes: there, a seed is the same story every time, as with `odradek sim`.

Python draws the hashes of strings anew for each process unless told, and with them the order of sets.
"""

import os
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context

import pytest

from odradek.sim.simulation import Outcome, simulate

from .mutants import MUTANTS


@contextmanager
def process_with_fixed_hashes() -> Iterator[ProcessPoolExecutor]:
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("PYTHONHASHSEED", "0")
            pool.submit(os.getpid).result()  # the process takes over the environment when it starts
        yield pool


def first_failure(seeds: Iterable[int], mutant: str | None = None) -> Outcome | None:
    """The first of the stories that fails, if any; with a bug that is planted."""
    with pytest.MonkeyPatch.context() as patch:
        if mutant is not None:
            MUTANTS[mutant](patch)
        for seed in seeds:
            outcome = simulate(seed)
            if outcome.fault is not None:
                return outcome.brief()
    return None


def simulate_twice(seed: int, mutant: str | None = None) -> tuple[Outcome, Outcome]:
    with pytest.MonkeyPatch.context() as patch:
        if mutant is not None:
            MUTANTS[mutant](patch)
        return simulate(seed), simulate(seed)

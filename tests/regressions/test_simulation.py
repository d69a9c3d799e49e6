"""Seeded stories of a cluster, and proof that they find what they look for."""

import pytest

from odradek.sim.simulation import simulate

from .mutants import FOUND_LATE, MUTANTS

SEEDS = 60
SEEDS_IN_SOAK = 5_000
SEEDS_FOR_MUTANTS = 400
"""Most are found by the first few; the order of sets, and with it the stories, is another one in each process."""


def simulate_all(seeds: range) -> None:
    for seed in seeds:
        outcome = simulate(seed)
        assert outcome.fault is None, f"odradek sim --seed {seed}: {outcome.fault}"


@pytest.mark.timeout(600)
def test_nothing_acknowledged_is_lost_in_any_story() -> None:
    simulate_all(range(SEEDS))


@pytest.mark.soak
@pytest.mark.timeout(7_200)
def test_nothing_acknowledged_is_lost_in_many_stories() -> None:
    simulate_all(range(SEEDS, SEEDS + SEEDS_IN_SOAK))


def test_a_seed_tells_the_same_story_again() -> None:
    for seed in (3, 14, 15):
        first = simulate(seed)
        assert simulate(seed) == first
        assert len(first.trace) > 100


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "mutant", [pytest.param(name, marks=pytest.mark.soak if name in FOUND_LATE else ()) for name in MUTANTS]
)
def test_a_bug_that_was_planted_is_found(mutant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    MUTANTS[mutant](monkeypatch)
    with pytest.raises(AssertionError):
        simulate_all(range(SEEDS_FOR_MUTANTS))

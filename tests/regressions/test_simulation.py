"""Seeded stories of a cluster, and proof that they find what they look for.

The default run has some stories, and the planted bugs that are found soon; it begins with seeds that are known to find
them. `make soak` has the others.
"""

from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor

import pytest

from .detecting_seeds import DETECTING_SEEDS
from .mutants import MUTANTS
from .seed_runs import first_failure, process_with_fixed_hashes, simulate_twice

SEEDS = 20
SEEDS_IN_SOAK = 5_000
SEEDS_FOR_MUTANTS = 400
"""A change of the code makes other stories of the same seeds: then the known ones may find nothing, and others do."""


@pytest.fixture(scope="module")
def process() -> Iterator[ProcessPoolExecutor]:
    with process_with_fixed_hashes() as pool:
        yield pool


def assert_all_hold(process: ProcessPoolExecutor, seeds: range) -> None:
    failed = process.submit(first_failure, seeds).result()
    assert failed is None, f"odradek sim --seed {failed.seed}: {failed.fault}"


@pytest.mark.timeout(600)
def test_nothing_acknowledged_is_lost_in_any_story(process: ProcessPoolExecutor) -> None:
    assert_all_hold(process, range(SEEDS))


@pytest.mark.soak
@pytest.mark.timeout(7_200)
def test_nothing_acknowledged_is_lost_in_many_stories(process: ProcessPoolExecutor) -> None:
    assert_all_hold(process, range(SEEDS, SEEDS + SEEDS_IN_SOAK))


def test_a_seed_tells_the_same_story_again(process: ProcessPoolExecutor) -> None:
    for seed in (3, 14, 15):
        first, second = process.submit(simulate_twice, seed).result()
        assert first == second
        assert len(first.trace) > 100


FAILING = tuple(name for name in DETECTING_SEEDS if DETECTING_SEEDS[name][0] == 0)[:5]
"""Planted bugs that the first seed finds."""


@pytest.mark.parametrize("mutant", FAILING)
def test_a_seed_that_fails_fails_again_in_the_same_way(mutant: str, process: ProcessPoolExecutor) -> None:
    found = process.submit(first_failure, range(SEEDS_FOR_MUTANTS), mutant).result()
    assert found is not None
    first, second = process.submit(simulate_twice, found.seed, mutant).result()
    assert first.fault == found.fault
    assert first == second


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "mutant",
    [pytest.param(name, marks=() if name in DETECTING_SEEDS else pytest.mark.soak) for name in MUTANTS],
)
def test_a_bug_that_was_planted_is_found(mutant: str, process: ProcessPoolExecutor) -> None:
    known = DETECTING_SEEDS.get(mutant, ())
    seeds = [*known, *(seed for seed in range(SEEDS_FOR_MUTANTS) if seed not in known)]
    assert process.submit(first_failure, seeds, mutant).result() is not None

"""Seeded stories of a cluster, and proof that they find what they look for."""

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from .mutants import MUTANTS
from .story import simulate

SEEDS = 100
SEEDS_IN_SOAK = 1_000
SEEDS_FOR_MUTANTS = 400  # each was found within 100; a change of the code makes other stories of the same seeds
_MEMORY = Path("/dev/shm")

NewDirectory = Callable[[], Path]


@pytest.fixture
def new_directory(tmp_path: Path) -> Iterator[NewDirectory]:
    """In memory where there is such a place: the stories fsync a lot, and none outlives its test."""
    root = Path(tempfile.mkdtemp(dir=_MEMORY if os.access(_MEMORY, os.W_OK) else tmp_path))
    last: list[Path] = []

    def make() -> Path:
        while last:
            shutil.rmtree(last.pop())
        last.append(Path(tempfile.mkdtemp(dir=root)))
        return last[0]

    yield make
    shutil.rmtree(root)


def simulate_all(seeds: range, new_directory: NewDirectory) -> None:
    for seed in seeds:
        simulate(seed, new_directory())


@pytest.mark.timeout(600)
def test_nothing_acknowledged_is_lost_in_any_story(new_directory: NewDirectory) -> None:
    simulate_all(range(SEEDS), new_directory)


@pytest.mark.soak
@pytest.mark.timeout(3_600)
def test_nothing_acknowledged_is_lost_in_many_stories(new_directory: NewDirectory) -> None:
    simulate_all(range(SEEDS, SEEDS + SEEDS_IN_SOAK), new_directory)


def test_a_seed_tells_the_same_story_again(new_directory: NewDirectory) -> None:
    for seed in (3, 14, 15):
        first = simulate(seed, new_directory())
        assert simulate(seed, new_directory()) == first
        assert len(first) > 100


@pytest.mark.timeout(600)
@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_bug_that_was_planted_is_found(
    mutant: str, new_directory: NewDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    MUTANTS[mutant](monkeypatch)
    with pytest.raises(AssertionError):  # of the invariants, or of the world
        simulate_all(range(SEEDS_FOR_MUTANTS), new_directory)

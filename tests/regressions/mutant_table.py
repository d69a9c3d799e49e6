"""How many seeds it takes to find each planted bug: `cd tests && python -m regressions.mutant_table [NAME ...]`.

Three searches for each, from seeds far apart; the table has all of them and the median.
"""

import sys
from statistics import median

import pytest

from odradek.sim.simulation import simulate

from .mutants import MUTANTS

STARTS = (0, 100_000, 200_000)
SEEDS_MAX = 400


def seeds_to_find(start: int) -> int | None:
    for tried in range(SEEDS_MAX):
        if simulate(start + tried).fault is not None:
            return tried + 1
    return None


def main() -> None:
    chosen = [name for name in MUTANTS if not sys.argv[1:] or any(word in name for word in sys.argv[1:])]
    for name in chosen:
        with pytest.MonkeyPatch.context() as patch:
            MUTANTS[name](patch)
            found = [seeds_to_find(start) for start in STARTS]
        middle = median(SEEDS_MAX if each is None else each for each in found)
        shown = ", ".join("not found" if each is None else str(each) for each in found)
        sys.stdout.write(f"| {name} | {shown} | {middle:.0f} |\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()

"""Number of seeds that find each planted bug: `cd tests && PYTHONHASHSEED=0 python -m regressions.mutant_table`.

Three searches for each, from seeds far apart; the table has all of them and the median. Words on the command line
choose mutants by their names. The seeds that find a bug are the ones for `detecting_seeds`, where the median is small.
"""

import sys
from statistics import median

from .mutants import MUTANTS
from .seed_runs import first_failure

STARTS = (0, 100_000, 200_000)
SEEDS_MAX = 200


def main() -> None:
    chosen = [name for name in MUTANTS if not sys.argv[1:] or any(word in name for word in sys.argv[1:])]
    for name in chosen:
        found = [first_failure(range(start, start + SEEDS_MAX), name) for start in STARTS]
        tried = [None if each is None else each.seed - start + 1 for each, start in zip(found, STARTS, strict=True)]
        middle = median(SEEDS_MAX if each is None else each for each in tried)
        shown = ", ".join("not found" if each is None else str(each) for each in tried)
        seeds = tuple(each.seed for each in found if each is not None)
        sys.stdout.write(f"| {name} | {shown} | {middle:.0f} | {seeds}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()

"""The shortest story that still fails: steps are left out as long as the failure stays the same kind.

Delta debugging: ever smaller runs of steps are left out. Each step has choices of its own, so that the others mean the
same without it. The kind of a failure is its text without numbers: a lost batch stays a lost batch.
"""

import re
from collections.abc import Callable, Sequence

Fails = Callable[[Sequence[int]], bool]


def kind_of(fault: str) -> str:
    """The failure without numbers and lists."""
    return re.sub(r"[\d\[\](){},.' -]+", " ", fault.splitlines()[0])[:60]


def shrink(numbers: Sequence[int], fails: Fails, attempts_max: int = 2_000) -> list[int]:
    """The numbers of the steps that remain. Each of them is needed, unless the attempts were used up before."""
    kept, size, attempts = list(numbers), max(1, len(numbers) // 2), 0
    while attempts < attempts_max:
        start, shrunk = 0, False
        while start < len(kept) and attempts < attempts_max:
            candidate = kept[:start] + kept[start + size :]
            attempts += 1
            if fails(candidate):
                kept, shrunk = candidate, True
            else:
                start += size
        if size == 1 and not shrunk:
            break
        size = max(1, size // 2)
    return kept


def numbers_as_text(numbers: Sequence[int]) -> str:
    """`0-3,7`: as `--steps` takes them."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and runs[-1][-1] == number - 1:
            runs[-1] = [runs[-1][0], number]
        else:
            runs.append([number])
    return ",".join("-".join(map(str, run)) for run in runs)


def numbers_of(text: str) -> list[int]:
    """ValueError if that is not what `numbers_as_text` writes."""
    numbers: list[int] = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        numbers += range(int(first), int(last or first) + 1)
    return numbers

"""Names of the directories in which a table keeps its batches.

    batch=g1-000000012                      batch 12 of generation 1, in a table without a log
    batch-g1-000000012.4f1c09ab             the same in a Delta table; each attempt to write it has a name of its own
    batch-g1-000000012-000000075.77aa01c3   batches 12 to 75, compacted

The path has the batches of a file, so that a replay can also remove batches from a table with merged files. A
Delta table has no "=" in the names: Polars would take it for a partition column.
"""

import re
from dataclasses import dataclass

_NAME = re.compile(r"batch[=-]g(\d+)-(\d+)(?:-(\d+))?(?:\.([0-9a-f]+))?")


@dataclass(frozen=True, slots=True, order=True)
class BatchRange:
    generation: int
    first: int
    last: int
    attempt: str = ""

    @property
    def directory(self) -> str:
        name = f"batch{'-' if self.attempt else '='}g{self.generation}-{self.first:09d}"
        name += f"-{self.last:09d}" if self.last != self.first else ""
        return f"{name}.{self.attempt}" if self.attempt else name


def parse_directory(name: str) -> BatchRange | None:
    """Parse a name; None for a name of another form."""
    found = _NAME.fullmatch(name)
    if found is None:
        return None
    generation, first, last, attempt = found.groups()
    return BatchRange(int(generation), int(first), int(last or first), attempt or "")


def merged(ranges: list[BatchRange], attempt: str) -> BatchRange:
    """Return the range of neighbours in order, all of one generation."""
    return BatchRange(ranges[0].generation, ranges[0].first, ranges[-1].last, attempt)

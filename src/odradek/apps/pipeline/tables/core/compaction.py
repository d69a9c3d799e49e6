"""Choice of the batches that are merged into larger files.

Neighbours of one level are merged 32 at a time: single batches to files of 32, those to files of 1,024, and so on until
a file is large. So a row is rewritten once per level, and a million small batches are about a hundred files.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from odradek.apps.pipeline.tables.core.batch_ranges import BatchRange

FANOUT = 32
LARGE_BYTES = 128 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class StoredBatches:
    """A directory of the table: its batches, and the size of its files."""

    batches: BatchRange
    size: int

    @property
    def level(self) -> int:
        count, level = self.batches.last - self.batches.first + 1, 0
        while count >= FANOUT:
            count, level = count // FANOUT, level + 1
        return level


def groups_to_merge(stored: Sequence[StoredBatches], partitions: int, *, everything: bool) -> list[list[BatchRange]]:
    """Return groups of neighbours to merge, oldest first. The newest directory stays: a repeated batch is compared
    with it.

    `everything` merges neighbours of all levels, as `odradek pipeline optimize` does; otherwise a group has one level
    and at least `FANOUT` members. A directory is large enough when its files are, `partitions` of them.
    """
    groups: list[list[StoredBatches]] = [[]]
    for entry in sorted(stored, key=lambda entry: entry.batches)[:-1]:
        group = groups[-1]
        fits = not group or (
            entry.batches.generation == group[-1].batches.generation
            and (everything or entry.level == group[-1].level)
            and (everything or len(group) < FANOUT)
            and sum(member.size for member in group) + entry.size <= LARGE_BYTES * max(1, partitions)
        )
        if fits:
            group.append(entry)
        else:
            groups.append([entry])
    members_min = 2 if everything else FANOUT
    return [[entry.batches for entry in group] for group in groups if len(group) >= members_min]

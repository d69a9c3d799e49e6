"""The file of a segment's aborted transactions; `odradek.format.transaction_index` has its entries.

The entry lies in the segment that holds the abort marker. Entries are in the order of their markers, so their last
offsets rise and their last stable offsets never fall. Most segments have none, so the file appears with the first
entry. One writer at a time; readers take no lock and see the entries that were whole when they began.
"""

import os
from collections.abc import Iterator
from errno import ENOSPC
from pathlib import Path

from odradek.format.transaction_index import ENTRY, AbortedTransaction, read_entries, write_entry

_CHUNK_ENTRIES = 120


class TransactionIndex:
    __slots__ = ("_count", "_newest", "path")

    def __init__(self, path: Path) -> None:
        self.path = path
        self._count: int | None = None  # whole entries in the file; None: not read yet
        self._newest = -1  # the last offset of the last entry, as far as the writer has looked

    def __len__(self) -> int:
        count = self._count
        if count is None:
            try:
                count = os.stat(self.path).st_size // ENTRY.size
            except FileNotFoundError:
                count = 0
            self._count = count
        return count

    def append(self, aborted: AbortedTransaction) -> None:
        """Add the transaction, unless it is there already: recovery reads markers again. OSError: nothing is added."""
        count = len(self)
        if count and self._newest < 0:
            self._newest = self.entries()[-1].last_offset
        if aborted.last_offset <= self._newest:
            return
        fd = os.open(self.path, os.O_WRONLY | os.O_CREAT, 0o644)
        try:
            if os.pwrite(fd, write_entry(aborted), count * ENTRY.size) < ENTRY.size:
                raise OSError(ENOSPC, "Transaction index entry written in part", str(self.path))
        finally:
            os.close(fd)
        self._newest = aborted.last_offset
        self._count = count + 1

    def entries(self) -> list[AbortedTransaction]:
        return list(self._from(-1))

    def overlapping(self, offset: int, upper_bound: int) -> tuple[list[AbortedTransaction], bool]:
        """Return the transactions that touch [offset, upper_bound), and whether later segments can't have
        more of them.
        """
        found = []
        for aborted in self._from(offset):
            if aborted.first_offset < upper_bound:
                found.append(aborted)
            if aborted.last_stable_offset >= upper_bound:
                return found, True
        return found, False

    def _from(self, offset: int) -> Iterator[AbortedTransaction]:
        """Yield the aborted transactions from the first one whose marker is not before the offset."""
        count = len(self)
        if not count:
            return
        try:
            fd = os.open(self.path, os.O_RDONLY)
        except FileNotFoundError:  # deleted or replaced: the reader sees that the log's segments have changed
            return
        try:
            at = _first_ending_from(fd, offset, count) if offset >= 0 else 0
            while at < count:
                data = os.pread(fd, min(_CHUNK_ENTRIES, count - at) * ENTRY.size, at * ENTRY.size)
                whole = len(data) // ENTRY.size
                if not whole:
                    return
                yield from read_entries(data)
                at += whole
        finally:
            os.close(fd)

    def truncate_to(self, offset: int) -> None:
        keep = sum(1 for aborted in self.entries() if aborted.last_offset < offset)
        self._count, self._newest = keep, -1
        try:
            if os.stat(self.path).st_size > keep * ENTRY.size:
                os.truncate(self.path, keep * ENTRY.size)
        except FileNotFoundError:
            pass

    def reset(self) -> None:
        self.path.unlink(missing_ok=True)
        self._count, self._newest = 0, -1

    def sync(self) -> None:
        if not len(self):
            return
        fd = os.open(self.path, os.O_RDONLY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)

    def is_sane(self, base_offset: int) -> bool:
        """Return whether whole entries fill the file, each one behind the one before."""
        try:
            size = os.stat(self.path).st_size
        except FileNotFoundError:
            return True
        last = base_offset - 1
        for aborted in self.entries():
            if aborted.last_offset <= last or aborted.first_offset > aborted.last_offset:
                return False
            last = aborted.last_offset
        return size % ENTRY.size == 0


def _first_ending_from(fd: int, offset: int, count: int) -> int:
    """The slot of the first entry whose last offset is not before the offset."""
    low, high = 0, count
    while low < high:
        middle = (low + high) // 2
        data = os.pread(fd, ENTRY.size, middle * ENTRY.size)
        if any(aborted.last_offset < offset for aborted in read_entries(data)):
            low = middle + 1
        else:
            high = middle
    return low

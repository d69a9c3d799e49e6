"""The file of a segment's aborted transactions; `odradek.format.transaction_index` has its entries.

The entry lies in the segment that holds the abort marker. Most segments have none, so the file appears with the first
entry. One writer at a time; a reader sees whole entries.
"""

import os
from pathlib import Path

from odradek.format.transaction_index import ENTRY, AbortedTransaction, read_entries, write_entry


class TransactionIndex:
    __slots__ = ("path",)

    def __init__(self, path: Path) -> None:
        self.path = path

    def append(self, aborted: AbortedTransaction) -> None:
        fd = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        try:
            os.write(fd, write_entry(aborted))
        finally:
            os.close(fd)

    def entries(self) -> list[AbortedTransaction]:
        try:
            return list(read_entries(self.path.read_bytes()))
        except FileNotFoundError:
            return []

    def overlapping(self, offset: int, upper_bound: int) -> tuple[list[AbortedTransaction], bool]:
        """Those that touch [offset, upper_bound), and whether later segments can't have more of them."""
        found = []
        for aborted in self.entries():
            if aborted.last_offset >= offset and aborted.first_offset < upper_bound:
                found.append(aborted)
            if aborted.last_stable_offset >= upper_bound:
                return found, True
        return found, False

    def truncate_to(self, offset: int) -> None:
        entries = self.entries()
        keep = sum(1 for aborted in entries if aborted.last_offset < offset)
        if keep < len(entries):
            os.truncate(self.path, keep * ENTRY.size)

    def reset(self) -> None:
        self.path.unlink(missing_ok=True)

    def sync(self) -> None:
        try:
            fd = os.open(self.path, os.O_RDONLY)
        except FileNotFoundError:
            return
        try:
            os.fsync(fd)
        finally:
            os.close(fd)

    def is_sane(self, base_offset: int) -> bool:
        try:
            size = os.stat(self.path).st_size
        except FileNotFoundError:
            return True
        return size % ENTRY.size == 0 and all(aborted.last_offset >= base_offset for aborted in self.entries())

"""A segment's list of aborted transactions, in Kafka's byte format.

    NNNNNNNNNNNNNNNNNNNN.txnindex  34 bytes an entry: version 0 (int16), producer id, first offset, last offset (the
                                   marker's), last stable offset when it was aborted (int64 each)

The entry lies in the segment that holds the abort marker. Most segments have none, so the file appears with the first
entry. One writer at a time; a reader sees whole entries.
"""

import os
from dataclasses import dataclass
from pathlib import Path
from struct import Struct

_ENTRY = Struct(">hqqqq")
_VERSION = 0


@dataclass(frozen=True, slots=True)
class AbortedTransaction:
    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


class TransactionIndex:
    __slots__ = ("path",)

    def __init__(self, path: Path) -> None:
        self.path = path

    def append(self, aborted: AbortedTransaction) -> None:
        fd = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        try:
            os.write(
                fd,
                _ENTRY.pack(
                    _VERSION,
                    aborted.producer_id,
                    aborted.first_offset,
                    aborted.last_offset,
                    aborted.last_stable_offset,
                ),
            )
        finally:
            os.close(fd)

    def entries(self) -> list[AbortedTransaction]:
        try:
            data = self.path.read_bytes()
        except FileNotFoundError:
            return []
        whole = len(data) - len(data) % _ENTRY.size
        return [AbortedTransaction(*fields) for _, *fields in _ENTRY.iter_unpack(data[:whole])]

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
            os.truncate(self.path, keep * _ENTRY.size)

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
        return size % _ENTRY.size == 0 and all(aborted.last_offset >= base_offset for aborted in self.entries())

"""A segment's list of aborted transactions.

NNNNNNNNNNNNNNNNNNNN.txnindex  34 bytes an entry: version 0 (int16), producer id, first offset, last offset (the
                               marker's), last stable offset when it was aborted (int64 each)
"""

from collections.abc import Iterator
from struct import Struct
from typing import Final

from odradek.base.value_classes import dataclass

ENTRY: Final = Struct(">hqqqq")
_VERSION: Final = 0


@dataclass(frozen=True, slots=True)
class AbortedTransaction:
    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


def write_entry(aborted: AbortedTransaction) -> bytes:
    return ENTRY.pack(
        _VERSION, aborted.producer_id, aborted.first_offset, aborted.last_offset, aborted.last_stable_offset
    )


def read_entries(data: bytes) -> Iterator[AbortedTransaction]:
    """Yield the whole entries. A part of one at the end is a write that was cut off."""
    whole = len(data) - len(data) % ENTRY.size
    return (AbortedTransaction(*fields) for _, *fields in ENTRY.iter_unpack(data[:whole]))

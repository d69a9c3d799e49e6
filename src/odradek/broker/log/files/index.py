"""A segment's two sparse indexes; `odradek.format.segment_files` has their entries.

Both are ordered in both columns, so a lookup is a binary search for the last entry at or before a key, and the
reader scans the segment from there. An offset entry names the *last* offset of the batch at its position; a time
entry says that no record before its offset is younger than its timestamp.

The newest entries stay in memory and go to the file a page at a time: an index that a crash cuts short is rebuilt
from the log. No descriptor is kept open. One writer at a time; readers need no lock, because the part in memory is
only appended to (the looked-up column last) or replaced whole.
"""

import os
from array import array
from bisect import bisect_left, bisect_right
from itertools import pairwise
from pathlib import Path
from struct import Struct

from odradek.format.segment_files import OFFSET_INDEX_ENTRY, TIME_INDEX_ENTRY

_ENTRIES_IN_MEMORY = 256
_BLOCK_ENTRIES = 256
_CHECKED_ENTRIES = 64
_KEY, _VALUE = 0, 1


class CorruptIndex(Exception):
    """The file is damaged; rebuild it from the log."""


class _Tail:
    """The entries after the first `stored`, which are in the file."""

    __slots__ = ("keys", "stored", "values")

    def __init__(self, stored: int, keys: "array[int] | None" = None, values: "array[int] | None" = None) -> None:
        self.stored = stored
        self.keys = array("q") if keys is None else keys
        self.values = array("q") if values is None else values


class _SparseIndex:
    """Base of both indexes: rows of (key, value), where the file has one of the two relative to the base offset."""

    __slots__ = ("_tail", "base_offset", "path")

    _row: Struct
    _key_base: int  # 1 where the stored key is relative to the base offset, else 0
    _value_base: int

    def __init__(self, path: Path, base_offset: int, *, create: bool = False) -> None:
        self.path = path
        self.base_offset = base_offset
        self._tail: _Tail | None = None
        if create:
            self.reset()

    def __len__(self) -> int:
        tail = self._loaded()
        return tail.stored + len(tail.keys)

    def lookup(self, key: int) -> tuple[int, int] | None:
        """The last entry whose key is at most this one."""
        tail = self._loaded()
        keys = tail.keys
        if keys and key >= keys[0]:
            slot = bisect_right(keys, key) - 1
            return keys[slot], tail.values[slot]
        return self._lookup_in_file(key, tail.stored)

    def last(self) -> tuple[int, int] | None:
        tail = self._loaded()
        if tail.keys:
            return tail.keys[-1], tail.values[-1]
        return self._read(tail.stored - 1, 1)[0] if tail.stored else None

    def reset(self) -> None:
        os.close(os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644))
        self._tail = _Tail(0)

    def flush(self, *, sync: bool = False) -> None:
        """Write all entries to the file, and cut the file to exactly its entries."""
        tail = self._loaded()
        if not tail.keys and not sync:
            return
        fd = os.open(self.path, os.O_WRONLY | os.O_CREAT, 0o644)
        try:
            if tail.keys:
                self._store(fd, tail)
            if sync:
                os.fsync(fd)
        finally:
            os.close(fd)

    def _append(self, key: int, value: int) -> None:
        tail = self._tail or self._loaded()
        tail.values.append(value)
        tail.keys.append(key)
        if len(tail.keys) >= _ENTRIES_IN_MEMORY:
            self.flush()

    def _store(self, fd: int, tail: _Tail) -> None:
        key_base = self.base_offset * self._key_base
        value_base = self.base_offset * self._value_base
        pack = self._row.pack
        rows = b"".join(
            pack(key - key_base, value - value_base) for key, value in zip(tail.keys, tail.values, strict=True)
        )
        size = self._row.size
        os.pwrite(fd, rows, tail.stored * size)
        stored = tail.stored + len(tail.keys)
        os.ftruncate(fd, stored * size)
        self._tail = _Tail(stored)

    def _keep(self, count: int) -> None:
        tail = self._loaded()
        if count >= tail.stored:
            cut = count - tail.stored
            self._tail = _Tail(tail.stored, tail.keys[:cut], tail.values[:cut])
            return
        os.truncate(self.path, count * self._row.size)
        self._tail = _Tail(count)

    def _truncate(self, column: int, bound: int) -> None:
        """Keep the entries whose column is below the bound."""
        tail = self._loaded()
        below = bisect_left(tail.values if column else tail.keys, bound)
        if below or not tail.stored:
            self._keep(tail.stored + below)
            return
        fd = os.open(self.path, os.O_RDONLY)
        try:
            kept = self._slot_from(fd, column, bound, tail.stored)
        finally:
            os.close(fd)
        self._keep(kept)

    def _slot_from(self, fd: int, column: int, bound: int, stored: int) -> int:
        """The place in the file of the first entry whose column reaches the bound; `stored` without one."""
        low, high = 0, stored
        while low < high:
            middle = (low + high) // 2
            rows = self._rows(fd, middle, 1)
            if rows and rows[0][column] < bound:
                low = middle + 1
            else:
                high = middle
        return low

    def _loaded(self) -> _Tail:
        tail = self._tail
        if tail is None:
            try:
                tail = _Tail(os.stat(self.path).st_size // self._row.size)
            except FileNotFoundError:
                tail = _Tail(0)
            self._tail = tail
        return tail

    def _lookup_in_file(self, key: int, stored: int) -> tuple[int, int] | None:
        """Search by single entries down to one block, then in the block."""
        if not stored:
            return None
        path = self.path
        try:
            fd = os.open(path, os.O_RDONLY)
        except FileNotFoundError:
            return None
        try:
            if self.path is not path:  # compaction gave the name away: without the index, readers scan
                return None
            low, high = 0, stored
            while high - low > _BLOCK_ENTRIES:
                middle = (low + high) // 2
                row = self._rows(fd, middle, 1)
                if row and row[0][0] <= key:
                    low = middle
                else:
                    high = middle
            size = self._row.size
            block = os.pread(fd, (high - low) * size, low * size)
        finally:
            os.close(fd)
        return self._lookup_in_block(key, block)

    def _lookup_in_block(self, key: int, block: bytes) -> tuple[int, int] | None:
        unpack, size = self._row.unpack_from, self._row.size
        stored_key = key - self.base_offset * self._key_base
        low, high = 0, len(block) // size  # entries before `low` are at most the key, those from `high` on above it
        while low < high:
            middle = (low + high) // 2
            if unpack(block, middle * size)[0] <= stored_key:
                low = middle + 1
            else:
                high = middle
        if not low:
            return None
        found_key, found_value = unpack(block, (low - 1) * size)
        return found_key + self.base_offset * self._key_base, found_value + self.base_offset * self._value_base

    def _read(self, first: int, count: int) -> list[tuple[int, int]]:
        fd = os.open(self.path, os.O_RDONLY)
        try:
            return self._rows(fd, first, count)
        finally:
            os.close(fd)

    def _rows(self, fd: int, first: int, count: int) -> list[tuple[int, int]]:
        size = self._row.size
        data = os.pread(fd, count * size, first * size)
        whole = len(data) - len(data) % size
        key_base = self.base_offset * self._key_base
        value_base = self.base_offset * self._value_base
        return [(key + key_base, value + value_base) for key, value in self._row.iter_unpack(data[:whole])]

    def _check_size(self) -> int:
        """Return the number of entries; CorruptIndex if the file is missing or has a partial entry."""
        try:
            size = os.stat(self.path).st_size
        except FileNotFoundError:
            raise CorruptIndex("no file") from None
        if size % self._row.size:
            raise CorruptIndex(f"{size} bytes is not a multiple of {self._row.size}")
        return size // self._row.size

    def _check_order(self, entries: int) -> tuple[tuple[int, int], tuple[int, int]]:
        """Return the first and the last entry; CorruptIndex unless both columns rise over the first and the last
        few."""
        few = min(entries - 1, _CHECKED_ENTRIES)
        rows = self._read(0, 1) + self._read(entries - few, few)
        for before, after in pairwise(rows):
            if after[0] <= before[0] or after[1] < before[1]:
                raise CorruptIndex(f"entry {after} comes after {before}")
        return rows[0], rows[-1]


class OffsetIndex(_SparseIndex):
    """Last offset of a batch → its position in the segment."""

    __slots__ = ()
    _row = OFFSET_INDEX_ENTRY
    _key_base, _value_base = 1, 0

    append = _SparseIndex._append

    def room(self, max_bytes: int) -> int:
        """Return the number of further entries that fit."""
        return max_bytes // self._row.size - len(self)

    def position_for(self, offset: int) -> int:
        """Return the position at which to begin scanning for the batch that has the offset."""
        entry = self.lookup(offset)
        return entry[1] if entry else 0

    def bound_from(self, position: int, default: int) -> int:
        """The last offset of the first batch that has an entry at or behind the position."""
        tail = self._loaded()
        slot = bisect_left(tail.values, position)
        if slot or not tail.stored:
            return tail.keys[slot] if slot < len(tail.keys) else default
        try:
            fd = os.open(self.path, os.O_RDONLY)
        except FileNotFoundError:
            return default
        try:
            rows = self._rows(fd, self._slot_from(fd, _VALUE, position, tail.stored), 1)
        finally:
            os.close(fd)
        if rows:
            return rows[0][_KEY]
        return tail.keys[0] if tail.keys else default

    def truncate_to(self, offset: int) -> None:
        """Keep the entries of batches that end before the offset."""
        self._truncate(_KEY, offset)

    def check(self, segment_size: int) -> None:
        entries = self._check_size()
        if not entries:
            return
        first, last = self._check_order(entries)
        if first[0] < self.base_offset or first[1] < 0:
            raise CorruptIndex(f"first entry {first}, base {self.base_offset}")
        if last[1] >= segment_size:
            raise CorruptIndex(f"last position {last[1]} in a segment of {segment_size} bytes")


class TimeIndex(_SparseIndex):
    """Largest timestamp so far → last offset of the batch that has it."""

    __slots__ = ()
    _row = TIME_INDEX_ENTRY
    _key_base, _value_base = 0, 1

    def maybe_append(self, timestamp: int, offset: int) -> None:
        """Add an entry if the timestamp is above all before it."""
        tail = self._tail
        if tail is not None and tail.keys:
            newest = tail.keys[-1]
        else:
            last = self.last()
            newest = last[0] if last else -1
        if timestamp > newest:
            self._append(timestamp, offset)

    def room(self, max_bytes: int) -> int:
        """Number of entries that can still be added. One place is kept for the entry that closing the segment adds."""
        return max_bytes // self._row.size - 1 - len(self)

    def truncate_to(self, offset: int) -> None:
        self._truncate(_VALUE, offset)

    def check(self) -> None:
        entries = self._check_size()
        if not entries:
            return
        first, _ = self._check_order(entries)
        if first[0] < 0 or first[1] < self.base_offset:
            raise CorruptIndex(f"first entry {first}, base {self.base_offset}")

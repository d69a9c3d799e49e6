"""Key → last offset, for one cleaning, in a fixed amount of memory.

A table of slots of 24 bytes each: two 64-bit hashes of the key, and its last offset plus one, where 0 is a free slot.
The key itself isn't kept. The hashes are SipHash under a secret of this process, of the key and of the key with one
byte more: two keys are confused with a probability of 2^-128, and an attacker can't search for such a pair. Slots are
probed in a row from the first hash on, so the table must not get full: `load_factor` says how far it may.

As many keys fit into the same memory as with Kafka, and memory that no key was put into is never touched.
"""

import sys
from mmap import mmap

BYTES_PER_SLOT = 24
_SALT = b"\x00"

if sys.hash_info.width < 64:
    raise ImportError("compaction tells keys apart by two 64-bit hashes, and this Python's are shorter")


class KeyMap:
    __slots__ = ("_load_factor", "_max_slots", "_room", "_slots", "_table", "latest_offset", "size")

    def __init__(self, memory_bytes: int, load_factor: float) -> None:
        self._max_slots = memory_bytes // BYTES_PER_SLOT
        self._load_factor = load_factor
        if int(self._max_slots * load_factor) < 1:
            raise ValueError(
                f"{memory_bytes} bytes don't hold a single key: raise log.cleaner.dedupe.buffer.size or lower "
                "log.cleaner.threads"
            )
        self.clear(most_keys=0)

    def clear(self, most_keys: int | None = None) -> None:
        """Forgets everything. `most_keys`: no more will be put, so a smaller table may do."""
        slots = self._max_slots
        if most_keys is not None:
            slots = max(2, min(slots, int(most_keys / self._load_factor) + 2))
        self._slots = slots
        self._room = min(int(slots * self._load_factor), slots - 1)
        self._table = memoryview(mmap(-1, slots * BYTES_PER_SLOT)).cast("q")  # its pages come when they are used
        self.size = 0
        self.latest_offset = -1
        """Offset up to which all records have been put."""

    @property
    def is_full(self) -> bool:
        return self.size >= self._room

    @property
    def utilisation(self) -> float:
        return self.size / self._slots

    def put(self, key: bytes, offset: int) -> None:
        """Offsets come in rising order, so the last one put is the largest. Not to be called when it is full."""
        first, second = hash(key), hash(key + _SALT)
        table = self._table
        at = first % self._slots * 3
        while table[at + 2]:
            if table[at] == first and table[at + 1] == second:
                table[at + 2] = offset + 1
                return
            at += 3
            if at == len(table):
                at = 0
        table[at], table[at + 1], table[at + 2] = first, second, offset + 1
        self.size += 1

    def get(self, key: bytes) -> int:
        """The last offset of the key, -1 when it has none here."""
        first = hash(key)
        table = self._table
        at = first % self._slots * 3
        while found := table[at + 2]:
            if table[at] == first and table[at + 1] == hash(key + _SALT):
                return found - 1
            at += 3
            if at == len(table):
                at = 0
        return -1

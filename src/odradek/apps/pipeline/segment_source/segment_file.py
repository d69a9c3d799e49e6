"""One segment file, batch by batch: headers, checksums, and the faults of damaged batches."""

import hashlib
import mmap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from odradek.base.errors import KafkaError
from odradek.protocol.record_batch import (
    HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC,
    MIN_LENGTH,
    BatchHeader,
    check_crc,
    read_header,
)

_DIGEST_BYTES: Final = 16
_RESIDENT_BYTES: Final = 8 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class StoredBatch:
    """A batch as it lies in its file. With a problem, no record of it can be trusted; its header may be wrong too."""

    position: int
    header: BatchHeader
    view: memoryview
    problem: str | None

    def digest(self) -> bytes:
        """Checksum of all bytes of the batch: equal on all replicas that fetched it from the same leader."""
        return hashlib.blake2b(self.view, digest_size=_DIGEST_BYTES).digest()


def stored_batches(path: Path) -> Iterator[StoredBatch]:
    """Yield every batch of the file.

    A batch that exceeds the file ends the iteration, because nothing after it can be found. A tail shorter than a
    header is an incomplete write, and ignored. A file that retention has deleted since the query was planned has no
    batches.
    """
    if not path.exists() or path.stat().st_size == 0:
        return
    with path.open("rb") as file:
        # closed with the last view of it
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    kept_from = 0
    for batch in _walk(memoryview(mapped)):
        yield batch
        if batch.position - kept_from >= _RESIDENT_BYTES:
            # pages that were read stay in the kernel's cache, but not in this process's memory
            mapped.madvise(mmap.MADV_DONTNEED, 0, batch.position)
            kept_from = batch.position


def _walk(whole: memoryview) -> Iterator[StoredBatch]:
    position, end = 0, len(whole)
    while end - position >= HEADER_SIZE:
        length = int.from_bytes(whole[position + 8 : position + 12], "big", signed=True)
        if length == 0 and not any(whole[position : position + HEADER_SIZE]):
            return  # reserved space, not written yet
        if length < MIN_LENGTH or length + LOG_OVERHEAD > end - position:
            header = BatchHeader._make((-1, length, -1, -1, 0, 0, 0, -1, -1, -1, -1, -1, 0))
            base_offset = int.from_bytes(whole[position : position + 8], "big", signed=True)
            why = f"it claims {length + LOG_OVERHEAD} bytes, {end - position} are left"
            with whole[position:end] as view:
                yield StoredBatch(position, header._replace(base_offset=base_offset), view, why)
            return
        header = read_header(whole, position)
        with whole[position : position + header.size] as view:
            yield StoredBatch(position, header, view, _problem(view, header))
        position += header.size


def _problem(view: memoryview, header: BatchHeader) -> str | None:
    if header.magic != MAGIC:
        return f"it has magic {header.magic}, and only 2 is read"
    try:
        check_crc(view, 0, header)
    except KafkaError as error:
        return error.message
    return None

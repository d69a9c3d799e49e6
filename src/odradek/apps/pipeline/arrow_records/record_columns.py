"""Records of batches as Arrow columns, over the arrays of `record_decoder` without another copy."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, Protocol, TypeAlias, cast

import numpy as np
import pyarrow as pa

from odradek.model.topology import TopicPartition
from odradek.native.load import compiled
from odradek.protocol.record_batch import BatchHeader


class MalformedRecords(ValueError):
    """The records of a batch don't match its header, although its checksum is right."""

    def __init__(self, base_offset: int) -> None:
        super().__init__(f"the records of the batch at offset {base_offset} can't be read")
        self.base_offset = base_offset


PlainBatch: TypeAlias = tuple[BatchHeader, bytes | memoryview]
"""A batch with its records, decompressed."""
Chunk: TypeAlias = list[PlainBatch]

MAX_DECOMPRESSED: Final = 256 * 1024 * 1024
_CHUNK_RECORDS: Final = 20_000
_CHUNK_BYTES: Final = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class RecordColumns:
    offset: pa.Array
    timestamp: pa.Array
    timestamp_type: pa.Array
    key: pa.Array
    value: pa.Array
    headers: pa.Array | None

    def of(self, partition: TopicPartition) -> list[pa.Array]:
        """All columns that Spark's connector has, in its order."""
        count = len(self.offset)
        return [
            self.key,
            self.value,
            pa.repeat(partition.topic, count),
            pa.repeat(pa.scalar(partition.partition, pa.int32()), count),
            self.offset,
            self.timestamp,
            self.timestamp_type,
            *([self.headers] if self.headers is not None else []),
        ]


class RecordDecoder(Protocol):
    """The functions of `record_decoder`."""

    def find_records(self, data: Any, /, *arrays: Any) -> int: ...

    def find_headers(self, data: Any, /, *arrays: Any) -> bool: ...

    def gather_pieces(self, data: Any, /, *arrays: Any) -> bool: ...


@cache
def record_decoder() -> RecordDecoder:
    """Return the compiled inner loop; if it lacks these functions, numba, whose import takes a second of CPU."""
    if compiled is not None and hasattr(compiled, "find_records"):
        return cast(RecordDecoder, compiled)
    from odradek.apps.pipeline.arrow_records import record_decoder as by_numba

    return cast(RecordDecoder, by_numba)


def chunked(batches: Iterable[PlainBatch]) -> Iterator[Chunk]:
    """Group batches: enough for one call into compiled code, few enough for a worker's memory."""
    chunk: Chunk = []
    records = size = 0
    for header, payload in batches:
        chunk.append((header, payload))
        records, size = records + header.record_count, size + len(payload)
        if records >= _CHUNK_RECORDS or size >= _CHUNK_BYTES:
            yield chunk
            chunk, records, size = [], 0, 0
    if chunk:
        yield chunk


def decode_records(batches: Chunk, headers_type: pa.DataType | None) -> RecordColumns:
    """Decode the records of a batch into columns; `headers_type` None leaves headers out."""
    data = np.frombuffer(b"".join(payload for _, payload in batches), np.uint8)
    headers = [header for header, _ in batches]
    counts = np.array([header.record_count for header in headers], np.int64)
    rows, first = int(counts.sum()), headers[0].base_offset if headers else 0
    found = [np.empty(rows, np.int64) for _ in range(8)]
    bad = record_decoder().find_records(
        data,
        np.cumsum([len(payload) for _, payload in batches], dtype=np.int64),
        counts,
        np.array([header.base_offset for header in headers], np.int64),
        np.array([header.base_timestamp for header in headers], np.int64),
        np.array([header.max_timestamp if header.timestamp_type else -1 for header in headers], np.int64),
        *found,
    )
    if bad >= 0:
        raise MalformedRecords(headers[bad].base_offset)
    offsets, times, key_at, key_size, value_at, value_size, headers_at, header_count = found
    kinds = np.repeat(np.array([int(header.timestamp_type) for header in headers], np.int32), counts)
    return RecordColumns(
        offset=pa.array(offsets),
        timestamp=pa.array(times * 1000).cast(pa.timestamp("us", "UTC")),
        timestamp_type=pa.array(kinds),
        key=_binary(data, key_at, key_size, pa.binary(), first),
        value=_binary(data, value_at, value_size, pa.binary(), first),
        headers=None if headers_type is None else _headers(data, headers_at, header_count, headers_type, first),
    )


def _headers(data: Any, headers_at: Any, header_count: Any, kind: pa.DataType, first: int) -> pa.Array:
    """A list of (key, value) per record; null where there is none, as the connector has it."""
    total = int(header_count.sum())
    found = [np.empty(total, np.int64) for _ in range(4)]
    if not record_decoder().find_headers(data, headers_at, header_count, *found):
        raise MalformedRecords(first)
    key_at, key_size, value_at, value_size = found
    keys = _binary(data, key_at, key_size, pa.string(), first)
    values = _binary(data, value_at, value_size, pa.binary(), first)
    pairs = pa.StructArray.from_arrays([keys, values], fields=list(kind.value_type))
    offsets = np.zeros(len(header_count) + 1, np.int32)
    np.cumsum(header_count, out=offsets[1:])
    return pa.ListArray.from_arrays(pa.array(offsets), pairs, type=kind, mask=pa.array(header_count == 0))


def _binary(data: Any, at: Any, size: Any, kind: pa.DataType, first: int) -> pa.Array:
    is_there = size >= 0
    out = np.empty(int(size[is_there].sum()), np.uint8)
    out_offsets = np.empty(len(at) + 1, np.int32)
    if not record_decoder().gather_pieces(data, at, size, out, out_offsets):
        raise MalformedRecords(first)
    valid = None if is_there.all() else pa.py_buffer(np.packbits(is_there, bitorder="little"))
    return pa.Array.from_buffers(kind, len(at), [valid, pa.py_buffer(out_offsets), pa.py_buffer(out)])

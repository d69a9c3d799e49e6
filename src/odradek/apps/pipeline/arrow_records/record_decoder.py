"""Records to columns, compiled by numba: where each key, value and header lies, then all of them gathered.

Used where the compiled inner loop (`odradek.native`), which does the same, is not built.

The input is the records of many batches, decompressed and laid end to end; `protocol.records` describes the format.
The bytes are not trusted: every varint and every length is checked against the end of its record, because
compiled code that reads past its buffer takes the process with it. Compiling takes seconds and happens once per
machine: numba keeps the machine code beside this module, or in the user's cache.
"""

from typing import Any, Final

import numba
import numpy as np

BAD: Final = -(2**62)  # not a value of a record's varint
_MAX_SHIFT: Final = 63


@numba.njit(cache=True, nogil=True, inline="always")
def _varint(data: Any, at: int, end: int) -> Any:
    """Return the zigzag number at `at` and its end; (BAD, end) if it runs over `end`."""
    shift = np.int64(0)
    value = np.int64(0)
    while at < end and shift < _MAX_SHIFT:
        byte = np.int64(data[at])
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), at
        shift += 7
    return BAD, end


@numba.njit(cache=True, nogil=True)
def find_records(
    data: Any,
    ends: Any,  # where each batch's records end in `data`; they begin where those before end
    counts: Any,
    base_offsets: Any,
    base_times: Any,
    append_times: Any,  # the time of every record of the batch, or -1 when each has its own
    offsets: Any,  # from here on: results, one element per record
    times: Any,
    key_at: Any,
    key_size: Any,
    value_at: Any,
    value_size: Any,
    headers_at: Any,
    header_count: Any,
) -> int:
    """Find the fields of all records. Return the number of the first batch that contradicts its header, or -1."""
    row = 0
    at = 0
    for batch in range(len(ends)):
        batch_end = ends[batch]
        for _ in range(counts[batch]):
            length, at = _varint(data, at, batch_end)
            end = at + length
            if length < 1 or end > batch_end:
                return batch
            delta, at = _varint(data, at + 1, end)
            if delta == BAD:
                return batch
            times[row] = base_times[batch] + delta if append_times[batch] < 0 else append_times[batch]
            delta, at = _varint(data, at, end)
            if delta == BAD:
                return batch
            offsets[row] = base_offsets[batch] + delta
            size, at = _varint(data, at, end)
            if size < -1 or at + size > end:
                return batch
            key_at[row], key_size[row] = at, size
            at += max(size, 0)
            size, at = _varint(data, at, end)
            if size < -1 or at + size > end:
                return batch
            value_at[row], value_size[row] = at, size
            at += max(size, 0)
            size, at = _varint(data, at, end)
            if size < 0 or size > end - at:
                return batch
            headers_at[row], header_count[row] = at, size
            row += 1
            at = end
        if at != batch_end:
            return batch
    return -1


@numba.njit(cache=True, nogil=True)
def find_headers(
    data: Any, headers_at: Any, header_count: Any, key_at: Any, key_size: Any, value_at: Any, value_size: Any
) -> bool:
    """Find the positions of the keys and values of all headers; return False when one of them runs over the data."""
    end = len(data)
    found = 0
    for row in range(len(headers_at)):
        at = headers_at[row]
        for _ in range(header_count[row]):
            size, at = _varint(data, at, end)
            if size < 0 or at + size > end:
                return False
            key_at[found], key_size[found] = at, size
            at += size
            size, at = _varint(data, at, end)
            if size < -1 or at + size > end:
                return False
            value_at[found], value_size[found] = at, size
            at += max(size, 0)
            found += 1
    return True


@numba.njit(cache=True, nogil=True)
def gather_pieces(data: Any, at: Any, size: Any, out: Any, out_offsets: Any) -> bool:
    """Copy pieces of `data` end to end, with the offsets that Arrow needs; a size of -1 is a null."""
    end = np.uint64(0)
    for row in range(len(at)):
        out_offsets[row] = end
        if size[row] > 0:
            # a signed index may count from the end, and the check for every byte costs four times the copy
            start = np.uint64(at[row])
            length = np.uint64(size[row])
            for byte in range(length):
                out[end + byte] = data[start + byte]
            end += length
    out_offsets[len(at)] = end
    return True

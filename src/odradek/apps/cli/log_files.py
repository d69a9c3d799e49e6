"""Reading the files of a partition's directory to show them, broken ones included.

The broker's own readers rebuild or ignore damaged parts; these readers continue as far as they can and report the
damage. Each reader yields `FileEntry` values in the order of the file and a `Problem` for each fault. Field names are
those that kafka-dump-log prints.
"""

import mmap
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from struct import Struct

from odradek.base.checksum import crc32c
from odradek.base.errors import FatalError, KafkaError
from odradek.format import producer_snapshot, transaction_index
from odradek.format.checkpoints import LEADER_EPOCH_FILE, VERSION
from odradek.format.producer_snapshot import SnapshotRow
from odradek.format.segment_files import (
    INDEX_SUFFIX,
    LOG_SUFFIX,
    OFFSET_INDEX_ENTRY,
    SNAPSHOT_SUFFIX,
    TIME_INDEX_ENTRY,
    TIME_INDEX_SUFFIX,
    TXN_INDEX_SUFFIX,
)
from odradek.protocol.record_batch import (
    LOG_OVERHEAD,
    MAGIC,
    MAGIC_AT,
    MIN_LENGTH,
    BatchHeader,
    TimestampType,
    check_crc,
    read_header,
)
from odradek.protocol.records import Record, read_control_type, read_records
from odradek.protocol.transaction_markers import marker_in

_OFFSET_AND_LENGTH = Struct(">qi")
_LEGACY_MIN_LENGTH = 14
_TIMESTAMP_NAMES = {TimestampType.CREATE_TIME: "CreateTime", TimestampType.LOG_APPEND_TIME: "LogAppendTime"}


@dataclass(frozen=True, slots=True)
class FileEntry:
    """A batch, or an entry of another file."""

    fields: dict[str, object]
    records: tuple[dict[str, object], ...] = ()


@dataclass(frozen=True, slots=True)
class Problem:
    position: int  # byte in the file
    what: str


@dataclass(frozen=True, slots=True)
class DumpOptions:
    with_records: bool = False  # look into the batches
    with_data: bool = False  # and show keys, values and headers
    max_bytes: int | None = None  # of a log file


Reader = Callable[[Path, DumpOptions], Iterator[FileEntry | Problem]]


def reader_for(path: Path) -> Reader:
    """Return the reader for a file of a partition's directory, by its name."""
    if path.name == LEADER_EPOCH_FILE:
        return read_epoch_checkpoint
    reader = _READERS.get(path.suffix)
    if reader is None:
        known = ", ".join([*_READERS, LEADER_EPOCH_FILE])
        raise FatalError(f"{path} is not a file that dump-log can read; it reads {known}")
    return reader


def read_log(path: Path, options: DumpOptions) -> Iterator[FileEntry | Problem]:
    with _mapped(path) as data:
        end = len(data) if options.max_bytes is None else min(len(data), options.max_bytes)
        position, expected_offset = 0, _offset_in_name(path)
        while position < end:
            broken = _unreadable(data, position)
            if broken:
                yield Problem(position, f"{broken}; {len(data) - position} bytes from here on are unreadable")
                return
            offset, length = _OFFSET_AND_LENGTH.unpack_from(data, position)
            if offset < expected_offset:
                yield Problem(position, f"a batch begins at offset {offset}, {expected_offset} or higher was due")
            if data[position + MAGIC_AT] == MAGIC:
                header = read_header(data, position)
                yield from _read_batch(data, position, header, options)
                expected_offset = header.next_offset
            else:
                yield FileEntry(_legacy_fields(data, position))
                expected_offset = offset + 1
            position += length + LOG_OVERHEAD


def _unreadable(data: memoryview, position: int) -> str:
    """Return the reason why no batch can be read here, or an empty text."""
    left = len(data) - position
    if left <= MAGIC_AT:
        return f"a batch header is cut short: {left} bytes left"
    _, length = _OFFSET_AND_LENGTH.unpack_from(data, position)
    magic = data[position + MAGIC_AT]
    if magic > MAGIC:
        return f"unknown magic {magic}"
    least = MIN_LENGTH if magic == MAGIC else _LEGACY_MIN_LENGTH
    if length < least:
        return f"a batch length of {length}, less than {least}"
    if length + LOG_OVERHEAD > left:
        return f"a batch of {length + LOG_OVERHEAD} bytes is cut short: {left} bytes left"
    return ""


def _read_batch(
    data: memoryview, position: int, header: BatchHeader, options: DumpOptions
) -> Iterator[FileEntry | Problem]:
    problem = None
    try:
        check_crc(data, position, header)
    except KafkaError as error:
        problem = Problem(position, str(error))
    records: list[dict[str, object]] = []
    if options.with_records and problem is None:
        try:
            records.extend(
                _record_fields(header, record, options.with_data) for record in read_records(data, position, header)
            )
        except KafkaError as error:
            problem = Problem(position, str(error))
    yield FileEntry(_batch_fields(header, position, is_valid=problem is None), tuple(records))
    if problem is not None:
        yield problem


def _batch_fields(header: BatchHeader, position: int, *, is_valid: bool) -> dict[str, object]:
    return {
        "baseOffset": header.base_offset,
        "lastOffset": header.last_offset,
        "count": header.record_count,
        "baseSequence": header.base_sequence,
        "lastSequence": header.last_sequence,
        "producerId": header.producer_id,
        "producerEpoch": header.producer_epoch,
        "partitionLeaderEpoch": header.leader_epoch,
        "isTransactional": header.is_transactional,
        "isControl": header.is_control,
        "deleteHorizonMs": header.delete_horizon_ms,
        "position": position,
        _TIMESTAMP_NAMES[header.timestamp_type]: header.max_timestamp,
        "size": header.size,
        "magic": header.magic,
        "compresscodec": _codec_name(header),
        "crc": header.crc,
        "isvalid": is_valid,
    }


def _codec_name(header: BatchHeader) -> str:
    try:
        return header.compression.name.lower()
    except KafkaError:
        return "unknown"


def _legacy_fields(data: memoryview, position: int) -> dict[str, object]:
    """Fields of a message in formats before 2, which share the offset, the length and the place of the magic byte."""
    offset, length = _OFFSET_AND_LENGTH.unpack_from(data, position)
    return {
        "offset": offset,
        "position": position,
        "size": length + LOG_OVERHEAD,
        "magic": data[position + MAGIC_AT],
    }


def _record_fields(header: BatchHeader, record: Record, with_data: bool) -> dict[str, object]:
    sequence = -1 if header.base_sequence < 0 else header.base_sequence + record.offset - header.base_offset
    fields: dict[str, object] = {
        "offset": record.offset,
        _TIMESTAMP_NAMES[header.timestamp_type]: record.timestamp,
        "keySize": -1 if record.key is None else len(record.key),
        "valueSize": -1 if record.value is None else len(record.value),
        "sequence": sequence,
        "headerKeys": [name for name, _ in record.headers],
    }
    if header.is_control:
        found = marker_in(header, record)
        if found is None:
            kind = read_control_type(record.key)
            fields["controlType"] = "UNKNOWN" if kind is None else kind.name
        else:
            fields["endTxnMarker"] = "COMMIT" if found.is_committed else "ABORT"
            fields["coordinatorEpoch"] = found.coordinator_epoch
    elif with_data:
        fields["key"] = record.key
        fields["payload"] = record.value
        fields["headers"] = [{"key": name, "value": value} for name, value in record.headers]
    return fields


def read_index(path: Path, _options: DumpOptions) -> Iterator[FileEntry | Problem]:
    """Read the sparse offset index; each entry is compared with its batch if the log file is beside it."""
    base_offset = _offset_in_name(path)
    log_path = path.with_suffix(LOG_SUFFIX)
    with _mapped(path) as data, _mapped(log_path, missing_is_empty=True) as log:
        last_offset = -1
        for at, (relative, position) in _entries(data, OFFSET_INDEX_ENTRY):
            offset = base_offset + relative
            if relative == 0 and position == 0:
                return  # the zeroes of a preallocated file
            yield FileEntry({"offset": offset, "position": position})
            if offset <= last_offset:
                yield Problem(at, f"offset {offset} does not rise after {last_offset}")
            elif log_path.exists():
                yield from _mismatch(log, at, offset, position)
            last_offset = offset
        yield from _odd_tail(data, OFFSET_INDEX_ENTRY)


def _mismatch(log: memoryview, at: int, offset: int, position: int) -> Iterator[Problem]:
    if not 0 <= position < len(log):
        yield Problem(at, f"points to byte {position}, the log has {len(log)}")
        return
    broken = _unreadable(log, position)
    if broken:
        yield Problem(at, f"points to byte {position} of the log, where there is {broken}")
        return
    found = read_header(log, position)
    if found.magic == MAGIC and found.last_offset != offset:
        yield Problem(at, f"names offset {offset}, the batch there ends at {found.last_offset}")


def read_time_index(path: Path, _options: DumpOptions) -> Iterator[FileEntry | Problem]:
    base_offset = _offset_in_name(path)
    with _mapped(path) as data:
        last_timestamp = -1
        for at, (timestamp, relative) in _entries(data, TIME_INDEX_ENTRY):
            if timestamp == 0 and relative == 0:
                return  # the zeroes of a preallocated file
            yield FileEntry({"timestamp": timestamp, "offset": base_offset + relative})
            if timestamp < last_timestamp:
                yield Problem(at, f"timestamp {timestamp} is lower than the one before, {last_timestamp}")
            last_timestamp = timestamp
        yield from _odd_tail(data, TIME_INDEX_ENTRY)


def read_txn_index(path: Path, _options: DumpOptions) -> Iterator[FileEntry | Problem]:
    names = ("version", "producerId", "firstOffset", "lastOffset", "lastStableOffset")
    with _mapped(path) as data:
        for _, values in _entries(data, transaction_index.ENTRY):
            yield FileEntry(dict(zip(names, values, strict=True)))
        yield from _odd_tail(data, transaction_index.ENTRY)


def read_producer_snapshot(path: Path, _options: DumpOptions) -> Iterator[FileEntry | Problem]:
    data = path.read_bytes()
    prefix, row = producer_snapshot.PREFIX, producer_snapshot.ROW
    if len(data) < producer_snapshot.SIZE_MIN:
        yield Problem(0, f"{len(data)} bytes, a producer snapshot has at least {producer_snapshot.SIZE_MIN}")
        return
    version, crc = prefix.unpack_from(data)
    if version != producer_snapshot.VERSION:
        yield Problem(0, f"snapshot version {version}, only {producer_snapshot.VERSION} is known")
        return
    computed = crc32c(data[prefix.size :])
    if computed != crc:
        yield Problem(2, f"stored crc {crc}, computed {computed}")
    (count,) = producer_snapshot.COUNT.unpack_from(data, prefix.size)
    entries = memoryview(data)[producer_snapshot.SIZE_MIN :]
    found = 0
    for _, values in _entries(entries, row):
        found += 1
        yield FileEntry(_producer_fields(SnapshotRow._make(values)))
    if found != count or len(entries) % row.size:
        yield Problem(prefix.size, f"{count} producers announced, {len(entries) / row.size:g} found")


def _producer_fields(row: SnapshotRow) -> dict[str, object]:
    first_sequence = -1 if row.last_sequence < 0 else (row.last_sequence - row.offset_delta) & 0x7FFFFFFF
    return {
        "producerId": row.producer_id,
        "producerEpoch": row.epoch,
        "coordinatorEpoch": row.coordinator_epoch,
        "currentTxnFirstOffset": None if row.txn_first_offset < 0 else row.txn_first_offset,
        "firstSequence": first_sequence,
        "lastSequence": row.last_sequence,
        "lastOffset": row.last_offset,
        "offsetDelta": row.offset_delta,
        "timestamp": row.timestamp,
    }


def read_epoch_checkpoint(path: Path, _options: DumpOptions) -> Iterator[FileEntry | Problem]:
    """Text: a version line, a count line, then `epoch start_offset` lines."""
    position, entries, announced = 0, 0, -1
    for number, line in enumerate(path.read_bytes().splitlines(keepends=True)):
        try:
            values = [int(word) for word in line.split()]
        except ValueError:
            values = []
        if number == 0 and values != [VERSION]:
            yield Problem(position, f"version line {line.decode(errors='backslashreplace').strip()!r}, not {VERSION}")
            return
        if number == 1 and len(values) == 1:
            announced = values[0]
        elif number > 1 and len(values) == 2:
            entries += 1
            yield FileEntry({"epoch": values[0], "startOffset": values[1]})
        elif number > 0:
            yield Problem(position, f"line {line.decode(errors='backslashreplace').strip()!r} is invalid")
        position += len(line)
    if entries != announced:
        yield Problem(position, f"{max(announced, 0)} entries announced, {entries} found")


_READERS: dict[str, Reader] = {
    LOG_SUFFIX: read_log,
    INDEX_SUFFIX: read_index,
    TIME_INDEX_SUFFIX: read_time_index,
    TXN_INDEX_SUFFIX: read_txn_index,
    SNAPSHOT_SUFFIX: read_producer_snapshot,
}


def _entries(data: memoryview, layout: Struct) -> Iterator[tuple[int, tuple[int, ...]]]:
    for at in range(0, len(data) - layout.size + 1, layout.size):
        yield at, layout.unpack_from(data, at)


def _odd_tail(data: memoryview, layout: Struct) -> Iterator[Problem]:
    odd = len(data) % layout.size
    if odd:
        yield Problem(len(data) - odd, f"{odd} bytes after the last whole entry of {layout.size}")


def _offset_in_name(path: Path) -> int:
    try:
        return int(path.name.split(".")[0])
    except ValueError:
        raise FatalError(f"{path}: the name has no offset; a segment is called like 00000000000000000000.log") from None


@contextmanager
def _mapped(path: Path, *, missing_is_empty: bool = False) -> Iterator[memoryview]:
    if missing_is_empty and not path.exists():
        yield memoryview(b"")
        return
    with open(path, "rb") as file:
        if path.stat().st_size == 0:  # an empty file can't be mapped
            yield memoryview(b"")
            return
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapping, memoryview(mapping) as view:
            yield view

"""Compaction of one batch: it stays unchanged, becomes smaller or empty, or is removed.

A batch keeps its base offset, its last offset and its sequences, so gaps appear inside of and between batches, and the
last sequence of a producer stays known: the last batch of each active producer stays even when it is empty. The first
cleaning that meets a batch with tombstones, or with the marker of a transaction whose data was removed, sets its delete
horizon in place of its base timestamp; after that time a cleaning drops them.

Rebuilt batches equal Kafka's, to the byte if they aren't compressed. Messages of the older formats are copied
unchanged: their keys are not read, so tombstones after them stay, whatever their horizon.

Pure: no clock, no file.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple, TypeAlias

from odradek.base.value_classes import dataclass
from odradek.broker.log.core.cleaned_transactions import CleanedTransactions
from odradek.broker.log.core.key_map import KeyMap
from odradek.broker.log.core.producer_entry import ProducerEntry
from odradek.native.load import compiled
from odradek.protocol.compression import compress
from odradek.protocol.record_batch import (
    CODEC_MASK,
    DELETE_HORIZON_BIT,
    MAGIC,
    NO_TIMESTAMP,
    BatchHeader,
    Buffer,
    check_crc,
    pack_batch,
)
from odradek.protocol.record_walk import invalid, read_varint
from odradek.protocol.records import (
    DEFAULT_MAX_DECOMPRESSED,
    ControlType,
    encode_varint,
    plain_payload,
    read_control_type,
    read_records,
)

# start, end of the timestamp, end, timestamp delta, offset delta, key, is a tombstone. A plain tuple: one per record.
Span: TypeAlias = tuple[int, int, int, int, int, bytes | None, bool]


class Filtered(NamedTuple):
    """`data` None: nothing is left. `max_timestamp` is that of what is left."""

    data: Buffer | None
    max_timestamp: int
    records: int


NOTHING = Filtered(None, NO_TIMESTAMP, 0)


@dataclass(slots=True)
class FilterCounts:
    read: int = 0
    kept: int = 0
    keyless: int = 0
    old_formats: int = 0


class BatchFilter:
    """Filter of one cleaning of one log. The caller gives all batches in order, from the log's first on."""

    def __init__(
        self, keys: KeyMap, transactions: CleanedTransactions, *, now_ms: int, delete_retention_ms: int
    ) -> None:
        self.counts = FilterCounts()
        self.producers: Mapping[int, ProducerEntry] = {}
        """The active ones, whose last batch stays."""
        self._keys = keys
        self._transactions = transactions
        self._now_ms = now_ms
        self._new_horizon_ms = now_ms + delete_retention_ms

    def filter(self, buf: memoryview, pos: int, header: BatchHeader) -> Filtered:
        """Return the compacted batch; raise KafkaError when its bytes are not the written ones, or its records can't be
        read.
        """
        if header.magic < MAGIC:
            self.counts.old_formats += 1
            return Filtered(buf[pos : pos + header.size], header.max_timestamp, 1)
        check_crc(buf, pos, header)
        if header.is_control:
            return self._filter_control(buf, pos, header)
        if self._transactions.may_drop_data(header):
            self.counts.read += header.record_count
            return self._nothing_of(header)
        data = plain_payload(buf, pos, header, max_decompressed=DEFAULT_MAX_DECOMPRESSED)
        kept, has_tombstones = self._kept(data, header)
        self.counts.read += header.record_count
        self.counts.kept += len(kept)
        if not kept:
            return self._nothing_of(header)
        set_horizon = has_tombstones and header.delete_horizon_ms is None
        if len(kept) == header.record_count and not set_horizon:
            return Filtered(buf[pos : pos + header.size], header.max_timestamp, len(kept))
        return rebuilt(header, data, kept, self._new_horizon_ms if set_horizon else None)

    def _filter_control(self, buf: memoryview, pos: int, header: BatchHeader) -> Filtered:
        self.counts.read += header.record_count
        droppable = self._transactions.may_drop_marker(
            header, control_type(buf, pos, header), is_empty=not header.record_count
        )
        horizon_ms = header.delete_horizon_ms
        if not header.record_count or (droppable and horizon_ms is not None and horizon_ms <= self._now_ms):
            return self._nothing_of(header)
        self.counts.kept += header.record_count
        if not droppable or horizon_ms is not None:
            return Filtered(buf[pos : pos + header.size], header.max_timestamp, header.record_count)
        data = plain_payload(buf, pos, header, max_decompressed=DEFAULT_MAX_DECOMPRESSED)
        return rebuilt(header, data, list(spans(data, header.record_count)), self._new_horizon_ms)

    def _kept(self, data: bytes, header: BatchHeader) -> tuple[list[Span], bool]:
        base_offset, horizon_ms = header.base_offset, header.delete_horizon_ms
        drops_tombstones = horizon_ms is not None and horizon_ms <= self._now_ms and not self.counts.old_formats
        last_known, last_offset_of = self._keys.latest_offset, self._keys.get
        kept: list[Span] = []
        has_tombstones = False
        for span in spans(data, header.record_count):
            _, _, _, _, delta, key, is_tombstone = span
            offset = base_offset + delta
            if offset <= last_known:
                if key is None:
                    self.counts.keyless += 1
                    continue
                if offset < last_offset_of(key) or (is_tombstone and drops_tombstones):
                    continue
            kept.append(span)
            has_tombstones = has_tombstones or is_tombstone
        return kept, has_tombstones

    def _nothing_of(self, header: BatchHeader) -> Filtered:
        if header.producer_id < 0 or not self._is_last_of_producer(header):
            return NOTHING
        return Filtered(emptied(header), header.max_timestamp, 0)

    def _is_last_of_producer(self, header: BatchHeader) -> bool:
        """The batch with its last sequence or, where it has none, the marker with its epoch, which fences others."""
        entry = self.producers.get(header.producer_id)
        if entry is None:
            return False
        if entry.batches:
            return header.last_offset == entry.batches[-1].last_offset
        return header.is_control and header.producer_epoch == entry.epoch


def spans(data: bytes, count: int) -> Iterable[Span]:
    """Yield the place of each record, and its facts for compaction. KafkaError where they don't fill the batch."""
    found = None if compiled is None else compiled.record_spans(data, count)
    return _spans(data, count) if found is None else found


def _spans(data: bytes, count: int) -> Iterator[Span]:
    at, end = 0, len(data)
    varint = read_varint
    try:
        for _ in range(count):
            start = at
            # The loop is the cost of compaction: varints of a byte or two, nearly all, are read without a call.
            if (byte := data[at]) < 0x80:
                length, at = byte >> 1 ^ -(byte & 1), at + 1
            elif (second := data[at + 1]) < 0x80:
                length, at = (byte & 0x7F | second << 7) >> 1 ^ -(byte & 1), at + 2
            else:
                length, at = varint(data, at)
            stop = at + length
            if length < 0 or stop > end:
                raise invalid(f"a record of {length} bytes, {end - at} left")
            if (byte := data[at + 1]) < 0x80:
                timestamp_delta, timestamp_end = byte >> 1 ^ -(byte & 1), at + 2
            elif (second := data[at + 2]) < 0x80:
                timestamp_delta, timestamp_end = (byte & 0x7F | second << 7) >> 1 ^ -(byte & 1), at + 3
            else:
                timestamp_delta, timestamp_end = varint(data, at + 1)
            if (byte := data[timestamp_end]) < 0x80:
                offset_delta, at = byte >> 1 ^ -(byte & 1), timestamp_end + 1
            else:
                offset_delta, at = varint(data, timestamp_end)
            if (byte := data[at]) < 0x80:
                size, at = byte >> 1 ^ -(byte & 1), at + 1
            else:
                size, at = varint(data, at)
            key = None
            if size >= 0:
                key = data[at : at + size]
                at += size
            if (byte := data[at]) < 0x80:
                size, at = byte >> 1 ^ -(byte & 1), at + 1
            else:
                size, at = varint(data, at)
            if (at + size if size > 0 else at) >= stop:
                raise invalid(f"a field of {size} bytes, {stop - at} left")
            yield start, timestamp_end, stop, timestamp_delta, offset_delta, key, size < 0
            at = stop
    except IndexError:
        raise invalid("a record cut short") from None
    if at != end:
        raise invalid(f"{count} records and {end - at} bytes more")


def rebuilt(header: BatchHeader, data: bytes, kept: list[Span], new_horizon_ms: int | None) -> Filtered:
    """A batch of these records, in the place of the one that they come from."""
    base, attributes = header.base_timestamp, header.attributes
    append_time = header.max_timestamp if header.timestamp_type else None
    first = base + kept[0][3] if append_time is None else append_time
    if new_horizon_ms is not None:
        new_base, attributes = new_horizon_ms, attributes | DELETE_HORIZON_BIT
    else:
        new_base = base if header.delete_horizon_ms is not None else first
    newest = base + max(span[3] for span in kept) if append_time is None else append_time
    if append_time is None and new_base == base:
        body = b"".join([data[span[0] : span[2]] for span in kept])
    else:
        body = b"".join(
            [
                _with_timestamp(data, span, (base + span[3] if append_time is None else append_time) - new_base)
                for span in kept
            ]
        )
    new = header._replace(attributes=attributes, base_timestamp=new_base, max_timestamp=newest, record_count=len(kept))
    return Filtered(pack_batch(new, compress(header.compression, body)), newest, len(kept))


def emptied(header: BatchHeader) -> bytearray:
    """The batch without records: its offsets, its producer and its sequences."""
    attributes = header.attributes & ~(CODEC_MASK | DELETE_HORIZON_BIT)
    return pack_batch(header._replace(attributes=attributes, base_timestamp=NO_TIMESTAMP, record_count=0), b"")


def control_type(buf: Buffer, pos: int, header: BatchHeader) -> ControlType | None:
    """Return the kind of a control batch; None when it is empty or of an unknown kind."""
    record = next(read_records(buf, pos, header), None) if header.record_count else None
    return None if record is None else read_control_type(record.key)


def _with_timestamp(data: bytes, span: Span, delta: int) -> bytes:
    _, timestamp_end, stop, _, _, _, _ = span
    body = b"\x00" + encode_varint(delta) + data[timestamp_end:stop]
    return encode_varint(len(body)) + body

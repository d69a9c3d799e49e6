"""Kafka's producer snapshot files: what a partition knows of its producers, as of one offset.

    NNNNNNNNNNNNNNNNNNNN.snapshot   version 1 (int16), CRC-32C of all that follows (uint32), count (int32), then per
                                    producer: id (int64), epoch (int16), last sequence (int32), last offset (int64),
                                    offset delta of the last batch (int32), timestamp (int64), coordinator epoch
                                    (int32), first offset of the open transaction or -1 (int64)

The name is the offset up to which the log was read into it. Apache Kafka writes one row per producer, with its last
batch, so that after a restart it takes the retry of an earlier batch for an unexpected sequence. Here each of the last
five batches has a row of its own, the newest one last: Kafka reads the rows in order and keeps the last one of each id.
"""

import os
from collections.abc import Callable, Collection
from pathlib import Path
from struct import Struct

from crc32c import crc32c

from odradek.base.logs import get_logger
from odradek.broker.log.core.producer_state import BATCHES_KEPT, AppendedBatch, ProducerEntry, ProducerStates
from odradek.broker.log.files.segment import SNAPSHOT_SUFFIX, file_name

_HEADER = Struct(">hI")
_COUNT = Struct(">i")
_ENTRY = Struct(">qhiqiqiq")
_VERSION = 1

log = get_logger(__name__)


class CorruptSnapshot(Exception):
    """The file can't be what was written; the log tells the same, more slowly."""


def snapshot_path(directory: Path, offset: int) -> Path:
    return directory / file_name(offset, SNAPSHOT_SUFFIX)


def snapshot_offsets(directory: Path) -> list[int]:
    """The offsets of which there are snapshots, ascending."""
    return sorted(
        int(name[: -len(SNAPSHOT_SUFFIX)])
        for name in os.listdir(directory)
        if name.endswith(SNAPSHOT_SUFFIX) and name[: -len(SNAPSHOT_SUFFIX)].isdigit()
    )


def write_snapshot(path: Path, entries: Collection[ProducerEntry], *, sync: bool) -> None:
    rows = [row for entry in entries for row in _pack(entry)]
    body = b"".join((_COUNT.pack(len(rows)), *rows))
    with open(path, "wb", buffering=0) as file:
        file.write(_HEADER.pack(_VERSION, crc32c(body)) + body)
        if sync:
            os.fsync(file.fileno())


def read_snapshot(path: Path) -> list[ProducerEntry]:
    data = path.read_bytes()
    if len(data) < _HEADER.size + _COUNT.size:
        raise CorruptSnapshot(f"{len(data)} bytes")
    version, crc = _HEADER.unpack_from(data)
    if version != _VERSION:
        raise CorruptSnapshot(f"version {version}")
    body = memoryview(data)[_HEADER.size :]
    if crc32c(body) != crc:
        raise CorruptSnapshot("wrong checksum")
    (count,) = _COUNT.unpack_from(body)
    rows = body[_COUNT.size :]
    if count < 0 or len(rows) != count * _ENTRY.size:
        raise CorruptSnapshot(f"{count} entries in {len(rows)} bytes")
    entries: dict[int, ProducerEntry] = {}
    for row in _ENTRY.iter_unpack(rows):
        entry = _unpack(*row)
        earlier = entries.get(entry.producer_id)
        if earlier is not None and earlier.epoch == entry.epoch:
            entry = entry._replace(batches=(*earlier.batches, *entry.batches)[-BATCHES_KEPT:])
        entries[entry.producer_id] = entry
    return list(entries.values())


def _pack(entry: ProducerEntry) -> list[bytes]:
    """A row for each batch, or one without a batch. The time of the last one is that of the producer."""
    batches = entry.batches or (AppendedBatch(-1, -1, 0, -1),)
    times = [*(batch.timestamp for batch in batches[:-1]), entry.last_timestamp]
    return [
        _ENTRY.pack(
            entry.producer_id,
            entry.epoch,
            batch.last_sequence,
            batch.last_offset,
            batch.offset_delta,
            timestamp,
            entry.coordinator_epoch,
            entry.txn_first_offset,
        )
        for batch, timestamp in zip(batches, times, strict=True)
    ]


def _unpack(
    producer_id: int,
    epoch: int,
    last_sequence: int,
    last_offset: int,
    offset_delta: int,
    timestamp: int,
    coordinator_epoch: int,
    txn_first_offset: int,
) -> ProducerEntry:
    batches = (AppendedBatch(last_sequence, last_offset, offset_delta, timestamp),) if last_offset >= 0 else ()
    return ProducerEntry(producer_id, epoch, coordinator_epoch, timestamp, txn_first_offset, batches)


class ProducerSnapshots:
    """The snapshot files of one partition. Only its writer uses this."""

    __slots__ = ("_directory", "_offsets")

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._offsets = snapshot_offsets(directory)

    @property
    def offsets(self) -> tuple[int, ...]:
        return tuple(self._offsets)

    def take(self, states: ProducerStates, *, sync: bool = True) -> Path | None:
        """Writes the states down as of their end offset, unless that has been done; the new file."""
        offset = states.map_end_offset
        if self._offsets and self._offsets[-1] >= offset:
            return None
        path = snapshot_path(self._directory, offset)
        write_snapshot(path, tuple(states.entries.values()), sync=sync)
        self._offsets.append(offset)
        return path

    def load_latest(self, states: ProducerStates, log_start_offset: int, log_end_offset: int, now_ms: int) -> None:
        """The states as of the newest usable snapshot inside the log; empty as of its start where there is none."""
        self.keep(lambda offset: log_start_offset < offset <= log_end_offset)
        while self._offsets:
            offset = self._offsets[-1]
            try:
                states.load(read_snapshot(snapshot_path(self._directory, offset)), offset, now_ms)
            except (CorruptSnapshot, OSError) as error:
                log.warning(
                    "producer snapshot dropped", directory=str(self._directory), offset=offset, reason=str(error)
                )
                self.keep(lambda known, bad=offset: known != bad)  # type: ignore[misc]
            else:
                return
        states.clear(log_start_offset)

    def keep(self, wanted: Callable[[int], bool]) -> None:
        for offset in self._offsets:
            if not wanted(offset):
                snapshot_path(self._directory, offset).unlink(missing_ok=True)
        self._offsets = [offset for offset in self._offsets if wanted(offset)]

    def drop_strays(self, base_offsets: set[int]) -> None:
        """Keeps those that begin a segment, and the newest one if it is past them all (a clean stop's)."""
        newest = self._offsets[-1] if self._offsets else -1
        last_base = max(base_offsets, default=0)
        self.keep(lambda offset: offset in base_offsets or (offset == newest and offset > last_base))

    def move_to(self, directory: Path) -> None:
        self._directory = directory

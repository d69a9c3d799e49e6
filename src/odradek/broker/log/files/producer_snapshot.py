"""Producer snapshot files of a partition; `odradek.format.producer_snapshot` has their bytes.

Apache Kafka writes one row per producer, with its last batch, so that after a restart it takes the retry of an earlier
batch for an unexpected sequence. Here each of the last ten batches has a row of its own, the newest one last: Kafka
reads the rows in order and keeps the last one of each id.
"""

import os
from collections.abc import Callable, Collection
from pathlib import Path

from odradek.base.logs import get_logger
from odradek.broker.log.core.producer_entry import BATCHES_KEPT, AppendedBatch, ProducerEntry
from odradek.broker.log.core.producer_state import ProducerStates
from odradek.format.producer_snapshot import CorruptSnapshot, SnapshotRow, read_rows, write_rows
from odradek.format.segment_files import SNAPSHOT_SUFFIX, file_name

log = get_logger(__name__)


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
    rows = [row for entry in entries for row in _rows(entry)]
    with open(path, "wb", buffering=0) as file:
        file.write(write_rows(rows))
        if sync:
            os.fsync(file.fileno())


def read_snapshot(path: Path) -> list[ProducerEntry]:
    entries: dict[int, ProducerEntry] = {}
    for row in read_rows(path.read_bytes()):
        entry = _entry(row)
        earlier = entries.get(entry.producer_id)
        if earlier is not None and earlier.epoch == entry.epoch:
            entry = entry._replace(batches=(*earlier.batches, *entry.batches)[-BATCHES_KEPT:])
        entries[entry.producer_id] = entry
    return list(entries.values())


def _rows(entry: ProducerEntry) -> list[SnapshotRow]:
    """A row for each batch, or one without a batch. The time of the last one is that of the producer."""
    batches = entry.batches or (AppendedBatch(-1, -1, 0, -1),)
    times = [*(batch.timestamp for batch in batches[:-1]), entry.last_timestamp]
    return [
        SnapshotRow(
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


def _entry(row: SnapshotRow) -> ProducerEntry:
    last = AppendedBatch(row.last_sequence, row.last_offset, row.offset_delta, row.timestamp)
    batches = (last,) if row.last_offset >= 0 else ()
    return ProducerEntry(
        row.producer_id, row.epoch, row.coordinator_epoch, row.timestamp, row.txn_first_offset, batches
    )


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
                    "corrupt producer snapshot deleted",
                    directory=str(self._directory),
                    offset=offset,
                    reason=str(error),
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
        """Keep the snapshots that begin a segment, and the newest one if it is past them all (a clean stop's)."""
        newest = self._offsets[-1] if self._offsets else -1
        last_base = max(base_offsets, default=0)
        self.keep(lambda offset: offset in base_offsets or (offset == newest and offset > last_base))

    def move_to(self, directory: Path) -> None:
        self._directory = directory

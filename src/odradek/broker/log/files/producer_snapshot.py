"""Producer snapshot files of a partition; `odradek.format.producer_snapshot` has their bytes.

Apache Kafka writes one row per producer, with its last batch, so that after a restart it takes the retry of an earlier
batch for an unexpected sequence. Here each of the last ten batches has a row of its own, the newest one last: Kafka
reads the rows in order and keeps the last one of each id.
"""

import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from odradek.base.logs import get_logger
from odradek.broker.log.core.producer_entry import BATCHES_KEPT, AppendedBatch, ProducerEntry
from odradek.broker.log.core.producer_state import ProducerStates
from odradek.format.producer_snapshot import CorruptSnapshot, RowFields, SnapshotRow, read_rows, write_rows
from odradek.format.segment_files import SNAPSHOT_SUFFIX, file_name

log = get_logger(__name__)


_NO_BATCH = AppendedBatch(-1, -1, 0, -1)


def snapshot_path(directory: Path, offset: int) -> Path:
    return directory / file_name(offset, SNAPSHOT_SUFFIX)


def snapshot_offsets(directory: Path) -> list[int]:
    """The offsets of which there are snapshots, ascending."""
    return sorted(
        int(name[: -len(SNAPSHOT_SUFFIX)])
        for name in os.listdir(directory)
        if name.endswith(SNAPSHOT_SUFFIX) and name[: -len(SNAPSHOT_SUFFIX)].isdigit()
    )


def write_snapshot(path: Path, entries: Iterable[ProducerEntry], *, sync: bool) -> None:
    with open(path, "wb", buffering=0) as file:
        file.write(write_rows(_rows(entries)))
        if sync:
            os.fsync(file.fileno())


def read_snapshot(path: Path) -> list[ProducerEntry]:
    """Read the producers, each with its last batches, whose rows need not be adjacent."""
    newest: dict[int, SnapshotRow] = {}
    batches: dict[int, list[AppendedBatch]] = {}
    new = tuple.__new__  # past the constructors of NamedTuple: there may be a million rows
    for row in read_rows(path.read_bytes()):
        producer_id, epoch, last_sequence, last_offset, offset_delta, timestamp, _, _ = row
        earlier = newest.get(producer_id)
        if earlier is None or earlier[1] != epoch:
            batches[producer_id] = []
        newest[producer_id] = row
        if last_offset >= 0:
            batches[producer_id].append(new(AppendedBatch, (last_sequence, last_offset, offset_delta, timestamp)))
    return [
        ProducerEntry(pid, epoch, coordinator_epoch, timestamp, txn_first_offset, tuple(batches[pid][-BATCHES_KEPT:]))
        for pid, epoch, _, _, _, timestamp, coordinator_epoch, txn_first_offset in newest.values()
    ]


def _rows(entries: Iterable[ProducerEntry]) -> Iterator[RowFields]:
    """Yield a row for each batch, or one without a batch. The time of the last row is that of the producer."""
    for producer_id, epoch, coordinator_epoch, last_timestamp, txn_first_offset, batches in entries:
        rest = coordinator_epoch, txn_first_offset
        for last_sequence, last_offset, delta, timestamp in batches[:-1]:
            yield producer_id, epoch, last_sequence, last_offset, delta, timestamp, *rest
        last_sequence, last_offset, delta, _ = batches[-1] if batches else _NO_BATCH
        yield producer_id, epoch, last_sequence, last_offset, delta, last_timestamp, *rest


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
        """Write the states as of their end offset, unless that snapshot exists; return the new file."""
        offset = states.map_end_offset
        if self._offsets and self._offsets[-1] >= offset:
            return None
        path = snapshot_path(self._directory, offset)
        write_snapshot(path, tuple(states.entries.values()), sync=sync)
        self._offsets.append(offset)
        return path

    def load_latest(self, states: ProducerStates, log_start_offset: int, log_end_offset: int, now_ms: int) -> None:
        """Load the states of the newest usable snapshot inside the log; without one, empty states as of its start."""
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

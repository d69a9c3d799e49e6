"""Leader epochs of a partition with their start offsets, and their checkpoint file.

The cache answers OffsetForLeaderEpoch and tells a follower where to truncate. Epochs and offsets both rise from entry
to entry. The entries are an immutable tuple replaced whole, so readers need no lock; the partition's writer is the only
one to change them.

Neither a new epoch nor a truncation is written immediately, because every election would wait for the disk: it must be
on disk before the recovery point passes the first record behind it. Up to there the batches themselves tell a restart
of the epochs, and where the log starts and ends tells which ones are gone.
"""

import threading
from bisect import bisect_right
from pathlib import Path
from typing import NamedTuple

from odradek.base.logs import get_logger
from odradek.broker.log.files.checkpoint import read_epochs, write_epochs

UNDEFINED_EPOCH = -1
UNDEFINED_OFFSET = -1

log = get_logger(__name__)


class EpochEntry(NamedTuple):
    epoch: int
    start_offset: int


class LeaderEpochCache:
    __slots__ = ("_path", "_saving", "_unsaved", "entries", "latest_epoch")

    def __init__(self, path: Path) -> None:
        self._path = path
        self._unsaved = False
        self._saving = threading.Lock()  # flushes save beside the writer
        self.latest_epoch = UNDEFINED_EPOCH
        self.entries: tuple[EpochEntry, ...] = ()
        for epoch, start_offset in read_epochs(path):
            if epoch >= 0 and start_offset >= 0:
                self._put(EpochEntry(epoch, start_offset))

    def assign(self, epoch: int, start_offset: int) -> None:
        """Add an epoch. Entries that contradict it (as late or as high) are removed."""
        if epoch < 0 or start_offset < 0:
            raise ValueError(f"leader epoch {epoch} at offset {start_offset}")
        if self._put(EpochEntry(epoch, start_offset)):
            self._unsaved = True

    def found(self, epoch: int, offset: int) -> None:
        """A batch of the epoch is at the offset. Entries that contradict it were cut off after the file was written,
        unless the batch is before all of them: then the log begins behind it."""
        known = self.epoch_for_offset(offset)
        if epoch < 0 or known == epoch or (known < 0 and epoch <= self.latest_epoch):
            return
        kept = tuple(entry for entry in self.entries if entry.epoch <= epoch and entry.start_offset < offset)
        if not kept or kept[-1].epoch < epoch:
            kept = (*kept, EpochEntry(epoch, offset))
        self._put_all(kept)

    def end_offset_for(self, epoch: int, log_end_offset: int) -> tuple[int, int]:
        """(the largest known epoch not above the asked one, where it ended), or (-1, -1) where nothing is known."""
        if epoch == UNDEFINED_EPOCH or epoch > self.latest_epoch:
            return UNDEFINED_EPOCH, UNDEFINED_OFFSET
        entries = self.entries
        if epoch == self.latest_epoch:
            return epoch, log_end_offset
        above = bisect_right(entries, epoch, key=_epoch_of)
        if above == len(entries):
            return UNDEFINED_EPOCH, UNDEFINED_OFFSET
        return entries[above - 1].epoch if above else epoch, entries[above].start_offset

    def epoch_for_offset(self, offset: int) -> int:
        """The epoch that wrote the offset, -1 before the first."""
        entries = self.entries
        above = bisect_right(entries, offset, key=_start_of)
        return entries[above - 1].epoch if above else UNDEFINED_EPOCH

    def truncate_from_end(self, end_offset: int) -> None:
        """Forgets the epochs that begin at or after the log's new end."""
        self._put_all(tuple(entry for entry in self.entries if entry.start_offset < end_offset))

    def truncate_from_start(self, start_offset: int) -> None:
        """The oldest epoch that still has records begins at the log's new start."""
        entries = self.entries
        above = bisect_right(entries, start_offset, key=_start_of)
        if above:
            self._put_all((EpochEntry(entries[above - 1].epoch, start_offset), *entries[above:]))

    def clear(self) -> None:
        self._put_all(())
        self.save()

    def take_over(self, entries: tuple[EpochEntry, ...]) -> None:
        """Take over the epochs of a log with the same records."""
        self._put_all(entries)
        self.save()

    def save(self) -> None:
        """Write unsaved entries to disk."""
        with self._saving:
            if self._unsaved:
                self._unsaved = False  # first, so that entries that the writer adds meanwhile are saved later
                try:
                    write_epochs(self._path, self.entries)
                except BaseException:
                    self._unsaved = True
                    raise

    def move_to(self, path: Path) -> None:
        self._path = path

    def _put_all(self, entries: tuple[EpochEntry, ...]) -> None:
        if entries != self.entries:
            self._set(entries)
            self._unsaved = True

    def _put(self, new: EpochEntry) -> bool:
        entries = self.entries
        if entries and new.epoch == entries[-1].epoch and new.start_offset >= entries[-1].start_offset:
            return False
        kept = len(entries)
        while kept and (entries[kept - 1].epoch >= new.epoch or entries[kept - 1].start_offset >= new.start_offset):
            kept -= 1
        dropped = entries[kept:]
        if len(dropped) > 1 or (dropped and dropped[0].start_offset != new.start_offset):
            log.warning(
                "conflicting leader epochs replaced", new=tuple(new), dropped=[tuple(entry) for entry in dropped]
            )
        self._set((*entries[:kept], new))
        return True

    def _set(self, entries: tuple[EpochEntry, ...]) -> None:
        self.entries = entries
        self.latest_epoch = entries[-1].epoch if entries else UNDEFINED_EPOCH


def _epoch_of(entry: EpochEntry) -> int:
    return entry.epoch


def _start_of(entry: EpochEntry) -> int:
    return entry.start_offset

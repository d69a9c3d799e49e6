"""First offset that is not cleaned yet in each compacted log: `cleaner-offset-checkpoint` in every log directory. Any
thread.

It must never be too high: below it, every key is assumed to occur once, and tombstones are dropped after their time,
which would bring back an older value that was not cleaned. So the offset is lowered before its log is truncated, and
removed before a new log gets the name.
"""

import threading
from collections.abc import Iterable
from pathlib import Path

from odradek.broker.log.files.checkpoint import read_offsets, write_offsets
from odradek.broker.log.files.partition_log import PartitionLog
from odradek.format.checkpoints import CLEANER_FILE
from odradek.model.topology import TopicPartition


class CleanedOffsets:
    def __init__(self) -> None:
        self._offsets: dict[Path, dict[TopicPartition, int]] = {}
        self._written: dict[Path, dict[TopicPartition, int]] = {}  # contents of the files
        self._lock = threading.Lock()

    def load(self, directory: Path, logs: Iterable[PartitionLog]) -> None:
        """Read the directory's checkpoint for the logs in it. One that ends before its offset lost its tail."""
        ends = {opened.partition: opened.log_end_offset for opened in logs}
        with self._lock:
            read = read_offsets(directory / CLEANER_FILE)
            known = {tp: offset for tp, offset in read.items() if offset <= ends.get(tp, -1)}
            self._written[directory] = read
            self._replace(directory, known)

    def of(self, opened: PartitionLog) -> int | None:
        """Return the clean offset; None if the log was never cleaned in this directory."""
        return self._offsets.get(opened.directory.parent, {}).get(opened.partition)

    def put(self, opened: PartitionLog, offset: int) -> None:
        """Note that the log is clean up to the offset."""
        directory = opened.directory.parent
        with self._lock:
            self._replace(directory, {**self._offsets.get(directory, {}), opened.partition: offset})

    def lower(self, directory: Path, tp: TopicPartition, offset: int) -> None:
        """Lower the offset, because the log is about to be truncated to it."""
        with self._lock:
            known = self._offsets.get(directory, {})
            if known.get(tp, offset) > offset:
                self._replace(directory, {**known, tp: offset})

    def forget(self, directory: Path, tp: TopicPartition) -> None:
        """Forget a deleted log. The file may still have it for a while."""
        with self._lock:
            self._forget(directory, tp)

    def begin(self, directory: Path, tp: TopicPartition) -> None:
        """Remove the entry of the name from the file, because a new log gets the name."""
        with self._lock:
            self._forget(directory, tp)
            if tp in self._written.get(directory, {}):
                self._replace(directory, self._offsets.get(directory, {}))

    def _forget(self, directory: Path, tp: TopicPartition) -> None:
        known = self._offsets.get(directory, {})
        if tp in known:
            self._offsets[directory] = {other: offset for other, offset in known.items() if other != tp}

    def _replace(self, directory: Path, offsets: dict[TopicPartition, int]) -> None:
        if offsets != self._written.get(directory, {}):
            write_offsets(directory / CLEANER_FILE, offsets)
            self._written[directory] = offsets
        self._offsets[directory] = offsets

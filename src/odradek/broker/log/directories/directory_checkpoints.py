"""The offset checkpoints of one log directory, written only when their content has changed. Any thread.

recovery-point-offset-checkpoint   up to where fsync has confirmed each log
log-start-offset-checkpoint        where logs start, if inside of a segment
replication-offset-checkpoint      the high watermarks
"""

import threading
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TypeAlias

from odradek.broker.log.files.checkpoint import read_offsets, write_offsets
from odradek.broker.log.files.partition_log import PartitionLog
from odradek.format.checkpoints import HIGH_WATERMARK_FILE, LOG_START_FILE, RECOVERY_POINT_FILE
from odradek.model.topology import TopicPartition

Offsets: TypeAlias = Mapping[TopicPartition, int]

Logs: TypeAlias = Callable[[], Iterable[PartitionLog]]
"""Logs of the directory, asked for when a file is written: a log that was forgotten isn't among them."""


class DirectoryCheckpoints:
    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._written: dict[str, Offsets] = {}  # contents of the files
        self._lock = threading.Lock()

    def recovery_points(self) -> Offsets:
        return self._read(RECOVERY_POINT_FILE)

    def log_starts(self) -> Offsets:
        return self._read(LOG_START_FILE)

    def high_watermarks(self) -> Offsets:
        return self._read(HIGH_WATERMARK_FILE)

    def write_recovery_points(self, logs: Logs) -> None:
        self._write(RECOVERY_POINT_FILE, lambda: {opened.partition: opened.recovery_point for opened in logs()})

    def lower_recovery_point(self, tp: TopicPartition, offset: int) -> None:
        """Lower the recovery point, because the log is about to be truncated to the offset: later records need another
        fsync."""
        with self._lock:
            written = self._written.get(RECOVERY_POINT_FILE, {})
            if written.get(tp, offset) > offset:
                self._replace(RECOVERY_POINT_FILE, {**written, tp: offset})

    def write_log_starts(self, logs: Logs) -> None:
        """Write the start offsets of logs whose first segment has another base offset."""
        self._write(
            LOG_START_FILE,
            lambda: {
                opened.partition: opened.log_start_offset
                for opened in logs()
                if opened.log_start_offset > opened.segments[0].base_offset
            },
        )

    def write_high_watermarks(self, logs: Logs, known: Offsets) -> None:
        self._write(
            HIGH_WATERMARK_FILE,
            lambda: {opened.partition: known[opened.partition] for opened in logs() if opened.partition in known},
        )

    def forget(self, tp: TopicPartition, logs: Logs) -> None:
        """A former log of the same name must leave no offsets behind that a restart would apply to the new one.

        Others that are gone leave none either: where a topic is made again, each file is written once, and not once
        for each partition.
        """
        for name in (RECOVERY_POINT_FILE, LOG_START_FILE, HIGH_WATERMARK_FILE):
            with self._lock:
                written = self._written.get(name, {})
                if tp in written:
                    kept = {opened.partition for opened in logs()} - {tp}
                    self._replace(name, {known: written[known] for known in written if known in kept})

    def _read(self, name: str) -> Offsets:
        offsets = read_offsets(self._directory / name)
        self._written[name] = offsets
        return offsets

    def _write(self, name: str, offsets_now: Callable[[], Offsets]) -> None:
        with self._lock:
            offsets = offsets_now()
            if self._written.get(name) != offsets:
                self._replace(name, offsets)

    def _replace(self, name: str, offsets: Offsets) -> None:
        write_offsets(self._directory / name, offsets)
        self._written[name] = offsets

"""Lines of standard input or of files as records, in batches that are sent when they are full or the input pauses."""

import os
import select
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from odradek.apps.cli.output import progress
from odradek.apps.cli.record_text import LineError, LineRules, parse_line
from odradek.base.errors import FatalError
from odradek.client.cluster_client import TopicState, unknown_partition
from odradek.client.partitioner import partition_for_key
from odradek.client.record_sender import NewRecord, RecordSender
from odradek.model.topology import TopicPartition

_READ_BYTES = 256 * 1024
_RECORD_OVERHEAD_BYTES = 12


class LineWriter:
    """Collects records per partition and sends them when a batch is full or the input pauses."""

    def __init__(self, sender: RecordSender, topic: TopicState, partition: int | None, batch_size: int) -> None:
        self._sender = sender
        self._partition_count = len(topic.partitions)
        if partition is not None and partition >= self._partition_count:
            raise unknown_partition(TopicPartition(topic.name, partition), self._partition_count)
        self._fixed_partition = partition
        self._next_partition = 0
        self._batch_size = batch_size
        self._gathered: dict[int, list[NewRecord]] = {}
        self._gathered_bytes: dict[int, int] = {}
        self._started = time.monotonic()
        self.records = 0
        self.record_bytes = 0

    def add(self, record: NewRecord) -> None:
        size = _RECORD_OVERHEAD_BYTES + len(record.key or b"") + len(record.value or b"")
        partition = self._partition_for(record.key)
        filled = self._gathered_bytes.get(partition, 0)
        if filled and filled + size > self._batch_size:
            self.flush()
            partition = self._partition_for(record.key)
        self._gathered.setdefault(partition, []).append(record)
        self._gathered_bytes[partition] = self._gathered_bytes.get(partition, 0) + size

    def flush(self) -> None:
        if not self._gathered:
            return
        self._sender.send(self._gathered)
        for batch in self._gathered.values():
            self.records += len(batch)
            self.record_bytes += sum(len(record.key or b"") + len(record.value or b"") for record in batch)
        self._gathered.clear()
        self._gathered_bytes.clear()
        self._next_partition = (self._next_partition + 1) % self._partition_count

    def summary(self) -> dict[str, object]:
        seconds = time.monotonic() - self._started
        return {
            "records": self.records,
            "bytes": self.record_bytes,
            "seconds": round(seconds, 3),
            "records_per_second": round(self.records / seconds, 1),
        }

    def _partition_for(self, key: bytes | None) -> int:
        if self._fixed_partition is not None:
            return self._fixed_partition
        if key is not None:
            return partition_for_key(key, self._partition_count)
        return self._next_partition


def write_lines(writer: LineWriter, paths: list[Path], rules: LineRules, *, prompt: str = "") -> None:
    """Write lines of the files, or of standard input, where `prompt` is shown before each line."""
    total = sum(path.stat().st_size for path in paths) if paths else None
    # On a terminal the bar would overwrite the typed text.
    with progress("writing", total, unit="bytes", hidden=not paths and sys.stdin.isatty()) as show:
        done = 0
        for name, number, line in _lines(writer, paths, prompt):
            try:
                writer.add(NewRecord(*parse_line(line, rules)))
            except LineError as error:
                writer.flush()
                raise FatalError(f"{name} line {number}: {error}; {writer.records} records were written") from None
            done += len(line) + 1
            show(done)
        writer.flush()


def _lines(writer: LineWriter, paths: list[Path], prompt: str) -> Iterator[tuple[str, int, bytes]]:
    """Yield each line with the name of its source and its number. When the source has no line ready, collected records
    are sent, so that typed lines are written at once."""
    sources: list[Path | None] = [*paths] or [None]
    for source in sources:
        fd = sys.stdin.fileno() if source is None else os.open(source, os.O_RDONLY)
        name, number, rest = "standard input" if source is None else str(source), 0, b""
        try:
            sys.stdout.write(prompt)
            sys.stdout.flush()
            while chunk := os.read(fd, _READ_BYTES):
                *lines, rest = (rest + chunk).split(b"\n")
                for line in lines:
                    number += 1
                    yield name, number, line.removesuffix(b"\r")
                if not select.select([fd], [], [], 0)[0]:
                    writer.flush()
                sys.stdout.write(prompt)
                sys.stdout.flush()
            if rest:
                yield name, number + 1, rest
        finally:
            if source is not None:
                os.close(fd)

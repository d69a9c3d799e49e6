"""The loop of a consumer that prints: polls, prints, and ends at its limits."""

import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from odradek.apps.cli.record_text import ConsumedRecord
from odradek.client.record_reader import Fetched, records_with_batches
from odradek.model.topology import TopicPartition
from odradek.protocol.record_batch import TimestampType
from odradek.protocol.records import Record

Printer = Callable[[ConsumedRecord], bytes]
Wanted = Callable[[TopicPartition, Record], bool]


class Source(Protocol):
    """Source of records: named partitions, or the ones that a group assigns."""

    @property
    def is_finished(self) -> bool: ...

    def poll(self) -> list[Fetched]: ...

    def stop(self, tp: TopicPartition) -> None: ...


@dataclass(frozen=True, slots=True)
class Limits:
    messages: int | None
    silence_ms: int | None


class Printing:
    """`consumed` is the offset after the last record that was printed or left out, of each partition."""

    def __init__(
        self,
        source: Source,
        printer: Printer,
        limits: Limits,
        ends: Mapping[TopicPartition, int] | None = None,
        wanted: Wanted | None = None,
    ) -> None:
        self.printed = 0
        self.scanned = 0
        self._wanted = wanted
        self.consumed: dict[TopicPartition, int] = {}
        self._source = source
        self._printer = printer
        self._limits = limits
        self._ends = dict(ends or {})
        self._last_record_at = time.monotonic()

    def run(self) -> None:
        """Print until enough records are printed. A partition with an end is stopped when it is reached."""
        while not self._source.is_finished and not self.is_enough and not self.is_silent:
            for fetched in self._source.poll():
                self._print(fetched)
            sys.stdout.buffer.flush()

    @property
    def is_enough(self) -> bool:
        return self.printed == self._limits.messages

    @property
    def is_silent(self) -> bool:
        silence_ms = (time.monotonic() - self._last_record_at) * 1000
        return self._limits.silence_ms is not None and silence_ms >= self._limits.silence_ms

    def _print(self, fetched: Fetched) -> None:
        tp, end = fetched.tp, self._ends.get(fetched.tp)
        for header, record in records_with_batches(fetched):
            if self.is_enough:
                return
            if end is not None and record.offset >= end:
                break
            self.scanned += 1
            if self._wanted is not None and not self._wanted(tp, record):
                continue
            consumed = ConsumedRecord(
                tp.topic,
                tp.partition,
                record.offset,
                record.timestamp,
                record.key,
                record.value,
                tuple(record.headers),
                header.timestamp_type is TimestampType.LOG_APPEND_TIME,
            )
            sys.stdout.buffer.write(self._printer(consumed))
            self.printed += 1
            self.consumed[tp] = record.offset + 1
        self.consumed[tp] = fetched.next_offset
        self._last_record_at = time.monotonic()
        if end is not None and fetched.next_offset >= end:
            self._source.stop(tp)

"""The batches of a replica's log, as last read."""

from typing import NamedTuple

from odradek.broker.log.files.partition_log import PartitionLog
from odradek.protocol.record_batch import batches
from odradek.sim.checkers.violation import Violation


class LogEntry(NamedTuple):
    """One batch by its place, epoch and checksum: two that are equal are the same batch."""

    base_offset: int
    last_offset: int
    epoch: int
    crc: int
    is_control: bool = False


class LogReading:
    """Batches of a log. Only new ones are read again, unless the log is another one or was truncated."""

    def __init__(self) -> None:
        self.entries: list[LogEntry] = []
        self.end_offset = 0
        self.compared = 0  # so many entries were found to be the committed ones
        self._log: PartitionLog | None = None
        self._truncations = -1

    def is_of(self, log: PartitionLog) -> bool:
        """Return whether that log was read, and not truncated since."""
        return log is self._log and log.flushed.truncations == self._truncations

    def read(self, log: PartitionLog) -> None:
        end_offset = log.log_end_offset
        if not self.is_of(log):
            self.entries, self.end_offset, self.compared = [], log.log_start_offset, 0
            self._log, self._truncations = log, log.flushed.truncations
        while self.end_offset < end_offset:
            if self.end_offset < log.log_start_offset:
                self.entries, self.end_offset, self.compared = [], log.log_start_offset, 0
                continue
            found = log.read(self.end_offset, 1 << 20, upper_bound=end_offset).records.read()
            if not found:
                raise Violation(f"a log that ends at {end_offset} has nothing at {self.end_offset}")
            self.entries += entries_in(found)
            self.end_offset = self.entries[-1].last_offset + 1


def entries_in(records: bytes) -> list[LogEntry]:
    return [
        LogEntry(h.base_offset, h.base_offset + h.last_offset_delta, h.leader_epoch, h.crc, h.is_control)
        for _, h in batches(records)
    ]

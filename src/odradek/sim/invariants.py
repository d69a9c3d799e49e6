"""Invariants of a simulation, checked after each step and at its end.

Logs are compared batch by batch: by place, epoch and checksum. A replica that lost its tail in a power failure is
excused until the controller has noticed that its broker was away.
"""

from itertools import pairwise
from typing import NamedTuple

from odradek.broker.log.files.partition_log import PartitionLog
from odradek.model.topology import LeaderAndIsr
from odradek.protocol.record_batch import batches
from odradek.sim.broker import SimulatedBroker


class Violation(AssertionError):
    """An invariant is broken."""


class Entry(NamedTuple):
    base_offset: int
    last_offset: int
    epoch: int
    crc: int


class LogReading:
    """The batches of a log as last read; only new ones are read again."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.end_offset = 0
        self.equals_committed = 0  # so many entries were found to be the committed ones
        self._log: PartitionLog | None = None
        self._truncations = -1

    def read(self, log: PartitionLog) -> None:
        if log is not self._log or log.truncations != self._truncations:
            self.entries, self.end_offset, self.equals_committed = [], log.log_start_offset, 0
            self._log, self._truncations = log, log.truncations
        while self.end_offset < log.log_end_offset:
            found = log.read(self.end_offset, 1 << 20, upper_bound=log.log_end_offset).records.read()
            self.entries += entries_in(found)
            self.end_offset = self.entries[-1].last_offset + 1


def entries_in(records: bytes) -> list[Entry]:
    return [
        Entry(h.base_offset, h.base_offset + h.last_offset_delta, h.leader_epoch, h.crc) for _, h in batches(records)
    ]


class Invariants:
    def __init__(self) -> None:
        self.committed: list[Entry] = []
        self.committed_end = 0
        self.acknowledged: dict[int, int] = {}  # base offset → checksum
        self.lost_tail: set[int] = set()  # brokers whose loss the controller doesn't know of yet
        self._contradictions: list[str] = []
        self._acknowledged_by: dict[int, int] = {}  # leader epoch → broker
        self._readings: dict[int, LogReading] = {}
        self._watermarks: dict[tuple[SimulatedBroker, int], int] = {}  # of a leader in an epoch

    # ---- after each step

    def check(self, brokers: dict[int, SimulatedBroker], state: LeaderAndIsr | None) -> None:
        if self._contradictions:
            raise Violation(self._contradictions[0])
        for broker in brokers.values():
            if broker.log is not None:
                self._readings.setdefault(broker.id, LogReading()).read(broker.log)
        for broker in brokers.values():
            self._check_replica(broker)
        if state is not None:
            self._check_isr(state)

    def _check_replica(self, broker: SimulatedBroker) -> None:
        partition = broker.partition
        if partition is None:
            return
        epochs = partition.log.epochs.entries
        if any(a.epoch >= b.epoch or a.start_offset > b.start_offset for a, b in pairwise(epochs)):
            raise Violation(f"the epochs of broker {broker.id} go back: {epochs}")
        watermark = partition.high_watermark
        if not partition.log.log_start_offset <= watermark <= partition.log.log_end_offset:
            raise Violation(f"broker {broker.id} has watermark {watermark} and ends at {partition.log.log_end_offset}")
        if not partition.is_leader:
            return
        key = broker, partition.leader_epoch
        if watermark < self._watermarks.get(key, 0):
            raise Violation(f"the watermark of leader {broker.id} went back to {watermark}")
        self._watermarks[key] = watermark
        self._commit(broker.id, watermark)

    def _commit(self, leader: int, watermark: int) -> None:
        """Note committed records: a record that a leader exposes is committed, for ever and on every other leader."""
        reading = self._readings[leader]
        for entry in reading.entries[len(self.committed) :]:
            if entry.last_offset < watermark:
                self.committed.append(entry)
        self.committed_end = max(self.committed_end, watermark)
        self._compare(leader, watermark)

    def _compare(self, broker_id: int, end_offset: int) -> None:
        reading = self._readings[broker_id]
        for number in range(reading.equals_committed, min(len(reading.entries), len(self.committed))):
            mine, committed = reading.entries[number], self.committed[number]
            if committed.last_offset >= end_offset:
                return
            if mine != committed:
                raise Violation(f"broker {broker_id} has {mine} where {committed} was committed")
            reading.equals_committed = number + 1

    def _check_isr(self, state: LeaderAndIsr) -> None:
        if state.leader >= 0 and state.leader not in state.isr:
            raise Violation(f"the leader isn't in the ISR: {state}")
        for member in state.isr:
            if member in self.lost_tail:
                continue
            reading = self._readings.setdefault(member, LogReading())
            if reading.end_offset < self.committed_end:
                raise Violation(
                    f"broker {member} is in the ISR, ends at {reading.end_offset}, committed is {self.committed_end}"
                )
            self._compare(member, self.committed_end)

    # ---- what clients see

    def acknowledge(self, broker: SimulatedBroker, base_offset: int, crc: int) -> None:
        """Note an acknowledgement. Called by the broker, it must not raise: a violation comes out with the
        next check.
        """
        partition = broker.partition
        assert partition is not None
        epoch = partition.leader_epoch
        if self._acknowledged_by.setdefault(epoch, broker.id) != broker.id:
            both = f"{self._acknowledged_by[epoch]} and {broker.id}"
            self._contradictions.append(f"brokers {both} acknowledge in epoch {epoch}")
        if self.acknowledged.setdefault(base_offset, crc) != crc:
            self._contradictions.append(f"offset {base_offset} is acknowledged for two batches")

    def consume(self, broker_id: int, found: list[Entry]) -> None:
        """Check a consumer's records: they are committed, and the same from every broker."""
        known = {entry.base_offset: entry for entry in self.committed}
        for entry in found:
            if known.get(entry.base_offset) != entry:
                raise Violation(f"broker {broker_id} shows {entry}, committed is {known.get(entry.base_offset)}")

    # ---- at the end

    def check_end(self, brokers: dict[int, SimulatedBroker], isr: tuple[int, ...]) -> None:
        logs = {broker_id: self._readings[broker_id].entries for broker_id in brokers}
        first = logs[isr[0]]
        for broker_id, entries in logs.items():
            if entries != first:
                raise Violation(f"the logs of brokers {isr[0]} and {broker_id} differ: {first} {entries}")
        if first[: len(self.committed)] != self.committed:
            raise Violation("what was committed is not in the log")
        checksums = {entry.base_offset: entry.crc for entry in first}
        for offset, crc in self.acknowledged.items():
            if checksums.get(offset) != crc:
                raise Violation(f"the batch acknowledged at {offset} is lost")
        if len(set(checksums.values())) < len(checksums):
            raise Violation("a batch is in the log twice")

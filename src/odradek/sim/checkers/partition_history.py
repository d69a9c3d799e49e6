"""History of one partition: committed, acknowledged and consumed batches, and the invariants that hold of them.

The invariants of the TLA+ models of Kafka's replication (leader in ISR, log matching up to the high watermark, every
member of the ISR has what is committed, high watermark of a leader never goes back), and of clients: what is
acknowledged stays where it was acknowledged, one leader acknowledges in an epoch, consumers see committed batches only.

Logs are compared batch by batch: by place, epoch and checksum. Compaction rewrites batches: of a compacted partition
only offsets are compared here. A replica that lost its tail in a power failure is excused until the controller has
noticed that its broker was away.
"""

from collections.abc import Collection, Iterable, Mapping
from itertools import pairwise
from typing import Protocol

from odradek.broker.log.files.partition_log import PartitionLog
from odradek.model.topology import LeaderAndIsr
from odradek.sim.checkers.log_reading import LogEntry, LogReading
from odradek.sim.checkers.violation import Violation


class Replica(Protocol):
    """A replica as a broker serves it; the part that is checked."""

    @property
    def log(self) -> PartitionLog: ...
    @property
    def high_watermark(self) -> int: ...
    @property
    def is_leader(self) -> bool: ...
    @property
    def leader_epoch(self) -> int: ...
    @property
    def is_under_min_isr(self) -> bool: ...


class PartitionHistory:
    def __init__(self, name: str, *, is_compacted: bool = False) -> None:
        self.name = name
        self.is_compacted = is_compacted
        self.committed: dict[int, LogEntry] = {}  # by base offset
        self.committed_end = 0
        self.acknowledged: dict[int, int] = {}  # base offset → checksum
        self._end_told = 0
        self._contradictions: list[str] = []
        self._acknowledged_by: dict[int, int] = {}  # leader epoch → broker
        self._readings: dict[int, LogReading] = {}
        self._watermarks: dict[tuple[object, int], int] = {}  # of a leader in an epoch
        self._under_min_isr: set[tuple[object, int]] = set()  # leaders that had too few replicas in sync when last seen

    # ---- after each step

    def check(self) -> None:
        if self._contradictions:
            raise Violation(self._contradictions[0])

    def check_log(self, broker_id: int, life: object, log: PartitionLog, replica: Replica | None) -> None:
        """Check a log of the running broker, and the replica if it has a role already."""
        reading = self._readings.get(broker_id)
        if reading is None:
            reading = self._readings[broker_id] = LogReading()
        if reading.end_offset != log.log_end_offset or not reading.is_of(log):
            reading.read(log)
            self._check_epochs(broker_id, log)
        if replica is not None:
            self._check_replica(broker_id, life, replica)

    def forget(self, broker_id: int) -> None:
        """The controller had its replica deleted."""
        self._readings.pop(broker_id, None)

    def _check_epochs(self, broker_id: int, log: PartitionLog) -> None:
        epochs = log.epochs.entries
        if any(a.epoch >= b.epoch or a.start_offset > b.start_offset for a, b in pairwise(epochs)):
            raise Violation(f"{self.name}: the epochs of broker {broker_id} go back: {epochs}")

    def _check_replica(self, broker_id: int, life: object, replica: Replica) -> None:
        watermark, log = replica.high_watermark, replica.log
        if not log.log_start_offset <= watermark <= log.log_end_offset:
            bounds = f"begins at {log.log_start_offset} and ends at {log.log_end_offset}"
            raise Violation(f"{self.name}: broker {broker_id} has watermark {watermark}, its log {bounds}")
        if not replica.is_leader:
            return
        key = life, replica.leader_epoch
        before = self._watermarks.get(key, -1)
        was_under = key in self._under_min_isr
        (self._under_min_isr.add if replica.is_under_min_isr else self._under_min_isr.discard)(key)
        if watermark == before:
            return
        if was_under and key in self._under_min_isr:
            raise Violation(f"{self.name}: leader {broker_id} commits up to {watermark} below min.insync.replicas")
        if watermark < before:
            raise Violation(f"{self.name}: the watermark of leader {broker_id} went back to {watermark}")
        self._watermarks[key] = watermark
        self._commit(broker_id, watermark)

    def _commit(self, leader: int, watermark: int) -> None:
        """Note committed batches: a batch that a leader exposes is committed, for ever and on every other leader."""
        self.committed_end = max(self.committed_end, watermark)
        if not self.is_compacted:
            self._compare(leader, watermark, commits=True)

    def _compare(self, broker_id: int, end_offset: int, *, commits: bool = False) -> None:
        reading = self._readings[broker_id]
        committed = self.committed
        while reading.compared < len(reading.entries):
            mine = reading.entries[reading.compared]
            if mine.last_offset >= end_offset:
                return
            known = committed.get(mine.base_offset)
            if known is None and commits:
                committed[mine.base_offset] = mine
            elif known != mine:
                raise Violation(f"{self.name}: broker {broker_id} has {mine} where {known} was committed")
            reading.compared += 1

    def check_isr(self, state: LeaderAndIsr, excused: Collection[int] = ()) -> None:
        """Check that members of the ISR have all committed batches, but for brokers that lost their tail unnoticed."""
        if state.leader >= 0 and state.leader not in state.isr:
            raise Violation(f"{self.name}: the leader isn't in the ISR: {state}")
        for member in state.isr:
            if member in excused:
                continue
            reading = self._readings.get(member)
            end_offset = reading.end_offset if reading is not None else 0
            if end_offset < self.committed_end:
                problem = f"is in the ISR, ends at {end_offset}, committed is {self.committed_end}"
                raise Violation(f"{self.name}: broker {member} {problem}")
            if reading is not None and not self.is_compacted:
                self._compare(member, self.committed_end)

    # ---- what clients see

    def acknowledge(self, broker_id: int, epoch: int, base_offset: int, crc: int) -> None:
        """Note an acknowledgement. Called by the broker, it must not raise: violations come out with the next check."""
        if self._acknowledged_by.setdefault(epoch, broker_id) != broker_id:
            both = f"{self._acknowledged_by[epoch]} and {broker_id}"
            self._contradictions.append(f"{self.name}: brokers {both} acknowledge in epoch {epoch}")
        if self.acknowledged.setdefault(base_offset, crc) != crc:
            self._contradictions.append(f"{self.name}: offset {base_offset} is acknowledged for two batches")

    def consume(self, broker_id: int, found: Iterable[LogEntry]) -> None:
        """Check a consumer's batches: they are committed, and the same from every broker."""
        for entry in found:
            if not self.is_compacted and self.committed.get(entry.base_offset) != entry:
                known = self.committed.get(entry.base_offset)
                raise Violation(f"{self.name}: broker {broker_id} shows {entry}, committed is {known}")

    def end_told(self, broker_id: int, offset: int) -> None:
        """Check the end that the present leader tells a consumer: it never goes back (KIP-207)."""
        if offset < self._end_told:
            raise Violation(f"{self.name}: leader {broker_id} tells the end {offset}, {self._end_told} was told before")
        self._end_told = offset

    # ---- at the end

    def check_end(self, logs: Mapping[int, PartitionLog]) -> None:
        """Check that all replicas are equal and hold all committed and acknowledged batches that retention has left."""
        if self.is_compacted:
            return
        readings = {broker_id: self._readings[broker_id] for broker_id in logs}
        start = max(log.log_start_offset for log in logs.values())
        first_id, *others = readings
        first = [entry for entry in readings[first_id].entries if entry.base_offset >= start]
        for broker_id in others:
            entries = [entry for entry in readings[broker_id].entries if entry.base_offset >= start]
            if entries != first:
                raise Violation(
                    f"{self.name}: the logs of brokers {first_id} and {broker_id} differ: {first} {entries}"
                )
        held = {entry.base_offset: entry for entry in first}
        for offset, entry in self.committed.items():
            if offset >= start and held.get(offset) != entry:
                raise Violation(f"{self.name}: {entry} was committed and is not in the log")
        for offset, crc in self.acknowledged.items():
            if offset >= start and (offset not in held or held[offset].crc != crc):
                raise Violation(f"{self.name}: the batch acknowledged at {offset} is lost")
        written = [entry.crc for entry in first if not entry.is_control]  # markers of a producer may be equal
        if len(set(written)) < len(written):
            raise Violation(f"{self.name}: a batch is in the log twice")

"""A log against a plain list of batches, under any order of appends, rolls, truncations, deletions, restarts."""

import shutil
import tempfile
from pathlib import Path

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from log_building import NEVER, START_MS, TP, append, contents

from odradek.base.clock import ManualClock
from odradek.broker.log.core.config import LogConfig
from odradek.broker.log.files.log_environment import LogEnvironment
from odradek.broker.log.files.partition_log import PartitionLog

CONFIG = LogConfig(segment_bytes=700, index_interval_bytes=150, retention_ms=200, producer_id_expiration_ms=10**12)


class LogMachine(RuleBasedStateMachine):
    @initialize()
    def begin(self) -> None:
        self.directory = Path(tempfile.mkdtemp())
        self.clock = ManualClock(START_MS)
        self.records: list[tuple[int, str, int]] = []  # offset, value, last offset of its batch
        self.start = self.end = 0
        self.sequence = 0
        self.epoch = 0
        self.written = 0
        self.log = self.open(clean=False)

    def open(self, *, clean: bool, recovery_point: int = 0) -> PartitionLog:
        return PartitionLog.open(
            self.directory / str(TP),
            TP,
            CONFIG,
            recovery_point=recovery_point,
            log_start_offset=self.start,
            clean=clean,
            environment=LogEnvironment(clock=self.clock, background=NEVER),
        )

    def teardown(self) -> None:
        if hasattr(self, "directory"):
            shutil.rmtree(self.directory)

    @rule(count=st.integers(1, 6), wait_ms=st.integers(0, 60))
    def append(self, count: int, wait_ms: int) -> None:
        self.clock.advance(wait_ms)
        values = [f"value {self.written + number}" for number in range(count)]
        result = append(
            self.log,
            *values,
            timestamp=self.clock.now_ms(),
            leader_epoch=self.epoch,
            producer_id=1,
            producer_epoch=self.epoch,
            base_sequence=self.sequence,
        )
        assert result.first_offset == self.end
        last = self.end + count - 1
        self.records += [(self.end + number, value, last) for number, value in enumerate(values)]
        self.end, self.sequence, self.written = last + 1, self.sequence + count, self.written + count

    @rule()
    def roll(self) -> None:
        self.log.roll()

    @rule(back=st.integers(0, 12))
    def truncate(self, back: int) -> None:
        target = max(self.end - back, self.start)
        if not self.log.truncate_to(target):
            return
        self.records = [record for record in self.records if record[2] < target]
        self.end = target
        # As after an election: the next leader's producers begin anew.
        self.epoch, self.sequence = self.epoch + 1, 0

    @rule(forward=st.integers(0, 12))
    def delete_records(self, forward: int) -> None:
        self.start = min(self.start + forward, self.end)
        self.log.maybe_advance_log_start(self.start)
        self.records = [record for record in self.records if record[0] >= self.start]

    @rule(wait_ms=st.integers(0, 250))
    def retain(self, wait_ms: int) -> None:
        self.clock.advance(wait_ms)
        self.log.delete_expired(self.clock.now_ms(), high_watermark=self.end)
        self.start = self.log.log_start_offset
        self.records = [record for record in self.records if record[0] >= self.start]

    @rule(flush=st.booleans())
    def crash(self, flush: bool) -> None:
        if flush:
            self.log.flush()
        self.log = self.open(clean=False, recovery_point=self.log.recovery_point)
        self.after_restart()

    @rule()
    def restart(self) -> None:
        self.log.close()
        self.log = self.open(clean=True)
        self.after_restart()

    def after_restart(self) -> None:
        # An end inside a dropped batch is not on disk: the log ends after the last batch there is.
        last = self.records[-1][0] + 1 if self.records else self.log.log_end_offset
        assert last <= self.log.log_end_offset <= self.end
        self.end = self.log.log_end_offset
        self.start = self.log.log_start_offset

    @invariant()
    def reads_what_was_written(self) -> None:
        if not hasattr(self, "log"):
            return
        expected = [(offset, value) for offset, value, _ in self.records]
        assert contents(self.log) == expected
        assert contents(self.log, max_bytes=1) == expected
        assert (self.log.log_start_offset, self.log.log_end_offset) == (self.start, self.end)
        assert self.log.epochs.latest_epoch <= self.epoch


LogMachine.TestCase.settings = settings(
    max_examples=60, stateful_step_count=25, deadline=None, suppress_health_check=list(HealthCheck)
)
TestLogModel = LogMachine.TestCase

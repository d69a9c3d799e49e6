"""Small logs for tests: batches with telling contents, and everything that a log holds as values to compare."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from odradek.base.clock import ManualClock
from odradek.broker.log.core.append_result import AppendResult
from odradek.broker.log.core.config import LogConfig
from odradek.broker.log.core.validation import BatchRules
from odradek.broker.log.core.verification import VERIFICATION_OFF
from odradek.broker.log.files.log_environment import LogEnvironment
from odradek.broker.log.files.partition_log import PartitionLog
from odradek.model.topology import TopicPartition
from odradek.protocol.record_batch import batches, build_batch
from odradek.protocol.records import Record, read_records

TP = TopicPartition("orders", 0)
START_MS = 1_700_000_000_000
SMALL = LogConfig(segment_bytes=1000, index_interval_bytes=100)
RULES = BatchRules()


class Never:
    """Background work that a crash comes before: no fsync, no removal."""

    def once(self, name: str, action: Callable[[], object], *, delay_ms: int = 0) -> None:
        pass


NEVER = Never()


def batch(*values: str, timestamp: int = START_MS, **fields: int) -> memoryview:
    """A batch as a producer sends it, one record per value."""
    records = [Record(number, timestamp, b"key", value.encode()) for number, value in enumerate(values)]
    return memoryview(bytearray(build_batch(records, **fields)))  # type: ignore[arg-type]


def open_log(
    directory: Path,
    config: LogConfig = SMALL,
    *,
    recovery_point: int = 0,
    log_start_offset: int = 0,
    clean: bool = False,
    **parts: Any,
) -> PartitionLog:
    """`parts`: of the log's environment, in which the time stands still."""
    return PartitionLog.open(
        directory,
        TP,
        config,
        recovery_point=recovery_point,
        log_start_offset=log_start_offset,
        clean=clean,
        environment=LogEnvironment(**{"clock": ManualClock(START_MS), **parts}),
    )


def append(log: PartitionLog, *values: str, leader_epoch: int = 0, **fields: int) -> AppendResult:
    return log.append_as_leader(
        batch(*values, **fields), leader_epoch=leader_epoch, rules=RULES, guard=VERIFICATION_OFF
    )


def contents(log: PartitionLog, *, max_bytes: int = 1 << 20) -> list[tuple[int, str]]:
    """(offset, value) of every record that a reader of the whole log gets."""
    found: list[tuple[int, str]] = []
    offset = log.log_start_offset
    while offset < log.log_end_offset:
        data = log.read(offset, max_bytes, upper_bound=log.log_end_offset).records.read()
        if not data:
            break
        for position, header in batches(data, partial_tail=True):
            found += [
                (record.offset, (record.value or b"").decode())
                for record in read_records(data, position, header)
                if record.offset >= log.log_start_offset
            ]
            offset = header.next_offset
    return found


def values_of(found: Sequence[tuple[int, str]]) -> list[str]:
    return [value for _, value in found]

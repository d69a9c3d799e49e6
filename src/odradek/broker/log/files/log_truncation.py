"""Truncation of a log: its end goes back, with all that was derived from the records behind it.

The recovery point and its checkpoint go back first: after a crash in between, the log is recovered from an offset at
or before its new end. Nothing else waits for the disk: an election may cut thousands of logs, and what they derived is
found again in the batches. The caller is the log's writer.
"""

from typing import TYPE_CHECKING

from odradek.broker.log.core.producer_state import EVERY_PRODUCER, NO_PRODUCER
from odradek.broker.log.files.log_environment import LogEnvironment
from odradek.broker.log.files.recovery import rebuild_producers

if TYPE_CHECKING:
    from odradek.broker.log.files.partition_log import PartitionLog


def truncate(log: "PartitionLog", offset: int, environment: LogEnvironment) -> None:
    """Drop the batch with the offset, which is in one of the segments, and everything behind it."""
    _move_recovery_point_back(log, offset, environment)
    log.log_end_offset = offset
    log.log_start_offset = min(log.log_start_offset, offset)
    log.files.drop_from(offset, log.config)
    active = log.files.active
    active.truncate_to(offset)
    active.limit_indexes(log.config.segment_index_bytes)
    log.epochs.truncate_from_end(offset)
    now_ms = environment.clock.now_ms()
    rebuild_producers(
        log.segments, log.producers, log.files.snapshots, log.log_start_offset, offset, now_ms, sync=False
    )


def start_over(log: "PartitionLog", offset: int, environment: LogEnvironment) -> None:
    """Drop everything; the log is empty and continues at the offset."""
    _move_recovery_point_back(log, offset, environment)
    log.files.start_over(offset, log.config)
    log.log_start_offset = log.log_end_offset = offset
    log.epochs.clear()
    log.producers.clear(offset)
    log.producers.forgotten_up_to = EVERY_PRODUCER if offset else NO_PRODUCER


def _move_recovery_point_back(log: "PartitionLog", offset: int, environment: LogEnvironment) -> None:
    log.flushed.move_back(offset)
    environment.on_truncate(log.directory.parent, log.partition, offset)

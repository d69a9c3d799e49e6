"""Entries of a broker about itself in the flight recorder: its life, its session, its failed log directories, its ISR
changes as a leader, the reasons why the groups that it coordinates rebalanced, and moves of the transactional ids that
it coordinates.

The controller's part is in `controller.recording`.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

from odradek.base.clock import Clock
from odradek.base.config.broker_config import BrokerConfig
from odradek.base.config.listeners import split_list
from odradek.broker.controller.recording import NAMED_MAX
from odradek.broker.coordinator.groups.core.group_requests import Rebalanced
from odradek.broker.coordinator.transactions.core.transaction_story import TransactionEvent
from odradek.broker.log.directories.directory_table import DirectoryFailure
from odradek.broker.log.directories.log_dirs import LogDirs
from odradek.broker.recorder.core.entry import LOG_DIR_FAILED, Kind
from odradek.broker.recorder.recorder import NOTHING_RECORDED, Facts, Recorder, Records
from odradek.broker.replication.core.isr import IsrChange
from odradek.broker.zk.session import SessionEvent


def start_recorder(
    broker_id: int, config: BrokerConfig, log_dirs: LogDirs, clock: Clock, started: ExitStack
) -> Records:
    """Default place: plain files beside Kafka's checkpoints. In a log directory only directories are logs."""
    if not config.odradek_recorder_enable:
        return NOTHING_RECORDED
    own = [Path(name).absolute() for name in split_list(config.odradek_recorder_dir or "")]
    recorder = Recorder(
        own or log_dirs.table.directories,
        broker_id,
        config.odradek_recorder_max_bytes,
        clock,
        makes_directories=bool(own),
    )
    for directory in log_dirs.table.offline_directories:
        recorder.directory_failed(directory)
    recorder.start()
    started.callback(recorder.stop)
    started.callback(recorder.record, describe_life, "Stopped")
    recorder.record(describe_life, "Started")
    for directory in log_dirs.table.offline_directories:
        failure = DirectoryFailure(directory, "it was offline when the broker started", ())
        recorder.record(describe_directory_failure, failure)
    return recorder


def recording_directory_failures(records: Records) -> Callable[[DirectoryFailure], None]:
    def record(failure: DirectoryFailure) -> None:
        records.directory_failed(failure.directory)  # before the entry, which would go with the directory
        records.record(describe_directory_failure, failure)

    return record


def recording_session(records: Records) -> Callable[[SessionEvent], None]:
    def record(event: SessionEvent) -> None:
        records.record(describe_session, event)

    return record


def recording_isr_changes(records: Records, submit: Callable[[IsrChange], None]) -> Callable[[IsrChange], None]:
    def record_and_submit(change: IsrChange) -> None:
        records.record(describe_isr_change, change)
        submit(change)

    return record_and_submit


def recording_rebalances(records: Records) -> Callable[[Rebalanced], None]:
    def record(rebalanced: Rebalanced) -> None:
        records.record(describe_rebalance, rebalanced)

    return record


def recording_transactions(records: Records) -> Callable[[TransactionEvent], None] | None:
    """Return None without a recorder: the coordinator keeps no events then."""
    if records is NOTHING_RECORDED:
        return None

    def record(event: TransactionEvent) -> None:
        records.record(describe_transaction, event)

    return record


def describe_life(what: str) -> Iterator[Facts]:
    yield {"kind": Kind.LIFE, "what": what}


def describe_directory_failure(failure: DirectoryFailure) -> Iterator[Facts]:
    yield {
        "kind": Kind.LOG_DIR,
        "what": LOG_DIR_FAILED,
        "directory": str(failure.directory),
        "text": failure.reason,
        "partitions": tuple(map(str, failure.partitions[:NAMED_MAX])),
        "count": len(failure.partitions),
    }


def describe_session(event: SessionEvent) -> Iterator[Facts]:
    yield {"kind": Kind.SESSION, "what": event.name, "text": event.value}


def describe_isr_change(change: IsrChange) -> Iterator[Facts]:
    yield {
        "kind": Kind.ISR,
        "what": "IsrChangeWanted",
        "topic": change.partition.topic,
        "partition": change.partition.partition,
        "leader": change.leader,
        "leader_epoch": change.leader_epoch,
        "isr": change.isr,
        "version": change.partition_epoch,
    }


def describe_rebalance(rebalanced: Rebalanced) -> Iterator[Facts]:
    more = (f"and {rebalanced.causes_left_out} more like these",) if rebalanced.causes_left_out else ()
    yield {
        "kind": Kind.GROUP,
        "what": "Rebalanced",
        "group": rebalanced.group_id,
        "generation": rebalanced.generation,
        "count": rebalanced.members,
        "text": "; ".join((*rebalanced.causes, *more)),
    }


def describe_transaction(event: TransactionEvent) -> Iterator[Facts]:
    transaction = event.transaction
    named = tuple(map(str, sorted(event.partitions)[:NAMED_MAX]))
    yield {
        "time_ms": event.time_ms,
        "kind": Kind.TRANSACTION,
        "what": event.what,
        "transactional_id": transaction.transactional_id,
        "producer_id": transaction.producer_id,
        "producer_epoch": transaction.producer_epoch,
        "peer": event.peer,
        "partitions": named or None,
        "count": len(event.partitions) or None,
        "left_out": event.left_out or None,
        "text": event.text or None,
    }

"""What a broker itself has to say in the flight recorder: its life, its session, what it wants as a leader,
and why the groups that it coordinates rebalanced.

The controller's part is in `controller.recording`.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

from odradek.base.clock import Clock
from odradek.base.config.broker_config import BrokerConfig
from odradek.coordinator.group_requests import Rebalanced
from odradek.recorder.entry import Kind
from odradek.recorder.recorder import NOTHING_RECORDED, Facts, Recorder, Records
from odradek.replication.isr import IsrChange
from odradek.zk.session import SessionEvent


def start_recorder(broker_id: int, config: BrokerConfig, clock: Clock, started: ExitStack) -> Records:
    """Plain files beside Kafka's checkpoints, unless told otherwise: in a log directory only directories are logs."""
    if not config.odradek_recorder_enable:
        return NOTHING_RECORDED
    directory = Path(config.odradek_recorder_dir or config.log_dirs[0])
    recorder = Recorder(directory, broker_id, config.odradek_recorder_max_bytes, clock)
    recorder.start()
    started.callback(recorder.stop)
    started.callback(recorder.record, describe_life, "Stopped")
    recorder.record(describe_life, "Started")
    return recorder


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


def describe_life(what: str) -> Iterator[Facts]:
    yield {"kind": Kind.LIFE, "what": what}


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

"""Replication of a broker, started in the order in which its parts know each other.

The table of partitions serves requests. Coordinators keep their state in it; the replica manager notifies them of
partitions that this broker leads.
"""

from collections.abc import Callable
from contextlib import ExitStack

from odradek.base.value_classes import dataclass
from odradek.broker.api.control_gate import ControlGate
from odradek.broker.broker_parts import BrokerParts
from odradek.broker.controller_link import ControllerLink
from odradek.broker.coordinator.transactions.partition_verifier import PartitionVerifier
from odradek.broker.coordinators import Coordinators, connector, start_coordinators
from odradek.broker.directory_failures import DirectoryFailures
from odradek.broker.log.directories.log_dirs import LogDirs
from odradek.broker.membership import asks_controller
from odradek.broker.recorder.recorder import Records
from odradek.broker.recording import recording_isr_changes, recording_rebalances, recording_transactions
from odradek.broker.replication.directory_moves import DirectoryMoves
from odradek.broker.replication.follower.fetcher_manager import ReplicaFetcherManager
from odradek.broker.replication.leader.isr_changes import (
    AlterPartitionUpdater,
    IsrChanges,
    IsrUpdater,
    ZooKeeperIsrUpdater,
)
from odradek.broker.replication.partition_table import PartitionTable
from odradek.broker.replication.replica_manager import ReplicaManager
from odradek.broker.zk.store import ZkStore


@dataclass(frozen=True, slots=True)
class Replication:
    replicas: PartitionTable
    roles: ReplicaManager
    moves: DirectoryMoves
    coordinators: Coordinators


def start_replication(
    parts: BrokerParts,
    logs: LogDirs,
    store: ZkStore,
    gate: ControlGate,
    records: Records,
    new_producer_id: Callable[[], int],
    started: ExitStack,
) -> Replication:
    live, config = parts.live, parts.live.current
    broker_id, metadata, reaper, clock = parts.id, parts.metadata, parts.reaper, parts.clock
    isr_changes = _isr_changes(parts, store, gate, started)
    submit = recording_isr_changes(records, isr_changes.submit)
    verifier = PartitionVerifier(broker_id, metadata, reaper, clock, connector(broker_id, config, metadata))
    replicas = PartitionTable(broker_id, config, metadata, reaper, clock, submit, verifier)
    live.on_change.append(lambda before, after: replicas.transactions.reconfigure(after))
    started.callback(lambda: logs.table.checkpoint_high_watermarks(replicas.high_watermarks()))
    isr_changes.start(replicas.isr_answered)
    started.callback(isr_changes.stop)
    fetchers = ReplicaFetcherManager(
        broker_id,
        config,
        replicas.partitions.get,
        clock,
        replicas.wake,
        broker_epoch=lambda: gate.broker_epoch,
        quotas=replicas.quotas,
    )
    started.callback(fetchers.stop)
    live.on_change.append(lambda before, after: fetchers.reconfigure(after))
    record = recording_rebalances(records), recording_transactions(records)
    coordinators = start_coordinators(parts, replicas, verifier, new_producer_id, *record, started)
    moves = DirectoryMoves(replicas, logs, config, clock)
    started.callback(moves.stop)
    roles = ReplicaManager(
        broker_id,
        config,
        replicas,
        logs,
        metadata,
        reaper,
        clock,
        fetchers=fetchers,
        listeners=(coordinators.groups, coordinators.transactions),
        on_host=moves.resume,
    )
    failures = DirectoryFailures(broker_id, roles, store)
    started.callback(failures.stop)
    logs.table.on_offline.append(failures.failed)
    return Replication(replicas, roles, moves, coordinators)


def _isr_changes(parts: BrokerParts, store: ZkStore, gate: ControlGate, started: ExitStack) -> IsrChanges:
    config = parts.live.current
    link = ControllerLink(parts.id, config, parts.metadata)
    started.callback(link.close)
    updater: IsrUpdater = AlterPartitionUpdater(parts.id, lambda: gate.broker_epoch, link.send)
    if not asks_controller(config.inter_broker_protocol_version):
        updater = ZooKeeperIsrUpdater(
            store.partition_states.update_partition_state_as_leader, store.requests.notify_isr_change
        )
    return IsrChanges(updater)

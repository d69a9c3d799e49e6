"""Replication of a broker, started in the order in which its parts know each other.

The table of partitions serves requests. The coordinators keep their state in it, and are told by the replica manager of
partitions that this broker leads.
"""

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass

from odradek.base.clock import Clock
from odradek.base.config.live_config import LiveConfig
from odradek.broker.api.control_gate import ControlGate
from odradek.broker.controller_link import ControllerLink
from odradek.broker.coordinator.transactions.partition_verifier import PartitionVerifier
from odradek.broker.coordinators import Coordinators, connector, start_coordinators
from odradek.broker.directory_failures import DirectoryFailures
from odradek.broker.log.directories.log_dirs import LogDirs
from odradek.broker.membership import asks_controller
from odradek.broker.purgatory.reaper import ExpirationReaper
from odradek.broker.recorder.recorder import Records
from odradek.broker.recording import recording_isr_changes, recording_rebalances, recording_transactions
from odradek.broker.replication.directory_moves import DirectoryMoves
from odradek.broker.replication.follower.fetcher_manager import Fetchers
from odradek.broker.replication.leader.isr_changes import (
    AlterPartitionUpdater,
    IsrChanges,
    IsrUpdater,
    ZooKeeperIsrUpdater,
)
from odradek.broker.replication.partition_table import PartitionTable
from odradek.broker.replication.replica_manager import ReplicaManager
from odradek.broker.zk.store import ZkStore
from odradek.model.metadata_image import MetadataCache


@dataclass(frozen=True, slots=True)
class Replication:
    replicas: PartitionTable
    roles: ReplicaManager
    moves: DirectoryMoves
    coordinators: Coordinators


def start_replication(
    broker_id: int,
    live: LiveConfig,
    logs: LogDirs,
    metadata: MetadataCache,
    store: ZkStore,
    reaper: ExpirationReaper,
    gate: ControlGate,
    clock: Clock,
    records: Records,
    new_producer_id: Callable[[], int],
    started: ExitStack,
) -> Replication:
    config = live.current
    isr_changes = _isr_changes(broker_id, live, metadata, store, gate, started)
    submit = recording_isr_changes(records, isr_changes.submit)
    verifier = PartitionVerifier(broker_id, metadata, reaper, clock, connector(broker_id, config, metadata))
    replicas = PartitionTable(broker_id, config, metadata, reaper, clock, submit, verifier)
    live.on_change.append(lambda before, after: replicas.transactions.reconfigure(after))
    started.callback(lambda: logs.table.checkpoint_high_watermarks(replicas.high_watermarks()))
    isr_changes.start(replicas.isr_answered)
    started.callback(isr_changes.stop)
    fetchers = Fetchers(
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
    coordinators = start_coordinators(
        broker_id, config, replicas, verifier, metadata, reaper, clock, new_producer_id, *record, started
    )
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


def _isr_changes(
    broker_id: int,
    live: LiveConfig,
    metadata: MetadataCache,
    store: ZkStore,
    gate: ControlGate,
    started: ExitStack,
) -> IsrChanges:
    config = live.current
    link = ControllerLink(broker_id, config, metadata)
    started.callback(link.close)
    updater: IsrUpdater = AlterPartitionUpdater(broker_id, lambda: gate.broker_epoch, link.send)
    if not asks_controller(str(config.get("inter.broker.protocol.version"))):
        updater = ZooKeeperIsrUpdater(
            store.partition_states.update_partition_state_as_leader, store.requests.notify_isr_change
        )
    return IsrChanges(updater)

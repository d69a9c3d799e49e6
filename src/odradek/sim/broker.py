"""One broker of the simulation: real logs, replicas, coordinator, gate and handlers; its threads and sockets are the
simulator's (`replica_fetchers`, `broker_requests`)."""

import errno
import os
from collections import deque
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

from odradek.base.clock import Clock
from odradek.base.config.broker_config import BrokerConfig
from odradek.base.config.topic_config import TopicConfig
from odradek.base.errors import ErrorCode
from odradek.broker.api.control_gate import ControlGate
from odradek.broker.api.handlers.add_partitions_to_txn import add_partitions_to_txn
from odradek.broker.api.handlers.leader_and_isr import leader_and_isr
from odradek.broker.api.handlers.stop_replica import stop_replica
from odradek.broker.api.handlers.update_metadata import update_metadata
from odradek.broker.api.handlers.write_txn_markers import write_txn_markers
from odradek.broker.coordinator.groups.group_coordinator import GroupCoordinator
from odradek.broker.coordinator.groups.group_log import GroupLog
from odradek.broker.coordinator.state.state_log_writer import StateLogWriter
from odradek.broker.coordinator.transactions.partition_verifier import PartitionVerifier
from odradek.broker.coordinator.transactions.transaction_coordinator import TransactionCoordinator
from odradek.broker.coordinator.transactions.transaction_log import TransactionLog
from odradek.broker.log.compaction.log_cleaner import LogCleaner
from odradek.broker.log.directories.log_dirs import LogDirs
from odradek.broker.log.files.background import IMMEDIATE
from odradek.broker.log.files.open_files import SegmentFile
from odradek.broker.log.files.segment import Segment
from odradek.broker.log.files.transaction_index import TransactionIndex
from odradek.broker.purgatory.reaper import ExpirationReaper
from odradek.broker.replication.core.isr import IsrChange
from odradek.broker.replication.leader.marker_writer import MarkerWriter
from odradek.broker.replication.partition_table import PartitionTable
from odradek.broker.replication.replica_manager import ReplicaManager
from odradek.client.broker_client import BrokerClient, ConnectionFailed
from odradek.format.transaction_index import AbortedTransaction
from odradek.model.metadata_image import MetadataCache
from odradek.model.topology import TopicPartition
from odradek.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest
from odradek.protocol.messages.leader_and_isr import LeaderAndIsrRequest
from odradek.protocol.messages.stop_replica import StopReplicaRequest
from odradek.protocol.messages.update_metadata import UpdateMetadataRequest
from odradek.protocol.messages.write_txn_markers import WriteTxnMarkersRequest
from odradek.protocol.schema import Request, Response
from odradek.sim.broker_requests import VERIFICATION, NetworkChannels, Peers
from odradek.sim.options import Options
from odradek.sim.replica_fetchers import ReplicaFetchers

TRANSACTIONAL_ID_EXPIRATION_MS = 60_000
"""Ids expire only in the incident that is about it (`transaction_incidents`)."""

_HANDLERS: dict[type, tuple[Callable[..., object], int]] = {
    LeaderAndIsrRequest: (leader_and_isr, 7),
    StopReplicaRequest: (stop_replica, 4),
    UpdateMetadataRequest: (update_metadata, 8),
}


_PEER_HANDLERS: dict[type, tuple[Callable[..., object], int]] = {
    WriteTxnMarkersRequest: (write_txn_markers, 1),
    AddPartitionsToTxnRequest: (add_partitions_to_txn, 4),
}


class UnwritableIndex(TransactionIndex):
    __slots__ = ()

    def append(self, aborted: AbortedTransaction) -> None:
        raise OSError(errno.EIO, "Input/output error", str(self.path))


class InlineGate(ControlGate):
    """Admits as the real one does, on the caller's thread."""

    def submit(self, request: Any, correlation_id: int, answer: Callable[[ErrorCode], None]) -> None:
        answer(self._admit(request, correlation_id))


class DeferredTasks:
    """Tasks in place of a thread pool: they wait until the simulator runs them."""

    def __init__(self) -> None:
        self._waiting: deque[Callable[[], object]] = deque()

    def __len__(self) -> int:
        return len(self._waiting)

    def submit(self, action: Callable[..., object], *arguments: object) -> Any:
        self._waiting.append(lambda: action(*arguments))
        return SimpleNamespace(result=self.run_all)

    def run_all(self) -> None:
        while self._waiting:
            self._waiting.popleft()()

    def shutdown(self, **options: object) -> None:
        self._waiting.clear()


def _defer_loads(table: Any) -> None:
    """Entries are loaded and given up by threads of their own; here, when the story says so."""
    for pool in (table._loader, table._unloader):
        pool.shutdown()
    table._loader, table._unloader = DeferredTasks(), DeferredTasks()


def _no_connection(broker_id: int, connected: Callable[[BrokerClient], None]) -> BrokerClient:
    raise ConnectionFailed("requests go out on the simulated network")


@cache
def _config(broker_id: int, directories: tuple[str, ...], max_lag_ms: int) -> BrokerConfig:
    return BrokerConfig.from_properties(
        {
            "broker.id": str(broker_id),
            "zookeeper.connect": "unused:1",
            "log.dirs": ",".join(directories),
            "replica.lag.time.max.ms": str(max_lag_ms),
            "group.initial.rebalance.delay.ms": "0",
            "offsets.topic.num.partitions": "1",
            "transaction.state.log.num.partitions": "1",
            "transactional.id.expiration.ms": str(TRANSACTIONAL_ID_EXPIRATION_MS),
            "log.cleaner.dedupe.buffer.size": str(1 << 21),
        }
    )


class SimulatedBroker:
    """One life of a broker, from its start to its crash."""

    def __init__(
        self,
        broker_id: int,
        directories: Sequence[Path],
        clock: Clock,
        options: Options | None = None,
        peers: Peers | None = None,
        on_failure: Callable[[], None] = lambda: None,
    ) -> None:
        """`on_failure`: a directory has gone offline."""
        self.id = broker_id
        self._options = options or Options()
        self._topic_configs: dict[str, TopicConfig] = {}
        self.config = _config(broker_id, tuple(map(str, directories)), self._options.max_lag_ms)
        self.logs = LogDirs(directories, self.config, IMMEDIATE, clock, _must_not_fail)
        self.logs.lock()
        self.logs.load()
        self.reaper = ExpirationReaper(clock)
        self.metadata = MetadataCache()
        self._verifier = PartitionVerifier(broker_id, self.metadata, self.reaper, clock, _no_connection)
        self.replicas = PartitionTable(
            broker_id,
            self.config,
            self.metadata,
            self.reaper,
            clock,
            lambda change: self._want_isr(change),
            self._verifier,
        )
        writer = StateLogWriter()
        self.groups = GroupCoordinator(
            self.config, GroupLog(self.config, self.replicas, self.metadata, clock), self.reaper, clock, writer
        )
        self.markers = MarkerWriter(self.replicas, self.groups, self.config.request_timeout_ms)
        self.transactions = self._start_transactions(clock, writer, peers or Peers())
        self._tables: list[Any] = [self.groups._table.states, self.transactions._table]
        for table in self._tables:
            _defer_loads(table)
        self.fetchers = ReplicaFetchers(broker_id, self.replicas)
        self.roles = ReplicaManager(
            broker_id,
            self.config,
            self.replicas,
            self.logs,
            self.metadata,
            self.reaper,
            clock,
            fetchers=self.fetchers,
            listeners=(self.groups, self.transactions),
        )
        self.logs.table.on_offline.append(lambda failure: self.roles.take_offline(failure.partitions))
        self.logs.table.on_offline.append(lambda failure: on_failure())
        self.logs.table.on_offline.append(lambda failure: self.mend_writes())  # one directory stays online
        self.cleaner = LogCleaner(self.config, self.replicas.partitions, self.logs.cleaned, clock)
        self.gate = InlineGate()
        self.wanted_isr: dict[TopicPartition, IsrChange] = {}
        self._unwritable: list[Segment] = []

    def _start_transactions(self, clock: Clock, writer: StateLogWriter, peers: Peers) -> TransactionCoordinator:
        """The coordinator and the verification; their requests to other brokers go out on the simulated network."""
        state = TransactionLog(self.config, self.replicas, self.metadata, clock)
        coordinator = TransactionCoordinator(
            self.id,
            self.config,
            state,
            self.metadata,
            self.reaper,
            clock,
            writer,
            peers.new_producer_id,
            _no_connection,
            self.markers,
        )
        self._verifier.start(coordinator)
        for name, sender in (("markers", coordinator.ends.markers), (VERIFICATION, self._verifier)):
            sender._channels = NetworkChannels(  # type: ignore[assignment, misc]
                name,
                self.id,
                lambda: peers.find(self.id) is self,
                peers,
                {request: version for request, (_, version) in _PEER_HANDLERS.items()},
                sender._exchange,
                sender._failed if isinstance(sender, PartitionVerifier) else sender._unreachable,
            )
        return coordinator

    def topic_config(self, topic: str) -> TopicConfig:
        found = self._topic_configs.get(topic)
        if found is None:
            found = self._topic_configs[topic] = TopicConfig.of(self.config, dict(self._options.plan(topic).config))
        return found

    def leads(self, tp: TopicPartition) -> bool:
        partition = self.replicas.partitions.get(tp)
        return partition is not None and partition.is_leader

    def isr_of(self, tp: TopicPartition) -> tuple[int, ...]:
        """Return the ISR as the broker knows it; nothing if it doesn't lead the partition."""
        partition = self.replicas.partitions.get(tp)
        return () if partition is None else partition.isr

    # ---- changes of the ISR

    def _want_isr(self, change: IsrChange) -> None:
        self.wanted_isr[change.partition] = change

    # ---- the controller's requests

    def handle_controller_request(self, request: Request, correlation_id: int = 0) -> Response:
        handler, version = _HANDLERS[type(request)]
        answered: list[Response] = []
        handler(request, self._context(version, correlation_id, answered.append))
        return answered[0]

    def serve(self, request: Request, version: int, reply: Callable[[Response], None]) -> None:
        """Serve a request of another broker; the answer may come later."""
        handler, _ = _PEER_HANDLERS[type(request)]
        handler(request, self._context(version, 0, reply))

    def _context(self, version: int, correlation_id: int, reply: Callable[[Response], None]) -> SimpleNamespace:
        def reply_with(build: Callable[..., Response]) -> Callable[..., None]:
            return lambda *answer: reply(build(*answer))

        broker = SimpleNamespace(
            authorizer=None,
            id=self.id,
            config=self.config,
            control=self.gate,
            replicas=self.replicas,
            roles=self.roles,
            metadata=self.metadata,
            configs=SimpleNamespace(look_up=lambda topics: None, effective=self.topic_config),
            groups=self.groups,
            transactions=self.transactions,
            markers=self.markers,
        )
        return SimpleNamespace(
            version=version,
            header=SimpleNamespace(correlation_id=correlation_id),
            connection=SimpleNamespace(peer_closed=False),
            broker=broker,
            reply=reply,
            reply_with=reply_with,
        )

    # ---- upkeep

    def clean_logs(self) -> bool:
        """Compact the filthiest log; return whether there was one."""
        return self.cleaner.clean_filthiest(self.cleaner.new_cleaner())

    def generation_of(self, group_id: str) -> int:
        """Return the generation of a group that this broker coordinates; KafkaError if it doesn't."""
        held = self.groups._table.find(group_id)
        return -1 if held is None else held.group.generation

    def load_coordinators(self) -> None:
        """Replay partitions that the coordinators have begun to lead, and unload those that they have resigned from."""
        for table in self._tables:
            table._unloader.run_all()
            table._loader.run_all()

    def coordinated(self) -> list[TopicPartition]:
        """Return the partitions of whose entries the broker takes itself for the coordinator."""
        return [TopicPartition(table._log.topic, number) for table in self._tables for number in table._leaderships]

    def fail_next_write(self, tp: TopicPartition, *, of_index: bool) -> None:
        """Let the next write to the log, or to its index of aborted transactions, fail: its directory goes offline."""
        if (partition := self.replicas.partitions.get(tp)) is None:
            return
        segment = partition.log.segments[-1]
        self._unwritable.append(segment)
        if of_index:
            segment.transactions = UnwritableIndex(segment.transactions.path)
        else:
            segment._file = SegmentFile(segment.path, "rb")

    def mend_writes(self) -> None:
        """Cancel the planned failures of writes."""
        for segment in self._unwritable:
            segment.forget_file()
            segment.transactions = TransactionIndex(segment.transactions.path)
        self._unwritable.clear()

    @property
    def is_loading(self) -> bool:
        return any(table.is_loading for table in self._tables)

    # ---- transactional ids

    def use_up_epochs(self, transactional_id: str, epoch: int) -> None:
        """Write an epoch of an id that has no transaction under way, as after many lives of its producer."""
        coordinator = self.transactions
        entry = coordinator._table.find(transactional_id)
        if entry is not None and entry.transaction.is_ended and not entry.is_pending:
            used_up = entry.transaction._replace(producer_epoch=epoch)
            coordinator._writer.turn(
                entry, lambda: coordinator._write(entry, used_up, lambda *_: None, "epochs are used up")
            )

    def known_transactional_ids(self, names: Sequence[str]) -> list[str]:
        return [name for name in names if self.transactions._table.find(name) is not None]

    # ---- the end

    def stop(self) -> None:
        """Stop as after SIGTERM: everything is on disk."""
        self.logs.table.checkpoint_high_watermarks(self.replicas.high_watermarks())
        self.logs.close()
        self.logs.unlock()

    def crash(self) -> None:
        """Crash as after SIGKILL: written bytes stay, nothing else is done."""
        for opened in self.logs.table.logs.values():
            opened.close(clean=False)
        self.logs.unlock()

    def crash_and_lose_tail(self, chance: Random) -> None:
        """Crash as in a power failure: bytes that fsync has not confirmed may be gone, cut anywhere."""
        cuts = []
        for own in self.logs.table.logs.values():
            active = own.segments[-1]
            safe = active.end_position(own.recovery_point) if own.recovery_point > active.base_offset else 0
            cuts.append((active.path, chance.randint(safe, active.size)))
        self.crash()
        for path, size in cuts:
            os.truncate(path, size)


def _must_not_fail(reason: str) -> None:
    raise AssertionError(f"log directories failed: {reason}")

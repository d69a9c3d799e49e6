"""One broker of the simulation: real logs, replicas, coordinator, gate and handlers; its threads and sockets are the
simulator's.

What a fetch loop does between two fetches is done here in its order: ask from the log's end, take the answer if the
log is still the one that was asked for, reset when the leader doesn't have that end.
"""

import os
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

from odradek.base.clock import ManualClock
from odradek.base.config.broker_config import BrokerConfig
from odradek.base.config.topic_config import TopicConfig
from odradek.base.errors import ErrorCode, KafkaError
from odradek.broker.api.control_gate import ControlGate
from odradek.broker.api.handlers.leader_and_isr import leader_and_isr
from odradek.broker.api.handlers.stop_replica import stop_replica
from odradek.broker.api.handlers.update_metadata import update_metadata
from odradek.broker.coordinator.groups.group_coordinator import GroupCoordinator
from odradek.broker.coordinator.groups.group_log import GroupLog
from odradek.broker.log.compaction.log_cleaner import LogCleaner
from odradek.broker.log.directories.log_dirs import LogDirs
from odradek.broker.log.files.background import IMMEDIATE
from odradek.broker.purgatory.reaper import ExpirationReaper
from odradek.broker.replication.core.isr import IsrChange
from odradek.broker.replication.follower import fetch_answers
from odradek.broker.replication.follower.fetch_answers import Outcome
from odradek.broker.replication.follower.fetch_assignment import FetchAssignment, Progress
from odradek.broker.replication.leader.fetch_reader import FetchOutcome, FetchTarget
from odradek.broker.replication.partition_table import PartitionTable
from odradek.broker.replication.replica_manager import ReplicaManager
from odradek.model.metadata_image import MetadataCache
from odradek.model.topology import TopicPartition
from odradek.protocol.messages.fetch import EpochEndOffset, PartitionData
from odradek.protocol.messages.leader_and_isr import LeaderAndIsrRequest
from odradek.protocol.messages.list_offsets import (
    LATEST,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from odradek.protocol.messages.stop_replica import StopReplicaRequest
from odradek.protocol.messages.update_metadata import UpdateMetadataRequest
from odradek.protocol.schema import Request, Response
from odradek.sim.options import Options

_HANDLERS: dict[type, tuple[Callable[..., object], int]] = {
    LeaderAndIsrRequest: (leader_and_isr, 7),
    StopReplicaRequest: (stop_replica, 4),
    UpdateMetadataRequest: (update_metadata, 8),
}


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
            "log.cleaner.dedupe.buffer.size": str(1 << 21),
        }
    )


class SimulatedBroker:
    """One life of a broker, from its start to its crash."""

    def __init__(
        self, broker_id: int, directories: Sequence[Path], clock: ManualClock, options: Options | None = None
    ) -> None:
        self.id = broker_id
        self._options = options or Options()
        self._topic_configs: dict[str, TopicConfig] = {}
        self.config = _config(broker_id, tuple(map(str, directories)), self._options.max_lag_ms)
        self.logs = LogDirs(directories, self.config, IMMEDIATE, clock, _must_not_fail)
        self.logs.lock()
        self.logs.load()
        self.reaper = ExpirationReaper(clock)
        self.metadata = MetadataCache()
        self.replicas = PartitionTable(
            broker_id, self.config, self.metadata, self.reaper, clock, lambda change: self._want_isr(change)
        )
        self.groups = GroupCoordinator(
            self.config, GroupLog(self.config, self.replicas, self.metadata, clock), self.reaper, clock
        )
        self.group_loads = self._defer_group_loads()
        self.roles = ReplicaManager(
            broker_id,
            self.config,
            self.replicas,
            self.logs,
            self.metadata,
            self.reaper,
            clock,
            fetchers=self,
            listeners=(self.groups,),
        )
        self.logs.table.on_offline.append(lambda failure: self.roles.take_offline(failure.partitions))
        self.cleaner = LogCleaner(self.config, self.replicas.partitions, self.logs.cleaned, clock)
        self.gate = InlineGate()
        self.progress: dict[TopicPartition, Progress] = {}
        self.asked: dict[TopicPartition, FetchTarget] = {}  # the fetches that are under way
        self.wanted_isr: dict[TopicPartition, IsrChange] = {}

    def _defer_group_loads(self) -> DeferredTasks:
        """Groups are loaded and given up by threads of their own; here, when the story says so."""
        loads: Any = DeferredTasks()
        table = self.groups._table.states
        for pool in (table._loader, table._unloader):
            pool.shutdown()
        table._loader, table._unloader = loads, DeferredTasks()  # type: ignore[assignment]
        result: DeferredTasks = loads
        return result

    def topic_config(self, topic: str) -> TopicConfig:
        found = self._topic_configs.get(topic)
        if found is None:
            found = self._topic_configs[topic] = TopicConfig.of(self.config, dict(self._options.plan(topic).config))
        return found

    def leads(self, tp: TopicPartition) -> bool:
        partition = self.replicas.partitions.get(tp)
        return partition is not None and partition.is_leader

    # ---- what ReplicaManager tells of followed partitions, and of changes of the ISR

    def follow(self, orders: Mapping[TopicPartition, FetchAssignment]) -> None:
        for tp, order in orders.items():
            known = self.progress.get(tp)
            if known is None or known.following != order:
                self.progress[tp] = Progress(order, must_truncate=False)
                self.asked.pop(tp, None)

    def unfollow(self, tps: Iterable[TopicPartition]) -> None:
        for tp in tps:
            self.progress.pop(tp, None)
            self.asked.pop(tp, None)

    def _want_isr(self, change: IsrChange) -> None:
        self.wanted_isr[change.partition] = change

    # ---- the controller's requests

    def obey(self, request: Request, correlation_id: int = 0) -> Response:
        handler, version = _HANDLERS[type(request)]
        answered: list[Response] = []

        def reply_with(build: Callable[[ErrorCode], Response]) -> Callable[[ErrorCode], None]:
            return lambda code: answered.append(build(code))

        configs = SimpleNamespace(look_up=lambda topics: None, effective=self.topic_config)
        broker = SimpleNamespace(
            authorizer=None,
            id=self.id,
            config=self.config,
            control=self.gate,
            replicas=self.replicas,
            roles=self.roles,
            metadata=self.metadata,
            configs=configs,
            groups=self.groups,
        )
        header = SimpleNamespace(correlation_id=correlation_id)
        handler(request, SimpleNamespace(version=version, header=header, broker=broker, reply_with=reply_with))
        return answered[0]

    # ---- following

    def leaders_followed(self) -> list[int]:
        """Return the leaders of partitions that are not being fetched."""
        return sorted({p.following.leader_id for tp, p in self.progress.items() if tp not in self.asked})

    def next_fetch(self, leader_id: int, max_bytes: int) -> list[FetchTarget]:
        """Return the next fetch for the leader: all partitions followed there that are not being fetched."""
        targets = []
        for tp, progress in self.progress.items():
            partition = self.replicas.partitions.get(tp)
            if progress.following.leader_id != leader_id or tp in self.asked or partition is None:
                continue
            own, order = partition.log, progress.following
            self.asked[tp] = FetchTarget(
                tp,
                order.topic_id,
                own.log_end_offset,
                max_bytes,
                order.leader_epoch,
                own.epochs.latest_epoch,
                log_start_offset=own.log_start_offset,
            )
            targets.append(self.asked[tp])
        return targets

    def give_up(self, targets: Iterable[FetchTarget]) -> None:
        """No answer will come."""
        for target in targets:
            if self.asked.get(target.partition) is target:
                del self.asked[target.partition]

    def take(self, target: FetchTarget, data: PartitionData, leader: "SimulatedBroker | None") -> None:
        tp = target.partition
        progress, partition = self.progress.get(tp), self.replicas.partitions.get(tp)
        if self.asked.get(tp) is not target:
            return
        del self.asked[tp]
        if progress is None or partition is None or target.fetch_offset != partition.log.log_end_offset:
            return
        outcome = fetch_answers.take(partition, tp, progress, data)
        if outcome is Outcome.OVER:
            self.progress.pop(tp, None)
        elif outcome is Outcome.OUT_OF_RANGE and leader is not None and leader.leads(tp):
            peer: Any = SimpleNamespace(send=leader.list_offsets)
            try:
                fetch_answers.reset_after_out_of_range(peer, self.id, partition, tp, progress.following)
            except KafkaError as error:
                if fetch_answers.failed(tp, error) is Outcome.OVER:
                    self.progress.pop(tp, None)

    def list_offsets(self, request: ListOffsetsRequest) -> ListOffsetsResponse:
        topic = request.topics[0]
        wanted = topic.partitions[0]
        own = self.replicas.partitions[TopicPartition(topic.name, wanted.partition_index)].leader_log()
        offset = own.log_end_offset if wanted.timestamp == LATEST else own.log_start_offset
        found = ListOffsetsPartitionResponse(partition_index=wanted.partition_index, offset=offset)
        return ListOffsetsResponse(topics=[ListOffsetsTopicResponse(name=topic.name, partitions=[found])])

    # ---- upkeep

    def clean_logs(self) -> bool:
        """Compact the filthiest log; return whether there was one."""
        return self.cleaner.clean_filthiest(self.cleaner.new_cleaner())

    def load_groups(self) -> None:
        self.groups._table.states._unloader.submit(int).result()
        self.group_loads.run_all()

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


def wire_data(outcome: FetchOutcome) -> PartitionData:
    """The outcome of a follower's fetch as it goes over the wire."""
    data = PartitionData(partition_index=0, error_code=outcome.error)
    if outcome.diverging is not None:
        data.diverging_epoch = EpochEndOffset(epoch=outcome.diverging.epoch, end_offset=outcome.diverging.end_offset)
    if outcome.found is not None:
        data.high_watermark = outcome.found.high_watermark
        data.log_start_offset = outcome.found.log_start_offset
        records = outcome.found.records
        data.records = memoryview(b"" if records is None else records.read())
    return data


def _must_not_fail(reason: str) -> None:
    raise AssertionError(f"log directories failed: {reason}")

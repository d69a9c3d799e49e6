"""The partitions that this broker hosts, and the doors to them: lead, follow, stop, append, fetch.

Role changes come from the controller alone, through `become` and `stop`, one request at a time under `_roles`. Handlers
append and fetch; whatever a change lets go on is completed by the thread that made it, under no lock.
"""

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from typing import Protocol, TypeAlias
from uuid import UUID

from odradek.base.clock import Clock
from odradek.base.config.broker_config import BrokerConfig
from odradek.base.config.topic_config import TopicConfig
from odradek.base.errors import ErrorCode, KafkaError
from odradek.base.logs import get_logger
from odradek.log.log_dirs import LogDirs
from odradek.log.partition_log import AppendResult
from odradek.model.metadata_image import MetadataCache
from odradek.model.topology import NO_EPOCH, LeaderAndIsr, PartitionDirective, TopicPartition
from odradek.purgatory.purgatory import Purgatory
from odradek.purgatory.reaper import ExpirationReaper, Timer
from odradek.replication.delayed_delete import DelayedDelete, DeleteOutcomes
from odradek.replication.delayed_produce import AppendOutcome, Awaited, DelayedProduce
from odradek.replication.fetching import DelayedFetch, FetchOutcome, FetchTarget, FetchTerms, Reader, is_enough
from odradek.replication.following import Following
from odradek.replication.isr import REFUSED, TAKEN_BACK, IsrChange
from odradek.replication.partition import COMMITTED, Advance, Partition
from odradek.replication.preferred_replica import preferred_replica_chooser
from odradek.replication.replication_quota import ReplicationQuotas
from odradek.replication.roles import refuse_directive, refuse_stop

log = get_logger(__name__)

Batch: TypeAlias = tuple[TopicPartition, memoryview | KafkaError]
"""What to append where; what its handler refused already stays refused, in its place."""

Done: TypeAlias = Callable[[ErrorCode, AppendResult | None], None]


class Copying(Protocol):
    """The follower side."""

    def follow(self, orders: Mapping[TopicPartition, Following]) -> None: ...

    def unfollow(self, tps: Iterable[TopicPartition]) -> None: ...


class ReplicaManager:
    def __init__(
        self,
        broker_id: int,
        config: BrokerConfig,
        logs: LogDirs,
        metadata: MetadataCache,
        reaper: ExpirationReaper,
        clock: Clock,
    ) -> None:
        self.partitions: dict[TopicPartition, Partition] = {}
        self.offline: set[TopicPartition] = set()
        self.controller_epoch = -1
        self.quotas = ReplicationQuotas(broker_id, config, clock)
        self.fetchers: Copying | None = None
        """Who copies what is followed. Set once, before the first directive that makes a follower."""
        self.on_isr_change: Callable[[IsrChange], None] = lambda change: None
        """Takes a change of an ISR to the controller; answered through `isr_changed` and `isr_refused`."""
        self.on_lead: Callable[[TopicPartition, int], None] = lambda tp, leader_epoch: None
        """Told of each partition that this broker begins to lead, and in which leader epoch."""
        self.on_resign: Callable[[TopicPartition, int], None] = lambda tp, leader_epoch: None
        """Told of each partition that it leads no longer, and the leader epoch that ended it."""
        self._broker_id = broker_id
        self._max_lag_ms = config.replica_lag_time_max_ms
        self._listener = config.inter_broker_listener_name
        self._logs = logs
        self._metadata = metadata
        self._reaper = reaper
        self._clock = clock
        self._roles = threading.Lock()
        self._unreachable: dict[TopicPartition, PartitionDirective] = {}  # followed as soon as the leader is known
        self._produces: Purgatory[TopicPartition] = Purgatory("produce", reaper)
        self._fetches: Purgatory[TopicPartition] = Purgatory("fetch", reaper)
        self._deletes: Purgatory[TopicPartition] = Purgatory("delete records", reaper)
        chooser = preferred_replica_chooser(config, metadata)
        self._reader = Reader(self.find, self.quotas, self._follow_up, chooser)

    # ---- what the controller asks

    def apply(self, directives: Iterable[PartitionDirective], config: TopicConfig) -> dict[TopicPartition, ErrorCode]:
        """The same as `become`, for a cluster of one broker."""
        return self.become(
            directives, lambda _: config, controller_id=self._broker_id, controller_epoch=self.controller_epoch
        )

    def become(
        self,
        directives: Iterable[PartitionDirective],
        config_of: Callable[[str], TopicConfig],
        *,
        controller_id: int,
        controller_epoch: int,
        full: bool = False,
    ) -> dict[TopicPartition, ErrorCode]:
        """Lead and follow what the controller says. KafkaError when it is the controller no longer.

        `full`: the directives are all that this broker is to host.
        """
        with self._roles:
            self._check_controller(controller_id, controller_epoch)
            errors: dict[TopicPartition, ErrorCode] = {}
            leaders: list[tuple[Partition, PartitionDirective]] = []
            followers: list[tuple[Partition, PartitionDirective]] = []
            for directive in directives:
                errors[directive.partition], partition = self._accept(directive, config_of)
                if partition is not None:
                    leads = directive.state.leader == self._broker_id
                    (leaders if leads else followers).append((partition, directive))
            self._make_leaders(leaders, errors)
            self._make_followers(followers)
            if full:
                self._report_strays(errors)
            return errors

    def stop(
        self,
        tps: Iterable[TopicPartition],
        *,
        delete: bool,
        leader_epochs: Mapping[TopicPartition, int] | None = None,
        controller_id: int = -1,
        controller_epoch: int | None = None,
    ) -> dict[TopicPartition, ErrorCode]:
        """Copy and lead these no more; with `delete`, their files go too. KafkaError as for `become`."""
        with self._roles:
            if controller_epoch is not None:
                self._check_controller(controller_id, controller_epoch)
            epochs = leader_epochs or {}
            errors: dict[TopicPartition, ErrorCode] = {}
            for tp in tps:
                refused = ErrorCode.KAFKA_STORAGE_ERROR if tp in self.offline else None
                refused = refused or refuse_stop(self.partitions.get(tp), epochs.get(tp, NO_EPOCH))
                errors[tp] = refused or ErrorCode.NONE
            stopped = [tp for tp, error in errors.items() if not error]
            self._unfollow(stopped)
            for tp in stopped:
                self._stop(tp, delete=delete)
            return errors

    def _check_controller(self, controller_id: int, controller_epoch: int) -> None:
        if controller_epoch < self.controller_epoch:
            why = f"controller {controller_id} is of epoch {controller_epoch}, the latest is {self.controller_epoch}"
            log.warning("request of a former controller refused", why=why)
            raise KafkaError(ErrorCode.STALE_CONTROLLER_EPOCH, why)
        self.controller_epoch = controller_epoch

    def _accept(
        self, directive: PartitionDirective, config_of: Callable[[str], TopicConfig]
    ) -> tuple[ErrorCode, Partition | None]:
        tp = directive.partition
        if tp in self.offline:
            return ErrorCode.KAFKA_STORAGE_ERROR, None
        partition = self.partitions.get(tp)
        refused = refuse_directive(directive, partition, self._broker_id)
        if refused is not None:
            return refused, None
        try:
            if partition is None or partition.topic_id != directive.topic_id:
                partition = self._host(directive, config_of(tp.topic))
        except KafkaError as error:
            log.error("partition can't be hosted", partition=str(tp), error=str(error))
            if error.code is ErrorCode.KAFKA_STORAGE_ERROR:
                self.offline.add(tp)
            return error.code, None
        return ErrorCode.NONE, partition

    def _host(self, directive: PartitionDirective, config: TopicConfig) -> Partition:
        """Open or make the log. One that isn't new may lie in a directory that failed: an empty one in its place
        would look like lost records."""
        tp, topic_id = directive.partition, directive.topic_id
        if (
            not directive.is_new
            and self._logs.get(tp) is None
            and not all(map(self._logs.is_online, self._logs.directories))
        ):
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"A log directory is offline, {tp} may be in it")
        partition_log = self._logs.get_or_create(tp, topic_id, config)
        self._throttle(tp.topic, config)
        known = self.partitions.get(tp)
        if known is not None:  # it had no topic id before
            known.topic_id = topic_id if topic_id.int else known.topic_id
            return known
        partition = Partition(
            tp,
            topic_id,
            partition_log,
            self._broker_id,
            clock=self._clock,
            max_lag_ms=self._max_lag_ms,
            is_alive=self._is_alive,
            checkpointed_high_watermark=self._logs.high_watermark(tp),
        )
        self.partitions[tp] = partition
        return partition

    def _make_leaders(
        self, orders: Sequence[tuple[Partition, PartitionDirective]], errors: dict[TopicPartition, ErrorCode]
    ) -> None:
        self._unfollow([partition.topic_partition for partition, _ in orders])
        for partition, directive in orders:
            tp = partition.topic_partition
            try:
                partition.become_leader(directive)
            except KafkaError as error:
                log.error("partition can't be led", partition=str(tp), error=str(error))
                errors[tp] = error.code
                continue
            self.on_lead(tp, directive.state.leader_epoch)
            self.wake(tp)

    def _make_followers(self, orders: Sequence[tuple[Partition, PartitionDirective]]) -> None:
        for partition, directive in orders:
            if partition.become_follower(directive):
                self.on_resign(partition.topic_partition, directive.state.leader_epoch)
        self._unfollow([partition.topic_partition for partition, _ in orders])
        for partition, _ in orders:
            self.wake(partition.topic_partition)
        self._follow([directive for _, directive in orders])

    def _follow(self, directives: Iterable[PartitionDirective]) -> None:
        """Those whose leader can't be found yet are tried again by `check_replicas`."""
        orders: dict[TopicPartition, Following] = {}
        for directive in directives:
            state = directive.state
            leader = self._metadata.image.brokers.get(state.leader)
            endpoint = directive.leader_endpoint or (leader.endpoint(self._listener) if leader else None)
            if endpoint is not None:
                following = Following(endpoint, state.leader, state.leader_epoch, directive.topic_id)
                orders[directive.partition] = following
                self._unreachable.pop(directive.partition, None)
            elif state.leader >= 0:
                log.warning("leader not known", partition=str(directive.partition), leader=state.leader)
                self._unreachable[directive.partition] = directive
        if orders and self.fetchers is not None:
            self.fetchers.follow(orders)

    def _unfollow(self, tps: Sequence[TopicPartition]) -> None:
        for tp in tps:
            self._unreachable.pop(tp, None)
        if tps and self.fetchers is not None:
            self.fetchers.unfollow(tps)

    def _stop(self, tp: TopicPartition, *, delete: bool) -> None:
        partition = self.partitions.pop(tp, None) if delete else self.partitions.get(tp)
        if partition is not None:
            led = partition.resign(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if delete else None)
            if led:
                self.on_resign(tp, partition.leader_epoch)
        if delete:
            with partition.lock if partition else nullcontext():
                self._logs.delete(tp)
        self.wake(tp)

    def _report_strays(self, known: Mapping[TopicPartition, object]) -> None:
        """Logs that the controller doesn't know are left alone, as Apache Kafka does; a person should look at them."""
        hosted = (tp for directory in self._logs.directories for tp in self._logs.logs_in(directory))
        strays = [str(tp) for tp in hosted if tp not in known]
        if strays:
            log.warning("logs that the controller does not know", logs=len(strays), for_example=strays[:10])

    def _is_alive(self, broker_id: int) -> bool:
        return broker_id in self._metadata.image.brokers

    # ---- what changes by itself

    def update_config(self, tps: Iterable[TopicPartition], config: TopicConfig) -> None:
        for tp in tps:
            self._throttle(tp.topic, config)
            partition = self.partitions.get(tp)
            if partition is not None and partition.update_config(self._logs.log_config(config)):
                self.wake(tp)

    def _throttle(self, topic: str, config: TopicConfig) -> None:
        self.quotas.set_topic(
            topic, config.leader_replication_throttled_replicas, config.follower_replication_throttled_replicas
        )

    def take_offline(self, tps: Iterable[TopicPartition]) -> None:
        """Their directory failed: they answer with KAFKA_STORAGE_ERROR until the broker starts again.

        Whoever found out may hold a partition's lock: the rest is left to another thread.
        """
        lost = []
        for tp in tps:
            self.offline.add(tp)
            if (partition := self.partitions.pop(tp, None)) is not None:
                partition.gone = ErrorCode.KAFKA_STORAGE_ERROR
                lost.append(partition)
        if not self._reaper.add(goodbye := _Soon(lambda: self._say_goodbye(lost))):
            goodbye.expire()

    def _say_goodbye(self, lost: Sequence[Partition]) -> None:
        self._unfollow([partition.topic_partition for partition in lost])
        for partition in lost:
            self.wake(partition.topic_partition)
            self.on_resign(partition.topic_partition, partition.leader_epoch)

    def wake(self, tp: TopicPartition) -> None:
        """Something about the partition has changed: whoever waits for it looks again."""
        self._produces.check_and_complete(tp)
        self._fetches.check_and_complete(tp)
        self._deletes.check_and_complete(tp)

    def check_replicas(self) -> None:
        """To be called every half of `replica.lag.time.max.ms`: who lags leaves the ISR."""
        for tp, partition in self.partitions.copy().items():
            if partition.followers:
                self._follow_up(tp, partition.check_followers())
        with self._roles:
            self._follow(list(self._unreachable.values()))

    def _follow_up(self, tp: TopicPartition, advance: Advance) -> None:
        if advance.committed:
            self._produces.check_and_complete(tp)
            self._fetches.check_and_complete(tp)
        if len(self._deletes):
            self._deletes.check_and_complete(tp)
        if advance.change is not None:
            self.on_isr_change(advance.change)

    def isr_answered(self, change: IsrChange, answer: LeaderAndIsr | ErrorCode) -> None:
        """What became of a change that was passed to `on_isr_change`."""
        partition = self.partitions.get(change.partition)
        if partition is None:
            return
        if isinstance(answer, LeaderAndIsr):
            if partition.isr_changed(change, answer):
                self.wake(change.partition)
        elif answer in REFUSED:
            log.info("ISR change refused", partition=str(change.partition), isr=change.isr, error=answer.name)
            partition.isr_refused(change, stay_pending=answer not in TAKEN_BACK)
        elif partition.is_pending(change):
            self.on_isr_change(change)

    # ---- what handlers ask

    def find(self, tp: TopicPartition) -> Partition:
        try:
            return self.partitions[tp]
        except KeyError:
            if tp in self.offline:
                code = ErrorCode.KAFKA_STORAGE_ERROR
            elif self._metadata.image.partition(tp) is not None:
                code = ErrorCode.NOT_LEADER_OR_FOLLOWER
            else:
                code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            raise KafkaError(code) from None

    def topic_name(self, topic_id: UUID) -> str | None:
        """Of a topic that is hosted here, whether the metadata has heard of it or not."""
        hosted = self.partitions.copy().items()
        return next((tp.topic for tp, partition in hosted if partition.topic_id == topic_id), None)

    def append(
        self,
        batches: Iterable[Batch],
        *,
        acks: int,
        timeout_ms: int,
        api_version: int,
        done: Callable[[list[AppendOutcome]], None],
    ) -> None:
        """Write what a producer sent. `done` is called exactly once, with an outcome for each batch in order: now, or
        with acks -1 when the ISR has all of it or the time is up."""
        outcomes: list[AppendOutcome] = []
        awaited: list[Awaited] = []
        for tp, records in batches:
            if isinstance(records, KafkaError):
                outcomes.append(records)
                continue
            try:
                partition = self.find(tp)
                result, awaited_in = partition.append(records, acks=acks, api_version=api_version)
            except KafkaError as error:
                outcomes.append(error)
                continue
            if acks == -1 and awaited_in != COMMITTED:
                awaited.append(Awaited(len(outcomes), partition, result.last_offset + 1, awaited_in))
            outcomes.append(result)
            self._fetches.check_and_complete(tp)
        if awaited:
            delayed = DelayedProduce(timeout_ms, outcomes, awaited, done)
            self._produces.watch(delayed, delayed.keys)
        else:
            done(outcomes)

    def append_own(
        self, tp: TopicPartition, records: memoryview, *, timeout_ms: int, done: Done, acks: int = -1
    ) -> None:
        """What coordinators write: the state that they are rebuilt from. `done` is called exactly once, under no lock
        of ours: now, or when the ISR has it or the time is up."""
        try:
            partition = self.find(tp)
            result, awaited_in = partition.append_own(records, acks=acks)
        except KafkaError as error:
            done(error.code, None)
            return
        self._fetches.check_and_complete(tp)
        if acks != -1 or awaited_in == COMMITTED:
            done(ErrorCode.NONE, result)
            return

        def settled(outcomes: list[AppendOutcome]) -> None:
            (outcome,) = outcomes
            if isinstance(outcome, KafkaError):
                done(outcome.code, None)
            else:
                done(ErrorCode.NONE, outcome)

        awaited = Awaited(0, partition, result.last_offset + 1, awaited_in)
        self._produces.watch(DelayedProduce(timeout_ms, [result], [awaited], settled), (tp,))

    def fetch(
        self, targets: Sequence[FetchTarget], terms: FetchTerms, answer: Callable[[list[FetchOutcome]], None]
    ) -> None:
        """`answer` is called exactly once: now, when enough has arrived, or when the wait is over."""
        outcomes = self._reader.read(targets, terms)

        def counted_answer(outcomes: list[FetchOutcome]) -> None:
            self._count_bytes_out(outcomes, is_follower=terms.replica_id >= 0)
            answer(outcomes)

        if terms.max_wait_ms <= 0 or not targets or is_enough(outcomes, terms.min_bytes):
            counted_answer(outcomes)
            return
        delayed = DelayedFetch(self._reader, targets, terms, counted_answer)
        self._fetches.watch(delayed, [target.partition for target in targets])

    def _count_bytes_out(self, outcomes: Iterable[FetchOutcome], *, is_follower: bool) -> None:
        for outcome in outcomes:
            if size := outcome.size:
                tp = outcome.target.partition
                if is_follower:
                    self.quotas.record_leader(tp, size)
                elif (partition := self.partitions.get(tp)) is not None:
                    partition.bytes_out += size

    def delete_records(
        self, offsets: Mapping[TopicPartition, int], *, timeout_ms: int, done: Callable[[DeleteOutcomes], None]
    ) -> None:
        """Let logs start later. `done` is called exactly once: when all live replicas do, or when the time is up."""
        outcomes: DeleteOutcomes = {}
        awaited: dict[TopicPartition, tuple[Partition, int]] = {}
        for tp, offset in offsets.items():
            try:
                partition = self.find(tp)
                awaited[tp] = partition, partition.delete_records_before(offset)
            except KafkaError as error:
                outcomes[tp] = error
        self._deletes.try_complete_else_watch(DelayedDelete(timeout_ms, outcomes, awaited, done), list(awaited))

    # ---- what the scheduler asks

    def high_watermarks(self) -> dict[TopicPartition, int]:
        return {tp: partition.high_watermark for tp, partition in self.partitions.copy().items()}

    def delete_expired(self) -> None:
        """Retention: whole segments that are too old or too many, never beyond the high watermark."""
        for tp, partition in self.partitions.copy().items():
            try:
                with partition.lock:
                    partition.log.delete_expired(self._clock.now_ms(), partition.high_watermark)
            except KafkaError as error:
                log.error("retention failed", partition=str(tp), error=str(error))


class _Soon(Timer):
    """Something to do on another thread, right away."""

    __slots__ = ("_action",)

    def __init__(self, action: Callable[[], None]) -> None:
        super().__init__(1)
        self._action = action

    def expire(self) -> None:
        self._action()

"""Roles of the replicas on this broker: lead, follow, stop. Requests for their records go to `PartitionTable`.

Role changes come from the controller alone, through `become` and `stop`, one request at a time under `_roles`. They
have effects on other engines, which are carried out after the lock is released: coordinators are notified of partitions
that are led or not any more, and waiting requests are completed.
"""

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import field
from functools import partial
from typing import Protocol

from odradek.base.clock import Clock
from odradek.base.config.broker_config import BrokerConfig
from odradek.base.config.topic_config import TopicConfig
from odradek.base.errors import ErrorCode, KafkaError
from odradek.base.logs import get_logger
from odradek.base.value_classes import dataclass
from odradek.broker.log.directories.log_dirs import LogDirs
from odradek.broker.purgatory.reaper import ExpirationReaper, Timer
from odradek.broker.replication.core.followers import LagRules
from odradek.broker.replication.directive_checks import is_stray, refuse_directive, refuse_stop
from odradek.broker.replication.follower.fetch_assignment import FetchAssignment
from odradek.broker.replication.partition import Partition
from odradek.broker.replication.partition_table import PartitionTable
from odradek.model.metadata_image import MetadataCache
from odradek.model.topology import NO_EPOCH, PartitionDirective, TopicPartition

log = get_logger(__name__)


class Copying(Protocol):
    """The follower side."""

    def follow(self, orders: Mapping[TopicPartition, FetchAssignment]) -> None: ...

    def unfollow(self, tps: Iterable[TopicPartition]) -> None: ...


class RoleListener(Protocol):
    """A coordinator, whose state is kept in partitions that this broker leads."""

    def lead(self, tp: TopicPartition, leader_epoch: int) -> None:
        """Take the leadership of the partition, in a new leader epoch."""

    def resign(self, tp: TopicPartition, leader_epoch: int) -> None:
        """Give up the leadership of the partition, which `leader_epoch` ended."""

    def forget(self, tp: TopicPartition) -> None:
        """The partition is not here any more. Leader epochs of a topic of the same name begin anew."""


@dataclass(frozen=True, slots=True)
class _Effects:
    """Consequences of role changes for other engines."""

    led: list[tuple[TopicPartition, int]] = field(default_factory=list)
    resigned: list[tuple[TopicPartition, int]] = field(default_factory=list)
    removed: list[TopicPartition] = field(default_factory=list)
    changed: list[TopicPartition] = field(default_factory=list)


class ReplicaManager:
    def __init__(
        self,
        broker_id: int,
        config: BrokerConfig,
        table: PartitionTable,
        logs: LogDirs,
        metadata: MetadataCache,
        reaper: ExpirationReaper,
        clock: Clock,
        *,
        fetchers: Copying,
        listeners: Sequence[RoleListener] = (),
        on_host: Callable[[Partition], None] = lambda partition: None,
    ) -> None:
        """`on_host` is called with each replica that is taken up, before it has a role."""
        self.controller_epoch = -1
        self._broker_id = broker_id
        self._table = table
        self._fetchers = fetchers
        self._listeners = listeners
        self._on_host = on_host
        self._metadata = metadata
        self._lag_rules = LagRules(config.replica_lag_time_max_ms, self._is_alive)
        self._listener_name = config.inter_broker_listener_name
        self._logs = logs
        self._reaper = reaper
        self._clock = clock
        self._roles = threading.Lock()
        self._unreachable: dict[TopicPartition, PartitionDirective] = {}  # followed as soon as the leader is known

    # ---- requests of the controller

    def become(
        self,
        directives: Iterable[PartitionDirective],
        config_of: Callable[[str], TopicConfig],
        *,
        controller_id: int,
        controller_epoch: int,
    ) -> dict[TopicPartition, ErrorCode]:
        """Carry out a LeaderAndIsr: lead and follow partitions. KafkaError if the sender is no longer the
        controller."""
        effects = _Effects()
        try:
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
                self._make_leaders(leaders, errors, effects)
                self._make_followers(followers, effects)
        finally:  # a repeated request would be refused: the epochs are taken
            self._carry_out(effects)
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
        """Stop replicas; with `delete`, delete their logs too. KafkaError as for `become`."""
        effects = _Effects()
        with self._roles:
            if controller_epoch is not None:
                self._check_controller(controller_id, controller_epoch)
            epochs = leader_epochs or {}
            errors: dict[TopicPartition, ErrorCode] = {}
            for tp in tps:
                refused = ErrorCode.KAFKA_STORAGE_ERROR if tp in self._table.offline else None
                refused = refused or refuse_stop(self._table.partitions.get(tp), epochs.get(tp, NO_EPOCH))
                errors[tp] = refused or ErrorCode.NONE
            stopped = [tp for tp, error in errors.items() if not error]
            self._unfollow(stopped)
            for tp in stopped:
                self._stop(tp, effects, self._logs.delete if delete else None)
        self._carry_out(effects)
        return errors

    def set_strays_aside(self) -> None:
        """Stop replicas that were moved to other brokers while this one was away, by metadata that is complete.

        The controller sends no StopReplica for them any more, and a replica that kept its role would fetch, or wait for
        fetches, forever.
        """
        effects = _Effects()
        with self._roles:
            image = self._metadata.image
            strays = [tp for tp in self._logs.table.logs.copy() if is_stray(image.partition(tp), self._broker_id)]
            self._unfollow(strays)
            for tp in strays:
                self._stop(tp, effects, self._logs.set_aside)
        self._carry_out(effects)

    def _carry_out(self, effects: _Effects) -> None:
        """Carry out all effects, also after one that fails, whose exception is raised at the end: a repeated request
        would be refused."""
        calls: list[Callable[[], None]] = []
        for listener in self._listeners:
            calls += [partial(listener.lead, tp, leader_epoch) for tp, leader_epoch in effects.led]
            calls += [partial(listener.resign, tp, leader_epoch) for tp, leader_epoch in effects.resigned]
            calls += [partial(listener.forget, tp) for tp in effects.removed]
        calls += [partial(self._table.wake, tp) for tp in effects.changed]
        failure: Exception | None = None
        for call in calls:
            try:
                call()
            except Exception as error:
                failure = failure or error
        if failure is not None:
            raise failure

    def _check_controller(self, controller_id: int, controller_epoch: int) -> None:
        if controller_epoch < self.controller_epoch:
            why = f"controller {controller_id} is of epoch {controller_epoch}, the latest is {self.controller_epoch}"
            log.warning("request from stale controller epoch refused", why=why)
            raise KafkaError(ErrorCode.STALE_CONTROLLER_EPOCH, why)
        self.controller_epoch = controller_epoch

    def _accept(
        self, directive: PartitionDirective, config_of: Callable[[str], TopicConfig]
    ) -> tuple[ErrorCode, Partition | None]:
        tp = directive.partition
        if tp in self._table.offline:
            return ErrorCode.KAFKA_STORAGE_ERROR, None
        partition = self._table.partitions.get(tp)
        refused = refuse_directive(directive, partition, self._broker_id)
        if refused is not None:
            return refused, None
        try:
            if partition is None or partition.topic_id != directive.topic_id:
                partition = self._host(directive, config_of(tp.topic))
        except KafkaError as error:
            log.error("replica could not be created", partition=str(tp), error=str(error))
            if error.code is ErrorCode.KAFKA_STORAGE_ERROR:
                self._table.offline.add(tp)
            return error.code, None
        return ErrorCode.NONE, partition

    def _host(self, directive: PartitionDirective, config: TopicConfig) -> Partition:
        """Open or create the log. An existing one may be in a failed directory: an empty log in its place would look
        like lost records.
        """
        tp, topic_id = directive.partition, directive.topic_id
        if not directive.is_new and self._logs.table.get(tp) is None and not self._logs.table.all_online:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"A log directory is offline, {tp} may be in it")
        partition_log = self._logs.get_or_create(tp, topic_id, config)
        self._throttle(tp.topic, config)
        known = self._table.partitions.get(tp)
        if known is not None:  # it had no topic id before
            known.topic_id = topic_id if topic_id.int else known.topic_id
            return known
        partition = Partition(
            tp,
            topic_id,
            partition_log,
            self._broker_id,
            clock=self._clock,
            lag_rules=self._lag_rules,
            checkpointed_high_watermark=self._logs.table.high_watermark(tp),
        )
        self._on_host(partition)
        self._table.partitions[tp] = partition
        return partition

    def _make_leaders(
        self,
        orders: Sequence[tuple[Partition, PartitionDirective]],
        errors: dict[TopicPartition, ErrorCode],
        effects: _Effects,
    ) -> None:
        self._unfollow([partition.topic_partition for partition, _ in orders])
        for partition, directive in orders:
            tp = partition.topic_partition
            try:
                partition.become_leader(directive)
            except KafkaError as error:
                log.error("replica failed to become leader", partition=str(tp), error=str(error))
                errors[tp] = error.code
                continue
            effects.led.append((tp, directive.state.leader_epoch))
            effects.changed.append(tp)

    def _make_followers(self, orders: Sequence[tuple[Partition, PartitionDirective]], effects: _Effects) -> None:
        for partition, directive in orders:
            if partition.become_follower(directive):
                effects.resigned.append((partition.topic_partition, directive.state.leader_epoch))
            effects.changed.append(partition.topic_partition)
        self._unfollow([partition.topic_partition for partition, _ in orders])
        self._follow([directive for _, directive in orders])

    def _follow(self, directives: Iterable[PartitionDirective]) -> None:
        """Follow the leaders; partitions whose leader is unknown, or whose fetcher can't be started, are tried again by
        `check_replicas`."""
        orders: dict[TopicPartition, FetchAssignment] = {}
        for directive in directives:
            state = directive.state
            leader = self._metadata.image.brokers.get(state.leader)
            endpoint = directive.leader_endpoint or (leader.endpoint(self._listener_name) if leader else None)
            if endpoint is not None:
                following = FetchAssignment(endpoint, state.leader, state.leader_epoch, directive.topic_id)
                orders[directive.partition] = following
            elif state.leader >= 0:
                log.warning(
                    "leader of the partition unknown, retrying", partition=str(directive.partition), leader=state.leader
                )
            if state.leader >= 0:
                self._unreachable[directive.partition] = directive
        if orders:
            self._fetchers.follow(orders)
            for tp in orders:
                self._unreachable.pop(tp, None)

    def _unfollow(self, tps: Sequence[TopicPartition]) -> None:
        for tp in tps:
            self._unreachable.pop(tp, None)
        if tps:
            self._fetchers.unfollow(tps)

    def _stop(self, tp: TopicPartition, effects: _Effects, remove: Callable[[TopicPartition], None] | None) -> None:
        """`remove` takes the log out of the way; None if it stays."""
        partition = self._table.partitions.pop(tp, None) if remove else self._table.partitions.get(tp)
        if partition is not None:
            led = partition.resign(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if remove else None)
            if led:
                effects.resigned.append((tp, partition.leader_epoch))
        if remove is not None:
            with partition.lock if partition else nullcontext():
                remove(tp)
            effects.removed.append(tp)
        effects.changed.append(tp)

    def _is_alive(self, broker_id: int) -> bool:
        return broker_id in self._metadata.image.brokers

    # ---- periodic checks and failures

    def update_config(self, tps: Iterable[TopicPartition], config: TopicConfig) -> None:
        for tp in tps:
            self._throttle(tp.topic, config)
            partition = self._table.partitions.get(tp)
            if partition is not None and partition.update_config(self._logs.log_config(config)):
                self._table.wake(tp)

    def _throttle(self, topic: str, config: TopicConfig) -> None:
        self._table.quotas.set_topic(
            topic, config.leader_replication_throttled_replicas, config.follower_replication_throttled_replicas
        )

    def take_offline(self, tps: Iterable[TopicPartition]) -> None:
        """Their directory failed: they answer with KAFKA_STORAGE_ERROR until the broker starts again.

        The caller may hold a partition's lock: the rest is left to another thread.
        """
        lost = []
        for tp in tps:
            self._table.offline.add(tp)
            if (partition := self._table.partitions.pop(tp, None)) is not None:
                partition.gone = ErrorCode.KAFKA_STORAGE_ERROR
                lost.append(partition)
        if not self._reaper.add(resignation := _Soon(lambda: self._give_up_leadership(lost))):
            resignation.expire()

    def _give_up_leadership(self, lost: Sequence[Partition]) -> None:
        self._unfollow([partition.topic_partition for partition in lost])
        tps = [partition.topic_partition for partition in lost]
        self._carry_out(_Effects(resigned=[(p.topic_partition, p.leader_epoch) for p in lost], changed=tps))

    def check_replicas(self) -> None:
        """Remove lagging replicas from the ISR. The scheduler calls it every half of `replica.lag.time.max.ms`."""
        for tp, partition in self._table.partitions.copy().items():
            if partition.followers.by_id:
                self._table.follow_up(tp, partition.check_followers())
        with self._roles:
            self._follow(list(self._unreachable.values()))

    def delete_expired(self) -> None:
        """Delete expired segments of all logs, never beyond the high watermark."""
        for tp, partition in self._table.partitions.copy().items():
            try:
                with partition.lock:
                    partition.log.delete_expired(self._clock.now_ms(), partition.high_watermark)
            except KafkaError as error:
                log.error("retention failed", partition=str(tp), error=str(error))


class _Soon(Timer):
    """A task to run on another thread, right away."""

    __slots__ = ("_action",)

    def __init__(self, action: Callable[[], None]) -> None:
        super().__init__(1)
        self._action = action

    def expire(self) -> None:
        self._action()

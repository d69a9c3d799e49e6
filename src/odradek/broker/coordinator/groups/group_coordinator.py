"""The coordinator of the groups that this broker is responsible for: those kept in offsets partitions that it leads.

A decision about a group is made in a turn at it, under its lock; when that is free again, its records are written and
its answers sent. Where it has to wait for a record to be replicated, no thread waits: the decision is suspended, and
resumed in another turn with the result of the write. The next leader of the partition replays the records, and has the
same state then.

One timer per group, set to the earliest instant that the group waits for, and only ever moved to an earlier one:
a heartbeat costs no timer.
"""

from collections.abc import Callable, Generator, Mapping
from functools import partial
from typing import TypeVar

from odradek.base.clock import Clock
from odradek.base.config.broker_config import BrokerConfig
from odradek.base.errors import ErrorCode, KafkaError
from odradek.base.logs import get_logger
from odradek.broker.coordinator.groups.core import member_checks, rebalance
from odradek.broker.coordinator.groups.core.group import NEVER_MS, Group, GroupState
from odradek.broker.coordinator.groups.core.group_description import GroupDescription, GroupOverview, describe_group
from odradek.broker.coordinator.groups.core.group_records import GroupKey, GroupMetadataValue, encode_group
from odradek.broker.coordinator.groups.core.group_requests import (
    Effect,
    GroupRules,
    Joining,
    JoinWaiter,
    Moment,
    NoteGroup,
    Rebalanced,
    Stored,
    StoreGroup,
    Syncing,
    SyncWaiter,
)
from odradek.broker.coordinator.groups.group_entry import GroupEntry, GroupWriter
from odradek.broker.coordinator.groups.group_log import GroupLog
from odradek.broker.coordinator.groups.group_offsets import GroupOffsets
from odradek.broker.coordinator.groups.group_table import GroupTable
from odradek.broker.coordinator.state.state_log_writer import StateLogWriter
from odradek.broker.purgatory.reaper import ExpirationReaper, Timer
from odradek.model.topic_names import OFFSETS_TOPIC
from odradek.model.topology import TopicPartition

log = get_logger(__name__)

T = TypeVar("T")
Decide = Callable[[Group, Moment], Generator[Effect, Stored, T]]

_ERRORS: Mapping[ErrorCode, ErrorCode] = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.REBALANCE_IN_PROGRESS,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.INVALID_FETCH_SIZE: ErrorCode.UNKNOWN_SERVER_ERROR,
}
"""Error for the members when the log refuses the group's record."""


class _GroupTimer(Timer):
    __slots__ = ("_coordinator", "_held")

    def __init__(self, coordinator: "GroupCoordinator", held: GroupEntry, delay_ms: int) -> None:
        super().__init__(delay_ms)
        self._coordinator = coordinator
        self._held = held

    def expire(self) -> None:
        self._coordinator.on_time(self._held, self)


class GroupCoordinator:
    def __init__(
        self,
        config: BrokerConfig,
        group_log: GroupLog,
        reaper: ExpirationReaper,
        clock: Clock,
        writer: StateLogWriter | None = None,
        on_rebalance: Callable[[Rebalanced], None] = lambda rebalanced: None,
    ) -> None:
        writer = writer or StateLogWriter()
        self._log = group_log
        self._reaper = reaper
        self._clock = clock
        self._rules = GroupRules(
            config.group_min_session_timeout_ms,
            config.group_max_session_timeout_ms,
            config.group_max_size,
            config.group_initial_rebalance_delay_ms,
        )
        self._writes = GroupWriter(writer)
        self._table = GroupTable(group_log, clock, reaper, self._begin, self._give_up, self._watch, self._unwatch)
        self._on_rebalance = on_rebalance
        self.offsets = GroupOffsets(config, self._table, self._writes, clock)
        self.deferred_writes = writer.deferred
        """Context for a thread that serves many requests, and flushes the writes of a round together."""

    def stop(self) -> None:
        self._table.stop()

    def partition_for(self, group_id: str) -> int:
        return self._log.partition_for(group_id)

    # ---- groups of this broker

    def lead(self, tp: TopicPartition, leader_epoch: int) -> None:
        """Take over the groups of the partition that this broker leads from now on, if groups are kept in it."""
        if tp.topic == OFFSETS_TOPIC:
            self._table.lead(tp.partition, leader_epoch)

    def resign(self, tp: TopicPartition, leader_epoch: int) -> None:
        if tp.topic == OFFSETS_TOPIC:
            self._table.resign(tp.partition, leader_epoch)

    def forget(self, tp: TopicPartition) -> None:
        if tp.topic == OFFSETS_TOPIC:
            self._table.removed(tp.partition)

    def _watch(self, held: GroupEntry) -> None:
        self.offsets.watch_transactions(held)

    def _unwatch(self, held: GroupEntry) -> None:
        self.offsets.unwatch_transactions(held)

    def _begin(self, held: GroupEntry) -> None:
        self._decide(held, lambda group, now: rebalance.after_load(group, self._rules, now))

    def _give_up(self, held: GroupEntry) -> None:
        self._unwatch(held)
        self._decide(held, rebalance.unload)

    # ---- membership

    def join(self, group_id: str, joining: Joining, waiter: JoinWaiter) -> None:
        """`waiter` is called once: now, or when the group has its next generation. KafkaError: refused at once."""
        held = self._table.find(group_id)
        if not self._rules.session_timeout_min_ms <= joining.session_timeout_ms <= self._rules.session_timeout_max_ms:
            raise KafkaError(ErrorCode.INVALID_SESSION_TIMEOUT)
        if held is None:
            if joining.member_id:
                raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
            held = self._table.find_or_create(group_id)
        self._decide(held, lambda group, now: rebalance.join(group, joining, waiter, self._rules, now))

    def sync(self, group_id: str, syncing: Syncing, waiter: SyncWaiter) -> None:
        """`waiter` is called once: now, or when the leader has assigned. KafkaError: refused at once."""
        held = self._member_of(group_id, while_loading=ErrorCode.REBALANCE_IN_PROGRESS)
        self._decide(held, lambda group, now: rebalance.sync(group, syncing, waiter, self._rules, now))

    def heartbeat(self, group_id: str, member_id: str, instance_id: str | None, generation: int) -> ErrorCode:
        try:
            held = self._member_of(group_id, while_loading=ErrorCode.NONE)
        except KafkaError as error:
            return error.code
        with held.lock:
            return member_checks.heartbeat(held.group, member_id, instance_id, generation, self._now())

    def leave(self, group_id: str, member_id: str, instance_id: str | None, reason: str | None = None) -> ErrorCode:
        held = self._table.find(group_id)
        if held is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        left = self._decide(
            held, lambda group, now: rebalance.leave(group, member_id, instance_id, reason, self._rules, now)
        )
        assert left is not None, "to leave is to wait for nothing"
        return left

    def _member_of(self, group_id: str, *, while_loading: ErrorCode) -> GroupEntry:
        """Return a group whose member a request claims to be."""
        try:
            held = self._table.find(group_id)
        except KafkaError as error:
            if error.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
                raise KafkaError(while_loading) from None
            raise
        if held is None:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
        return held

    # ---- administration

    def list_groups(self) -> list[GroupOverview]:
        """Return the groups. KafkaError while some are still being loaded."""
        if self._table.is_loading:
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        groups = [held.group for held in self._table.all()]
        return [GroupOverview(group.id, group.protocol_type or "", group.state) for group in groups]

    def describe(self, group_id: str) -> GroupDescription:
        held = self._table.find(group_id, nameless=True)
        if held is None:
            return GroupDescription(GroupState.DEAD.value)
        with held.lock:
            return describe_group(held.group)

    def forget_topic(self, topic: str) -> None:
        self.offsets.forget_topic(topic)

    def transaction_completed(
        self, partition: TopicPartition, producer_id: int, ended_epoch: int, committed: bool
    ) -> None:
        """Handle a replicated marker: that of the producer's transaction in this epoch, in an offsets partition."""
        self.offsets.end_transaction(partition.partition, producer_id, ended_epoch, committed=committed)

    def expire_offsets(self) -> None:
        self.offsets.expire()

    # ---- decisions and time

    def on_time(self, held: GroupEntry, timer: Timer) -> None:
        """Called when a group's timer expires."""
        if held.timer is timer:
            self._decide(held, lambda group, now: rebalance.expire(group, self._rules, now))

    def _decide(self, held: GroupEntry, decide: Decide[T]) -> T | None:
        """Return the result of the decision, if it is made at once."""

        def begin() -> T | None:
            now = self._now()
            return self._go_on(held, decide(held.group, now), None)

        return self._writes.turn(held, begin)

    def _go_on(self, held: GroupEntry, decision: Generator[Effect, Stored, T], answer: Stored | None) -> T | None:
        """Run the decision to its end, or until it has to wait. The caller has the group's turn."""
        try:
            effect = next(decision) if answer is None else decision.send(answer)
            while True:
                if isinstance(effect, StoreGroup):
                    self._store(held, effect.value, partial(self._stored, held, decision))
                    return None
                if isinstance(effect, NoteGroup):
                    self._store(held, effect.value, partial(_report, held))
                elif isinstance(effect, Rebalanced):
                    held.answers.append(partial(self._on_rebalance, effect))
                else:
                    held.answers.append(effect.send)
                effect = next(decision)
        except StopIteration as end:
            result: T = end.value
            return result
        finally:
            self._set_timer(held)
            _show(held)

    def _store(self, held: GroupEntry, value: GroupMetadataValue, settle: Callable[[ErrorCode], None]) -> None:
        self._writes.append(held, [(GroupKey(held.group.id), encode_group(value))], settle)

    def _stored(self, held: GroupEntry, decision: Generator[Effect, Stored, object], error: ErrorCode) -> None:
        _report(held, error)
        self._go_on(held, decision, Stored(_ERRORS.get(error, error), self._now()))

    def _set_timer(self, held: GroupEntry) -> None:
        now_ms = self._clock.monotonic_ms()
        timer, wake_ms = held.timer, held.group.wake_ms
        if timer is not None and now_ms < timer.deadline_ms <= wake_ms:
            return
        if timer is not None:
            self._reaper.cancel(timer)
            held.timer = None
        if wake_ms < NEVER_MS:
            held.timer = timer = _GroupTimer(self, held, max(wake_ms - now_ms, 1))
            while not self._reaper.add(timer):
                pass  # the clock moved between the question and the adding

    def _now(self) -> Moment:
        return Moment(self._clock.now_ms(), self._clock.monotonic_ms())


def _report(held: GroupEntry, error: ErrorCode) -> None:
    if error:
        log.warning("group metadata write failed", group=held.group.id, error=error.name)


def _show(held: GroupEntry) -> None:
    """Log the state changes of groups."""
    state, generation = shown = (held.group.state, held.group.generation)
    if shown != held.shown:
        held.shown = shown
        held.answers.append(
            partial(log.info, "group moved", group=held.group.id, state=state.value, generation=generation)
        )

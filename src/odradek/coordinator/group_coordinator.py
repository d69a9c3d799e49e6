"""The coordinator of the groups that this broker is responsible for: those kept in offsets partitions that it leads.

Each group has one lock. Under it a decision is made and its record written; answers are sent when it is free again.
Memory changes only with the record: whoever leads the partition next replays the records and is where this one was.
One timer per group, set to the earliest instant that the group waits for, and only ever moved to an earlier one:
a heartbeat costs no timer.
"""

import threading
from collections.abc import Callable, Collection, Generator, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from odradek.base.clock import Clock
from odradek.base.config.broker_config import BrokerConfig
from odradek.base.errors import ErrorCode, KafkaError
from odradek.base.logs import get_logger
from odradek.coordinator import rebalance
from odradek.coordinator.group import CONSUMER_PROTOCOL, NEVER_MS, Group, GroupState, Moment
from odradek.coordinator.group_description import GroupDescription, GroupOverview, describe_group
from odradek.coordinator.group_log import GroupLog, StateRecord
from odradek.coordinator.group_records import CommittedOffset, GroupKey, OffsetKey, encode_group, encode_offset
from odradek.coordinator.group_requests import (
    Effect,
    GroupRules,
    JoinAnswer,
    Joining,
    JoinWaiter,
    Reply,
    StoreGroup,
    SyncAnswer,
    Syncing,
    SyncWaiter,
)
from odradek.coordinator.offsets import Offsets, expired_offsets
from odradek.model.topic_names import OFFSETS_TOPIC
from odradek.model.topology import TopicPartition
from odradek.purgatory.reaper import ExpirationReaper, Timer

log = get_logger(__name__)

_MINUTE_MS = 60_000

T = TypeVar("T")
Decide = Callable[[Group, Moment], Generator[Effect, ErrorCode, T]]
Replies = list[Reply[JoinAnswer] | Reply[SyncAnswer]]


class _Tenure:
    """One time of leading a partition. Its groups are ours to answer for once its records are replayed."""

    __slots__ = ("loaded",)

    def __init__(self, *, loaded: bool) -> None:
        self.loaded = loaded


class _HeldGroup:
    """A group with what the coordinator keeps beside it. Everything in it is guarded by `lock`."""

    __slots__ = ("group", "lock", "offsets", "partition", "timer")

    def __init__(self, group: Group, offsets: Offsets, partition: int) -> None:
        self.lock = threading.Lock()
        self.group = group
        self.offsets = offsets
        self.partition = partition
        self.timer: _GroupTimer | None = None


class _GroupTimer(Timer):
    __slots__ = ("_coordinator", "_held")

    def __init__(self, coordinator: "GroupCoordinator", held: _HeldGroup, delay_ms: int) -> None:
        super().__init__(delay_ms)
        self._coordinator = coordinator
        self._held = held

    def expire(self) -> None:
        self._coordinator.on_time(self._held, self)


class GroupCoordinator:
    def __init__(self, config: BrokerConfig, group_log: GroupLog, reaper: ExpirationReaper, clock: Clock) -> None:
        self._log = group_log
        self._reaper = reaper
        self._clock = clock
        self._rules = GroupRules(
            config.integer("group.min.session.timeout.ms"),
            config.integer("group.max.session.timeout.ms"),
            config.integer("group.max.size"),
            config.integer("group.initial.rebalance.delay.ms"),
        )
        self._metadata_length_max = config.integer("offset.metadata.max.bytes")
        self._retention_ms = config.integer("offsets.retention.minutes") * _MINUTE_MS
        self._groups: dict[str, _HeldGroup] = {}
        self._tenures: dict[int, _Tenure] = {}
        self._table_lock = threading.Lock()  # for tenures, and groups that come and go with them
        self._loader = ThreadPoolExecutor(max_workers=1, thread_name_prefix="group-loader")

    def stop(self) -> None:
        self._loader.shutdown(wait=True, cancel_futures=True)

    def partition_for(self, group_id: str) -> int:
        return self._log.partition_for(group_id)

    # ---- which groups are ours

    def lead(self, tp: TopicPartition) -> None:
        """This broker leads the partition from now on: if groups are kept in it, they are ours."""
        if tp.topic != OFFSETS_TOPIC:
            return
        tenure = _Tenure(loaded=self._log.is_new(tp.partition))
        with self._table_lock:
            self._tenures[tp.partition] = tenure
        if not tenure.loaded:
            self._loader.submit(self._load, tp.partition, tenure)

    def resign(self, tp: TopicPartition) -> None:
        if tp.topic != OFFSETS_TOPIC:
            return
        with self._table_lock:
            self._tenures.pop(tp.partition, None)
            given_up = [held for held in list(self._groups.values()) if held.partition == tp.partition]
            for held in given_up:
                self._groups.pop(held.group.id, None)
        for held in given_up:
            self._decide(held, rebalance.unload)
        log.info("groups given up", partition=tp.partition, groups=len(given_up))

    def _load(self, partition: int, tenure: _Tenure) -> None:
        started_ms = self._clock.monotonic_ms()
        try:
            replayed = self._log.replay(partition)
        except Exception:
            log.exception("groups can't be loaded", partition=partition)
            self.resign(TopicPartition(OFFSETS_TOPIC, partition))
            return
        held_groups = [_HeldGroup(group, offsets, partition) for group, offsets in replayed.groups(self._now())]
        with self._table_lock:
            if self._tenures.get(partition) is not tenure:
                return
            self._groups.update((held.group.id, held) for held in held_groups)
            tenure.loaded = True
        for held in held_groups:
            self._decide(held, lambda group, now: rebalance.after_load(group, self._rules, now))
        if held_groups:
            took_ms = self._clock.monotonic_ms() - started_ms
            log.info("groups loaded", partition=partition, groups=len(held_groups), took_ms=took_ms)

    def _find(self, group_id: str, *, nameless: bool = False) -> _HeldGroup | None:
        """The group, or None if there is no such one. KafkaError: it isn't ours to know.

        A group may have no name as far as only its offsets are concerned: the oldest clients had none to give.
        """
        if not group_id and not nameless:
            raise KafkaError(ErrorCode.INVALID_GROUP_ID)
        if (held := self._groups.get(group_id)) is not None:
            return held
        tenure = self._tenures.get(self._log.partition_for(group_id))
        if tenure is None:
            raise KafkaError(ErrorCode.NOT_COORDINATOR)
        if not tenure.loaded:
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        return None

    def _find_or_create(self, group_id: str) -> _HeldGroup:
        new = _HeldGroup(Group(group_id, self._now()), {}, self._log.partition_for(group_id))
        with self._table_lock:
            tenure = self._tenures.get(new.partition)
            if tenure is None or not tenure.loaded:
                raise KafkaError(ErrorCode.NOT_COORDINATOR)
            return self._groups.setdefault(group_id, new)

    # ---- membership

    def join(self, group_id: str, joining: Joining, waiter: JoinWaiter) -> None:
        """`waiter` is called once: now, or when the group has its next generation. KafkaError: refused at once."""
        held = self._find(group_id)
        if not self._rules.session_timeout_min_ms <= joining.session_timeout_ms <= self._rules.session_timeout_max_ms:
            raise KafkaError(ErrorCode.INVALID_SESSION_TIMEOUT)
        if held is None:
            if joining.member_id:
                raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
            held = self._find_or_create(group_id)
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
            return rebalance.heartbeat(held.group, member_id, instance_id, generation, self._now())

    def leave(self, group_id: str, member_id: str, instance_id: str | None) -> ErrorCode:
        held = self._find(group_id)
        if held is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        return self._decide(held, lambda group, now: rebalance.leave(group, member_id, instance_id, self._rules, now))

    def _member_of(self, group_id: str, *, while_loading: ErrorCode) -> _HeldGroup:
        """A group that somebody says to be a member of."""
        try:
            held = self._find(group_id)
        except KafkaError as error:
            if error.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
                raise KafkaError(while_loading) from None
            raise
        if held is None:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
        return held

    # ---- offsets

    def commit(
        self,
        group_id: str,
        member_id: str,
        instance_id: str | None,
        generation: int,
        commits: Mapping[TopicPartition, CommittedOffset],
    ) -> dict[TopicPartition, ErrorCode]:
        held = self._find(group_id, nameless=True)
        if held is None:
            if generation >= 0:
                raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
            held = self._find_or_create(group_id)
        fitting = {tp: each for tp, each in commits.items() if len(each.metadata) <= self._metadata_length_max}
        with held.lock:
            if error := rebalance.may_commit(held.group, member_id, instance_id, generation, self._now()):
                raise KafkaError(error)
            if fitting:
                self._write_offsets(held, fitting)
        return {tp: ErrorCode.NONE if tp in fitting else ErrorCode.OFFSET_METADATA_TOO_LARGE for tp in commits}

    def _write_offsets(self, held: _HeldGroup, commits: Mapping[TopicPartition, CommittedOffset]) -> None:
        group_id = held.group.id
        try:
            self._log.write(
                held.partition, [(OffsetKey(group_id, tp), encode_offset(each)) for tp, each in commits.items()]
            )
        except KafkaError as error:
            if error.code in (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE):
                raise KafkaError(ErrorCode.INVALID_COMMIT_OFFSET_SIZE, error.message) from error
            raise
        held.offsets.update(commits)

    def committed(
        self, group_id: str, partitions: Iterable[TopicPartition] | None
    ) -> dict[TopicPartition, CommittedOffset | None]:
        """The offsets of these partitions; with None, all that there are."""
        held = self._find(group_id, nameless=True)
        if held is None:
            return dict.fromkeys(partitions or ())
        with held.lock:
            return {tp: held.offsets.get(tp) for tp in (held.offsets if partitions is None else partitions)}

    def delete_offsets(self, group_id: str, partitions: Collection[TopicPartition]) -> dict[TopicPartition, ErrorCode]:
        """Of topics that the group's members don't read."""
        held = self._find(group_id)
        if held is None:
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND)
        with held.lock:
            group = held.group
            if group.state is GroupState.DEAD:
                raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND)
            if group.state is not GroupState.EMPTY and group.protocol_type != CONSUMER_PROTOCOL:
                raise KafkaError(ErrorCode.NON_EMPTY_GROUP)
            kept = {tp for tp in partitions if group.state is not GroupState.EMPTY and _reads(group, tp.topic)}
            self._forget(held, [tp for tp in partitions if tp not in kept])
        return {tp: ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC if tp in kept else ErrorCode.NONE for tp in partitions}

    def forget_topic(self, topic: str) -> None:
        """It is deleted: a topic of the same name begins anew."""
        self._forget_everywhere(lambda held: [tp for tp in held.offsets if tp.topic == topic])

    def expire_offsets(self) -> None:
        """What retention says, and groups of which nothing is left."""
        now_ms = self._clock.now_ms()
        self._forget_everywhere(lambda held: expired_offsets(held.group, held.offsets, now_ms, self._retention_ms))

    def _forget_everywhere(self, choose: Callable[[_HeldGroup], list[TopicPartition]]) -> None:
        for held in list(self._groups.values()):
            with held.lock:
                try:
                    self._forget(held, choose(held))
                except KafkaError as error:
                    log.warning("offsets can't be forgotten yet", group=held.group.id, error=str(error))

    def _forget(self, held: _HeldGroup, gone: Collection[TopicPartition]) -> None:
        """A group without members and offsets goes too. Under the lock."""
        group = held.group
        known = [tp for tp in gone if tp in held.offsets]
        dies = group.state is GroupState.EMPTY and len(known) == len(held.offsets) and not group.pending_members
        tombstones: list[StateRecord] = [(OffsetKey(group.id, tp), None) for tp in known]
        if dies and group.generation > 0:
            tombstones.append((GroupKey(group.id), None))
        if tombstones:
            self._log.write(held.partition, tombstones)
        for tp in known:
            del held.offsets[tp]
        if dies:
            group.move_to(GroupState.DEAD, self._now())
            self._groups.pop(group.id, None)

    # ---- administration

    def list_groups(self) -> list[GroupOverview]:
        """KafkaError while some are still being loaded."""
        if not all(tenure.loaded for tenure in self._tenures.copy().values()):
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        groups = [held.group for held in list(self._groups.values())]
        return [GroupOverview(group.id, group.protocol_type or "", group.state.value) for group in groups]

    def describe(self, group_id: str) -> GroupDescription:
        held = self._find(group_id, nameless=True)
        if held is None:
            return GroupDescription(GroupState.DEAD.value)
        with held.lock:
            return describe_group(held.group)

    def delete(self, group_id: str) -> None:
        held = self._find(group_id, nameless=True)
        if held is None:
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND)
        with held.lock:
            if held.group.state is GroupState.DEAD:
                raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND)
            if held.group.state is not GroupState.EMPTY:
                raise KafkaError(ErrorCode.NON_EMPTY_GROUP)
            held.group.pending_members.clear()
            self._forget(held, list(held.offsets))
        log.info("group deleted", group=group_id)

    # ---- decisions and time

    def on_time(self, held: _HeldGroup, timer: Timer) -> None:
        """The instant that a group waited for has come."""
        if held.timer is timer:
            self._decide(held, lambda group, now: rebalance.expire(group, self._rules, now))

    def _decide(self, held: _HeldGroup, decide: Decide[T]) -> T:
        replies: Replies = []
        with held.lock:
            before = (held.group.state, held.group.generation)
            result = self._perform(held, decide(held.group, self._now()), replies)
            self._set_timer(held)
            after = (held.group.state, held.group.generation)
        if after != before:
            log.info("group moved", group=held.group.id, state=after[0].value, generation=after[1])
        for reply in replies:
            reply.send()
        return result

    def _perform(self, held: _HeldGroup, decision: Generator[Effect, ErrorCode, T], replies: Replies) -> T:
        try:
            effect = next(decision)
            while True:
                if isinstance(effect, StoreGroup):
                    effect = decision.send(self._store(held, effect))
                else:
                    replies.append(effect)
                    effect = decision.send(ErrorCode.NONE)
        except StopIteration as end:
            result: T = end.value
            return result

    def _store(self, held: _HeldGroup, effect: StoreGroup) -> ErrorCode:
        try:
            self._log.write(held.partition, [(GroupKey(held.group.id), encode_group(effect.value))])
        except KafkaError as error:
            log.warning("group can't be stored", group=held.group.id, error=str(error))
            too_large = error.code in (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE)
            return ErrorCode.UNKNOWN_SERVER_ERROR if too_large else error.code
        return ErrorCode.NONE

    def _set_timer(self, held: _HeldGroup) -> None:
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


def _reads(group: Group, topic: str) -> bool:
    """Whether a member reads the topic, as far as can be known."""
    return group.subscribed_topics is None or topic in group.subscribed_topics

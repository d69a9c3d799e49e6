"""The positions of groups: committed, looked up, forgotten.

A position is in memory once its record is replicated. Until then the former one is what the group has, and a reader
that requires stable offsets has to try again.
"""

import threading
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from typing import Final

from odradek.base.clock import Clock
from odradek.base.config.broker_config import BrokerConfig
from odradek.base.errors import ErrorCode, KafkaError
from odradek.base.logs import get_logger
from odradek.broker.coordinator.groups.core.group import CONSUMER_PROTOCOL, Group, GroupState
from odradek.broker.coordinator.groups.core.group_records import (
    CommittedOffset,
    GroupKey,
    OffsetKey,
    StateRecord,
    encode_offset,
)
from odradek.broker.coordinator.groups.core.group_requests import Moment
from odradek.broker.coordinator.groups.core.member_checks import Committer, may_commit, may_commit_in_transaction
from odradek.broker.coordinator.groups.core.offsets import expired_offsets
from odradek.broker.coordinator.groups.group_entry import GroupEntry, GroupWriter
from odradek.broker.coordinator.groups.group_table import GroupTable
from odradek.broker.coordinator.state.core.state_batch import TransactionalProducer
from odradek.broker.log.core.verification import VerificationGuard
from odradek.model.topology import NO_EPOCH, TopicPartition

log = get_logger(__name__)

PartitionErrors = dict[TopicPartition, ErrorCode]

UNSTABLE: Final = CommittedOffset(-1, NO_EPOCH, "", -1)
"""In place of a position that may still change, for requests with require_stable."""

_MINUTE_MS = 60_000
_FORGOTTEN_TOGETHER = 1_000  # groups
_ERRORS: Mapping[ErrorCode, ErrorCode] = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.INVALID_COMMIT_OFFSET_SIZE,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.INVALID_COMMIT_OFFSET_SIZE,
    ErrorCode.INVALID_FETCH_SIZE: ErrorCode.INVALID_COMMIT_OFFSET_SIZE,
}
"""Error of an OffsetCommit whose record the log refuses."""

_VERIFICATION_ERRORS: Mapping[ErrorCode, ErrorCode] = {
    ErrorCode.NETWORK_EXCEPTION: ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
}
"""Errors for a committer whose transaction can't be verified."""


class GroupOffsets:
    def __init__(self, config: BrokerConfig, table: GroupTable, writes: GroupWriter, clock: Clock) -> None:
        self._table = table
        self._writes = writes
        self._clock = clock
        self._open_lock = threading.Lock()
        self._open: dict[tuple[int, int], dict[GroupEntry, int]] = {}
        """By partition and producer id: the groups that it commits to, and the epoch in which it does."""
        self._metadata_length_max = config.offset_metadata_max_bytes
        self._retention_ms = config.offsets_retention_minutes * _MINUTE_MS

    # ---- commits

    def commit(
        self,
        group_id: str,
        committer: Committer,
        commits: Mapping[TopicPartition, CommittedOffset],
        done: Callable[[PartitionErrors], None],
    ) -> None:
        """`done` is called once, when the positions are there to stay or can't be kept. KafkaError: refused at once."""
        held = self._table.find(group_id, nameless=True)
        if held is None:
            if committer.generation >= 0:
                raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
            held = self._table.find_or_create(group_id)
        committing = held

        def decide() -> None:
            now = Moment(self._clock.now_ms(), self._clock.monotonic_ms())
            if error := may_commit(committing.group, committer, now):
                raise KafkaError(error)
            self._write(committing, commits, done)

        self._writes.turn(held, decide)

    def _write(
        self,
        held: GroupEntry,
        commits: Mapping[TopicPartition, CommittedOffset],
        done: Callable[[PartitionErrors], None],
        producer: TransactionalProducer | None = None,
        guard: VerificationGuard | None = None,
    ) -> None:
        longest = self._metadata_length_max
        fitting = {tp: each for tp, each in commits.items() if len(each.metadata) <= longest}
        errors = dict.fromkeys(commits, ErrorCode.OFFSET_METADATA_TOO_LARGE)
        if not fitting:
            if producer is not None:
                held.answers.append(partial(held.log.abandon, held.partition, producer, guard))
            held.answers.append(partial(done, errors))
            return

        def settle(error: ErrorCode) -> None:
            errors.update(dict.fromkeys(fitting, _ERRORS.get(error, error)))
            held.answers.append(partial(done, errors))

        group_id = held.group.id
        records: list[StateRecord] = [(OffsetKey(group_id, tp), encode_offset(each)) for tp, each in fitting.items()]
        self._writes.append(held, records, settle, fitting, producer, guard)

    def commit_in_transaction(
        self,
        group_id: str,
        committer: Committer,
        producer: TransactionalProducer,
        commits: Mapping[TopicPartition, CommittedOffset],
        done: Callable[[PartitionErrors], None],
        *,
        add: bool,
    ) -> None:
        """Positions that count when the producer's transaction commits. `done` is called once, when their records are
        replicated or can't be written. KafkaError: refused at once.

        The transaction is verified first, or with `add` the group becomes part of it. The member is checked after that:
        it may be fenced meanwhile."""
        held = self._table.find(group_id) or self._table.find_or_create(group_id)

        def decide(guard: VerificationGuard | None) -> None:
            if error := may_commit_in_transaction(held.group, committer):
                held.answers.append(partial(held.log.abandon, held.partition, producer, guard))
                held.answers.append(partial(done, dict.fromkeys(commits, error)))
                return
            self._watch_transaction(held, producer.producer_id, producer.producer_epoch)
            self._write(held, commits, done, producer, guard)

        def verified(error: ErrorCode, guard: VerificationGuard | None) -> None:
            if error:
                code = _VERIFICATION_ERRORS.get(error) or _ERRORS.get(error, error)
                done(dict.fromkeys(commits, code))
            else:
                self._writes.turn(held, partial(decide, guard))

        held.log.verify(held.partition, producer, verified, add=add)

    def end_transaction(self, partition: int, producer_id: int, ended_epoch: int, *, committed: bool) -> None:
        """Handle a producer's marker: its pending positions of that epoch or earlier ones count, or are dropped. A
        repeated marker may come when the producer commits positions in its next transaction."""
        ended = partial(self._end_transaction, (partition, producer_id), ended_epoch, committed=committed)
        self._table.after_replay(partition, ended)

    def _end_transaction(self, key: tuple[int, int], ended_epoch: int, *, committed: bool) -> None:
        with self._open_lock:
            concerned = [held for held, epoch in self._open.get(key, {}).items() if epoch <= ended_epoch]
            self._unwatch(key, concerned)
        for held in concerned:
            self._writes.turn(held, partial(self._writes.end_transaction, held, key[1], committed=committed))

    def watch_transactions(self, held: GroupEntry) -> None:
        """Watch the transactions of a replayed group: its pending offsets wait for markers of any epoch."""
        for producer_id in held.pending.producers:
            self._watch_transaction(held, producer_id, NO_EPOCH)

    def unwatch_transactions(self, held: GroupEntry) -> None:
        """Stop watching the transactions of a group."""
        with self._open_lock:
            for key in list(self._open):
                self._unwatch(key, (held,))

    def _watch_transaction(self, held: GroupEntry, producer_id: int, producer_epoch: int) -> None:
        with self._open_lock:
            self._open.setdefault((held.partition, producer_id), {})[held] = producer_epoch

    def _unwatch(self, key: tuple[int, int], entries: Iterable[GroupEntry]) -> None:
        """Remove the watches; the caller has the lock."""
        groups = self._open.get(key, {})
        for held in entries:
            groups.pop(held, None)
        if not groups:
            self._open.pop(key, None)

    def committed(
        self, group_id: str, partitions: Iterable[TopicPartition] | None, *, stable: bool = False
    ) -> dict[TopicPartition, CommittedOffset | None]:
        """Offsets of partitions, or of all with None. With `stable`, UNSTABLE for those with unsettled changes."""
        held = self._table.find(group_id, nameless=True)
        if held is None:
            return dict.fromkeys(partitions or ())
        with held.lock:
            found = {tp: held.offsets.get(tp) for tp in (held.offsets if partitions is None else partitions)}
            if stable:
                found.update((tp, UNSTABLE) for tp in held.unsettled_offsets() if tp in found)
            return found

    # ---- forgetting

    def delete(
        self, group_id: str, partitions: Collection[TopicPartition], done: Callable[[PartitionErrors], None]
    ) -> None:
        """Delete offsets of topics that the group's members don't read. KafkaError: refused at once."""
        held = _found(self._table.find(group_id))

        def decide() -> None:
            group = _alive(held)
            if group.state is not GroupState.EMPTY and group.protocol_type != CONSUMER_PROTOCOL:
                raise KafkaError(ErrorCode.NON_EMPTY_GROUP)
            kept = {tp for tp in partitions if group.state is not GroupState.EMPTY and _reads(group, tp.topic)}
            gone = [tp for tp in partitions if tp not in kept]

            def settle(error: ErrorCode) -> None:
                done({tp: ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC if tp in kept else error for tp in partitions})

            self._forget(held, gone, settle)

        self._writes.turn(held, decide)

    def delete_groups(self, group_ids: Iterable[str], done: Callable[[dict[str, ErrorCode]], None]) -> None:
        """Delete groups without members, and their offsets. `done` is called once, when all are settled."""
        gathered = _Gathered(dict.fromkeys(group_ids), done)
        for group_id in gathered.names:
            try:
                self._delete_group(group_id, partial(gathered.put, group_id))
            except KafkaError as error:
                gathered.put(group_id, error.code)

    def _delete_group(self, group_id: str, done: Callable[[ErrorCode], None]) -> None:
        held = _found(self._table.find(group_id, nameless=True))

        def decide() -> None:
            group = _alive(held)
            if group.state is not GroupState.EMPTY:
                raise KafkaError(ErrorCode.NON_EMPTY_GROUP)
            group.pending_members.clear()
            self._forget(held, {*held.offsets, *held.unsettled_offsets()}, done)

        self._writes.turn(held, decide)

    def forget_topic(self, topic: str) -> None:
        """Drop the offsets of a deleted topic: a new topic of the same name starts without offsets."""
        self._forget_everywhere(
            lambda held: [tp for tp in {*held.offsets, *held.unsettled_offsets()} if tp.topic == topic]
        )

    def expire(self) -> None:
        """Remove offsets past their retention, and groups that are empty then."""
        now_ms = self._clock.now_ms()

        def choose(held: GroupEntry) -> list[TopicPartition]:
            expired = expired_offsets(held.group, held.offsets, now_ms, self._retention_ms)
            unsettled = held.unsettled_offsets() if expired else ()
            return [tp for tp in expired if tp not in unsettled]

        self._forget_everywhere(choose)

    def _forget_everywhere(self, choose: Callable[[GroupEntry], list[TopicPartition]]) -> None:
        def forget(held: GroupEntry) -> None:
            if not held.is_gone:  # the log has newer offsets by now, if this broker leads it again
                self._forget(held, choose(held), partial(_report, held.group.id))

        everywhere = self._table.all()
        for begin in range(0, len(everywhere), _FORGOTTEN_TOGETHER):
            with self._writes.deferred():
                for held in everywhere[begin : begin + _FORGOTTEN_TOGETHER]:
                    self._writes.turn(held, partial(forget, held))

    def _forget(self, held: GroupEntry, gone: Collection[TopicPartition], done: Callable[[ErrorCode], None]) -> None:
        """During a turn at the group. A group without members and offsets is removed too."""
        group = held.group
        unsettled = held.unsettled_offsets()
        known = [tp for tp in gone if tp in held.offsets or tp in unsettled]
        tombstones: list[StateRecord] = [(OffsetKey(group.id, tp), None) for tp in known]
        generation = group.generation
        goes = _may_go(group) and len(known) == len(unsettled.union(held.offsets))
        if goes and generation > 0:
            tombstones.append((GroupKey(group.id), None))

        def settle(error: ErrorCode) -> None:
            has_offsets = held.offsets or held.in_flight or held.pending
            is_as_it_was = _may_go(group) and group.generation == generation and not has_offsets
            if goes and is_as_it_was and not error:
                group.move_to(GroupState.DEAD, Moment(self._clock.now_ms(), self._clock.monotonic_ms()))
                held.answers.append(partial(self._table.forget, held))
            held.answers.append(partial(done, _ERRORS.get(error, error)))

        if tombstones:
            self._writes.append(held, tombstones, settle, dict.fromkeys(known))
        else:
            settle(ErrorCode.NONE)


class _Gathered:
    """Results of several groups, answered together."""

    def __init__(self, names: Iterable[str], done: Callable[[dict[str, ErrorCode]], None]) -> None:
        self.names = tuple(names)
        self._done = done
        self._lock = threading.Lock()
        self._errors: dict[str, ErrorCode] = {}
        if not self.names:
            done({})

    def put(self, name: str, error: ErrorCode) -> None:
        with self._lock:
            self._errors[name] = error
            complete = len(self._errors) == len(self.names)
        if complete:
            self._done({name: self._errors[name] for name in self.names})


def _found(held: GroupEntry | None) -> GroupEntry:
    if held is None:
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND)
    return held


def _alive(held: GroupEntry) -> Group:
    """The entry's group, unless it was deleted, or moved to another broker, before this turn."""
    if held.group.state is GroupState.DEAD:
        raise KafkaError(ErrorCode.NOT_COORDINATOR if held.is_gone else ErrorCode.GROUP_ID_NOT_FOUND)
    return held.group


def _report(group_id: str, error: ErrorCode) -> None:
    if error:
        log.warning("offset expiration failed, will be retried", group=group_id, error=error.name)


def _may_go(group: Group) -> bool:
    return group.state is GroupState.EMPTY and not group.pending_members


def _reads(group: Group, topic: str) -> bool:
    """Return whether a member subscribes to the topic, as far as can be known."""
    return group.subscribed_topics is None or topic in group.subscribed_topics

"""One replica of a partition on this broker: its role, its log with the high watermark (`committed`), its followers.

Writers hold `lock`: it serialises appends, role changes, truncation and changes of the high watermark or the ISR.
Readers take no lock. No callback runs under the lock, except the report of an I/O error, which never waits; methods
return the effects on other engines.

While it leads, everything below `high_watermark` is on the whole ISR. Consumers never see more. A follower's watermark
comes from its leader.
"""

import threading
from collections.abc import Sequence
from uuid import UUID

from odradek.base.clock import Clock
from odradek.base.errors import ErrorCode, KafkaError
from odradek.broker.log.core.append_result import AppendResult
from odradek.broker.log.core.check_budget import CheckBudget
from odradek.broker.log.core.config import LogConfig
from odradek.broker.log.core.validation import CheckedRecords
from odradek.broker.log.core.verification import VerificationGuard
from odradek.broker.log.files.partition_log import PartitionLog
from odradek.broker.replication.committed_log import CommittedLog
from odradek.broker.replication.core.append_rules import batch_rules, own_rules
from odradek.broker.replication.core.followers import Followers, LagRules
from odradek.broker.replication.core.isr import IsrChange
from odradek.broker.replication.core.outcomes import COMMITTED, MORE_COMMITTED, NO_ADVANCE, Advance, Appended
from odradek.broker.replication.core.replica import RemoteReplica
from odradek.broker.replication.isr_proposals import Fence, IsrProposals
from odradek.model.topology import NO_LEADER, LeaderAndIsr, PartitionDirective, TopicPartition
from odradek.protocol.transaction_markers import EndTransactionMarker

NOT_LEADING = -1


class Partition:
    def __init__(
        self,
        partition: TopicPartition,
        topic_id: UUID,
        log: PartitionLog,
        broker_id: int,
        *,
        clock: Clock,
        lag_rules: LagRules,
        checkpointed_high_watermark: int = 0,
    ) -> None:
        self.topic_partition = partition
        self.topic_id = topic_id
        self.log = log
        self.committed = CommittedLog(log, checkpointed_high_watermark)
        self.leader_id: int = NO_LEADER
        self.leader_epoch = -1
        self.lock = threading.Lock()
        self.partition_epoch = -1
        self.controller_epoch = -1
        self.led_since = NOT_LEADING  # the leader epoch in which this broker began to lead, and leads since
        self.replicas: tuple[int, ...] = ()
        self.followers = Followers(broker_id, lag_rules)
        self._proposals = IsrProposals(partition, broker_id, self.followers)
        self.gone: ErrorCode | None = None  # why it is not served any more
        self.messages_in = self.bytes_in = self.bytes_out = 0  # since the broker began to host it
        self._broker_id = broker_id
        self._clock = clock
        self._rules = batch_rules(log.config)
        self._own_rules = own_rules(self._rules)

    @property
    def is_leader(self) -> bool:
        return self.leader_id == self._broker_id

    @property
    def high_watermark(self) -> int:
        return self.committed.high_watermark

    @property
    def isr(self) -> tuple[int, ...]:
        return self.followers.isr

    @property
    def is_under_replicated(self) -> bool:
        return self.is_leader and len(self.isr) < len(self.replicas)

    @property
    def is_under_min_isr(self) -> bool:
        return self.is_leader and len(self.isr) < self._min_isr()

    # ---- roles

    def become_leader(self, directive: PartitionDirective) -> bool:
        """Lead from the end of the own log in a new epoch. Return whether it didn't lead before."""
        state = directive.state
        with self.lock:
            now_ms = self._clock.monotonic_ms()
            start = self.log.log_end_offset
            self.log.begin_epoch(state.leader_epoch)
            is_new = not self.is_leader
            starts_over = is_new or state.leader_epoch > self.leader_epoch + 1  # another may have led in between
            self.followers.lead(directive, new_leader=starts_over, leader_end=start, now_ms=now_ms)
            self._take(directive)
            self.committed.epoch_start_offset = start
            if is_new:
                self.led_since = state.leader_epoch
                self.log.producers.verifications.clear()
            self._advance_high_watermark()  # before it leads: readers take no lock
            self.leader_id = state.leader
            return is_new

    def become_follower(self, directive: PartitionDirective) -> bool:
        """Follow in a new epoch, with or without a leader. Return whether it led before."""
        with self.lock:
            led = self.is_leader
            self.leader_id = directive.state.leader
            self.led_since = NOT_LEADING
            self.committed.epoch_start_offset = None
            self.followers.leave()
            self._take(directive)
            return led

    def resign(self, why: ErrorCode | None = None) -> bool:
        """Stop leading; returns whether it led. `why`: the partition isn't served any more, and waiting requests get
        this error.
        """
        with self.lock:
            led = self.is_leader
            self.gone = why
            self.leader_id, self.led_since = NO_LEADER, NOT_LEADING
            return led

    def _take(self, directive: PartitionDirective) -> None:
        state = directive.state
        self.leader_epoch = state.leader_epoch
        self.partition_epoch = state.zk_version
        self.controller_epoch = state.controller_epoch
        self.replicas = directive.replicas

    # ---- readers

    def check_epoch(self, current_leader_epoch: int, *, only_leader: bool) -> None:
        if current_leader_epoch >= 0 and current_leader_epoch != self.leader_epoch:
            older = current_leader_epoch < self.leader_epoch
            raise KafkaError(ErrorCode.FENCED_LEADER_EPOCH if older else ErrorCode.UNKNOWN_LEADER_EPOCH)
        if only_leader and self.leader_id != self._broker_id:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)

    def leader_log(self, current_leader_epoch: int = -1) -> PartitionLog:
        """The log, if this broker leads in the epoch that the caller believes in (-1: it doesn't say)."""
        self.check_epoch(current_leader_epoch, only_leader=True)
        return self.log

    def last_stable_offset(self, watermark: int) -> int:
        return self.committed.last_stable_offset(watermark)

    # ---- the leader writes

    def check(self, records: memoryview, *, acks: int, api_version: int, budget: CheckBudget) -> CheckedRecords:
        """Check a producer's batches for the append, or raise KafkaError. Without the lock: long checks must not delay
        other writers of the partition."""
        if self.leader_id != self._broker_id or (
            acks == -1 and len(self.followers.isr) < self.log.config.min_insync_replicas
        ):
            self._check_may_append(acks)
        return self.log.check(records, self._rules, budget, api_version)

    def append(
        self,
        checked: CheckedRecords,
        size: int,
        *,
        acks: int,
        may_begin_anywhere: bool = True,
        guard: VerificationGuard | None = None,
    ) -> Appended:
        """Write checked records of this size. KafkaError has the reason if nothing was written."""
        with self.lock:
            if self.leader_id != self._broker_id or (
                acks == -1 and len(self.followers.isr) < self.log.config.min_insync_replicas
            ):
                self._check_may_append(acks)
            return self._write(checked, size, may_begin_anywhere, guard)

    def append_own(self, records: memoryview, *, acks: int, guard: VerificationGuard | None = None) -> Appended:
        """Append the records of a coordinator of this broker."""
        with self.lock:
            self._check_may_append(acks)
            checked = self.log.check(records, self._own_rules)
            return self._write(checked, len(records), guard=guard)

    def append_markers(self, markers: Sequence[EndTransactionMarker]) -> tuple[Appended, list[ErrorCode]]:
        """End producers' transactions, to be acknowledged by all replicas, or tell why not. The marker that a repeated
        one repeats may not be on all of them yet: it is waited for as well."""
        with self.lock:
            self._check_may_append(-1)
            result, codes = self.log.append_markers(markers, leader_epoch=self.leader_epoch, rules=self._own_rules)
            if len(self.followers.maximal) == 1:
                self._advance_high_watermark()
            is_committed = all(codes) or self.committed.high_watermark >= self.log.log_end_offset
            return Appended(result or self.log.nothing_appended(), COMMITTED if is_committed else self.led_since), codes

    def begin_verification(self, producer_id: int, producer_epoch: int) -> VerificationGuard | None:
        """Return a guard for the first append of a transaction; None if the transaction is open here already."""
        with self.lock:
            self._check_may_append(0)
            return self.log.producers.begin_verification(producer_id, producer_epoch)

    def end_verification(self, producer_id: int, guard: VerificationGuard) -> None:
        with self.lock:
            self.log.producers.verifications.end(producer_id, guard)

    def acknowledgement(self, end_offset: int, awaited_in: int) -> ErrorCode | None:
        """Return whether records up to the offset, written in that leadership, are on all replicas; None: not yet."""
        with self.lock:
            if self.gone is not None:
                return self.gone
            if self.led_since != awaited_in:
                return ErrorCode.NOT_LEADER_OR_FOLLOWER
            if self.committed.high_watermark < end_offset:
                return None
            if len(self.followers.maximal) < self._min_isr():
                return ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
            return ErrorCode.NONE

    def _check_may_append(self, acks: int) -> None:
        if self.leader_id != self._broker_id:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        if acks == -1 and len(self.followers.isr) < self.log.config.min_insync_replicas:
            self._check_in_sync()

    def _check_in_sync(self) -> None:
        isr, least = list(self.isr), self._min_isr()
        if len(isr) < least:
            why = f"The size of the current ISR {isr} is insufficient to satisfy the min.isr requirement of {least}"
            raise KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS, f"{why} for partition {self.topic_partition}")

    def _min_isr(self) -> int:
        return self.followers.min_isr(self.log.config.min_insync_replicas)

    def _write(
        self,
        checked: CheckedRecords,
        size: int,
        may_begin_anywhere: bool = True,
        guard: VerificationGuard | None = None,
    ) -> Appended:
        result = self.log.append_checked(
            checked, leader_epoch=self.leader_epoch, may_begin_anywhere=may_begin_anywhere, guard=guard
        )
        last_offset = result.last_offset
        self.messages_in += last_offset - result.first_offset + 1
        self.bytes_in += size
        followers, committed = self.followers, self.committed
        if not followers.by_id:
            if committed.high_watermark <= last_offset:  # otherwise its producer has sent it again
                committed.set_high_watermark(last_offset + 1)
        elif len(followers.maximal) == 1:  # otherwise it moves when the others have fetched
            self._advance_high_watermark()
        awaited_in = COMMITTED if committed.high_watermark > last_offset else self.led_since
        appended: Appended = tuple.__new__(Appended, (result, awaited_in))  # past the constructor of NamedTuple
        return appended

    # ---- the leader and its followers

    def check_is_replica(self, broker_id: int, current_leader_epoch: int) -> None:
        """Refuse a broker that isn't assigned here. Its metadata may be newer, so the error is retriable."""
        if broker_id not in self.followers.by_id:
            known = current_leader_epoch >= 0
            code = ErrorCode.UNKNOWN_LEADER_EPOCH if known else ErrorCode.NOT_LEADER_OR_FOLLOWER
            raise KafkaError(code, f"Broker {broker_id} is no replica of {self.topic_partition}")

    def record_follower_fetch(
        self, broker_id: int, offset: int, *, log_start_offset: int, leader_epoch: int, broker_epoch: int
    ) -> Advance:
        """The follower has everything before the offset. It counts only in the epoch in which it was read for."""
        with self.lock:
            follower = self.followers.by_id.get(broker_id)
            if follower is None or self.leader_epoch != leader_epoch or self.leader_id != self._broker_id:
                raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
            before = follower.log_end_offset
            now_ms = self._clock.monotonic_ms()
            leader_end = self.log.log_end_offset
            follower.record_fetch(offset, log_start_offset, leader_end=leader_end, now_ms=now_ms)
            follower.broker_epoch = broker_epoch
            change = None if broker_id in self.followers.isr else self._maybe_expand(follower)
            committed = offset != before and self._advance_high_watermark()
        if change is not None:
            return Advance(committed, change)
        return MORE_COMMITTED if committed else NO_ADVANCE

    def record_idle_fetch(
        self, broker_id: int, offset: int, *, log_start_offset: int, leader_epoch: int, broker_epoch: int, now_ms: int
    ) -> bool:
        """Record the fetch of a follower in the ISR that had the whole log before. False: the fetch is to be read."""
        with self.lock:
            follower = self.followers.by_id.get(broker_id)
            if follower is None or self.leader_epoch != leader_epoch or self.leader_id != self._broker_id:
                return False
            if self.log.log_end_offset != offset or not follower.is_at(offset, log_start_offset):
                return False
            follower.fetched_nothing_new(now_ms, broker_epoch)
            return broker_id in self.followers.isr

    def check_followers(self) -> Advance:
        """Periodic check: propose to remove lagging followers from the ISR, and stop waiting for followers that don't
        join.
        """
        with self.lock:
            if not self.is_leader:
                return NO_ADVANCE
            end, now_ms = self.log.log_end_offset, self._clock.monotonic_ms()
            change = self._proposals.shrink(self._fence, leader_end=end, now_ms=now_ms)
            return Advance(self._advance_high_watermark(), change)

    def isr_answered(self, change: IsrChange, answer: LeaderAndIsr | ErrorCode) -> Advance:
        """Take the result of a proposed ISR change. One that may succeed later is to be asked for again."""
        with self.lock:
            result = self._proposals.answered(change, answer, self._fence)
            if result is None:
                return NO_ADVANCE
            if isinstance(result, IsrChange):
                return Advance(change=result)
            self.partition_epoch = result.zk_version
            return Advance(self._advance_high_watermark())

    def low_watermark(self) -> int:
        """The least log start of all live replicas."""
        with self.lock:
            if not self.is_leader:
                raise KafkaError(self.gone or ErrorCode.NOT_LEADER_OR_FOLLOWER)
            return self.followers.low_watermark(self.log.log_start_offset)

    def _maybe_expand(self, follower: RemoteReplica) -> IsrChange | None:
        watermark, start = self.committed.high_watermark, self.committed.epoch_start_offset
        assert start is not None
        return self._proposals.expand(follower, self._fence, high_watermark=watermark, epoch_start=start)

    @property
    def _fence(self) -> Fence:
        return Fence(self.topic_id, self.leader_epoch, self.partition_epoch, self.controller_epoch)

    def _advance_high_watermark(self) -> bool:
        """Advance the high watermark. Below the minimal ISR nothing more is committed: a lone replica may lose its
        tail, which no client has seen."""
        followers, committed = self.followers, self.committed
        end = self.log.log_end_offset
        if followers.by_id:
            if len(followers.isr) < self._min_isr():
                return False
            end = followers.high_watermark(committed.high_watermark, end, self._clock.monotonic_ms())
        if end <= committed.high_watermark:
            return False
        committed.set_high_watermark(end)
        return True

    # ---- the follower writes what it fetched

    def append_fetched(
        self, records: memoryview, *, leader_epoch: int, high_watermark: int, log_start_offset: int
    ) -> AppendResult:
        """Write batches of the leader of this epoch; take over its watermark and log start up to the own log end."""
        with self.lock:
            self._check_follows(leader_epoch)
            return self.committed.append_fetched(records, high_watermark, log_start_offset)

    def truncate_to(self, offset: int, *, leader_epoch: int) -> None:
        """Drop records that the leader of this epoch doesn't have."""
        with self.lock:
            self._check_follows(leader_epoch)
            self.committed.truncate_to(offset)

    def start_over_at(self, offset: int, *, leader_epoch: int) -> None:
        """Drop everything and continue at the offset: the leader's log begins after the end of this one."""
        with self.lock:
            self._check_follows(leader_epoch)
            self.committed.start_over_at(offset)

    def _check_follows(self, leader_epoch: int) -> None:
        if leader_epoch != self.leader_epoch or self.leader_id == self._broker_id or self.gone is not None:
            raise KafkaError(ErrorCode.FENCED_LEADER_EPOCH)

    # ---- configuration and deletion

    def update_config(self, config: LogConfig) -> bool:
        """Apply a configuration. Return whether more is committed: min.insync.replicas may be lower now."""
        with self.lock:
            self.log.update_config(config)
            self._rules = batch_rules(config)
            self._own_rules = own_rules(self._rules)
            return self.is_leader and self._advance_high_watermark()

    def delete_records_before(self, offset: int) -> int:
        """Advance the log start to the offset (-1: to the high watermark), and return the new start."""
        with self.lock:
            self.check_epoch(-1, only_leader=True)
            return self.committed.delete_before(offset)

    def take_log(self, moved: PartitionLog) -> None:
        """Continue with the copy of the log in another directory. The caller holds the lock."""
        self.log = self.committed.log = moved

"""Bugs on purpose, each one that a replicated log has had: the simulator must find them all."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from odradek.base.errors import ErrorCode
from odradek.broker.api.control_gate import ControlGate
from odradek.broker.controller import request_answers
from odradek.broker.controller.core import alter_partition as isr_approval
from odradek.broker.controller.core import election, reassignment_steps, topic_deletion
from odradek.broker.coordinator.groups.group_replay import GroupReplay
from odradek.broker.log.core.key_map import KeyMap
from odradek.broker.log.core.producer_state import ProducerStates, Staged
from odradek.broker.log.files import partition_log
from odradek.broker.log.files.leader_epochs import LeaderEpochCache
from odradek.broker.log.files.segment import Segment
from odradek.broker.replication import replica_manager
from odradek.broker.replication.core import followers
from odradek.broker.replication.core.outcomes import COMMITTED, NO_ADVANCE, Appended
from odradek.broker.replication.core.refused_batches import RefusedBatches
from odradek.broker.replication.follower import fetch_answers
from odradek.broker.replication.leader import fetch_reader as fetching
from odradek.broker.replication.partition import Partition
from odradek.broker.replication.partition_table import PartitionTable
from odradek.broker.replication.replica_manager import ReplicaManager

from .control_mutants import CONTROL_MUTANTS
from .transaction_mutants import TRANSACTION_MUTANTS

Plant = Callable[[pytest.MonkeyPatch], None]
MUTANTS: dict[str, Plant] = {**TRANSACTION_MUTANTS, **CONTROL_MUTANTS}


def mutant(name: str) -> Callable[[Plant], Plant]:
    def declare(plant: Plant) -> Plant:
        MUTANTS[name] = plant
        return plant

    return declare


@mutant("KIP-101: roles change, logs are cut at the high watermark")
def truncate_by_high_watermark(patch: pytest.MonkeyPatch) -> None:
    def truncating(change: Callable[..., bool]) -> Callable[..., bool]:
        def changed(self: Any, directive: Any) -> bool:
            self.log.truncate_to(self.high_watermark)
            return change(self, directive)

        return changed

    patch.setattr(Partition, "become_leader", truncating(Partition.become_leader))
    patch.setattr(Partition, "become_follower", truncating(Partition.become_follower))


@mutant("acknowledged before it is replicated")
def ack_before_replication(patch: pytest.MonkeyPatch) -> None:
    write = Partition._write

    def acknowledging(self: Any, *args: Any) -> Appended:
        return write(self, *args)._replace(awaited_in=COMMITTED)

    patch.setattr(Partition, "_write", acknowledging)


@mutant("the high watermark is the end of the leader's log")
def watermark_of_one(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(followers, "high_watermark", lambda current, leader_end, *_, **__: leader_end)


@mutant("a batch that is sent again is written again")
def write_duplicates(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ProducerStates, "find_duplicate", lambda self, info: None)
    patch.setattr(ProducerStates, "stage", lambda self, *args, **options: Staged({}, []))


@mutant("a producer without state may begin at any sequence")
def any_first_sequence(patch: pytest.MonkeyPatch) -> None:
    """As Apache Kafka has it. Both guards are gone: either one alone still holds."""
    patch.setattr(ProducerStates, "may_begin_at", lambda self, pid, *_: pid not in self.entries)
    patch.setattr(RefusedBatches, "doubt", lambda self, *_: None)
    no_memory_of_refused_batches(patch)


@mutant("a batch behind a refused one is out of order")
def no_memory_of_refused_batches(patch: pytest.MonkeyPatch) -> None:
    """Its producer renumbers what it has not seen acknowledged, stored or not."""
    patch.setattr(RefusedBatches, "check", lambda *_: None)
    patch.setattr(RefusedBatches, "explain", lambda self, tp, records, error, *_: error)


@mutant("a gap gets no benefit of the doubt after leadership moved")
def no_benefit_of_the_doubt(patch: pytest.MonkeyPatch) -> None:
    explain = RefusedBatches.explain
    patch.setattr(RefusedBatches, "explain", lambda self, tp, records, error, *_: explain(self, tp, records, error))


@mutant("the ISR is joined by whoever fetches, with an empty log too")
def anybody_joins(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(followers, "may_join", lambda *_, **__: True)


@mutant("KIP-497: only the confirmed ISR is waited for")
def pending_change_ignored(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(followers, "maximal", lambda isr, proposed=(): frozenset(isr))
    patch.setattr(followers.Followers, "high_watermark", _without_joining(followers.Followers.high_watermark))


def _without_joining(real: Callable[..., int]) -> Callable[..., int]:
    def reached(self: Any, current: int, leader_end: int, now_ms: int) -> int:
        ends = [f.log_end_offset for f in self.by_id.values() if f.broker_id in self.isr]
        return max(current, min([leader_end, *ends]))

    return reached


@mutant("KIP-497: a change of the ISR is not fenced by the partition's epoch")
def isr_change_not_fenced(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(isr_approval, "_fenced", lambda current, wanted: None)
    patch.setattr(isr_approval, "_refused", lambda *_: None)


@mutant("a new leader has the epoch of the old one")
def epoch_not_raised(patch: pytest.MonkeyPatch) -> None:
    next_state = election._next_state

    def kept(context: Any, state: Any, leader: int, isr: Any) -> Any:
        return replace(next_state(context, state, leader, isr), leader_epoch=state.leader_epoch)

    patch.setattr(election, "_next_state", kept)


@mutant("anybody alive is elected")
def unclean_elections(patch: pytest.MonkeyPatch) -> None:
    def elect(context: Any, tp: Any, state: Any, *, unclean: bool) -> Any:
        live = context.online_replicas(tp)
        if not live:
            return None
        return election.Elected(election._next_state(context, state, live[-1], (live[-1],)), live)

    patch.setattr(election, "_elect_offline", elect)


@mutant("KAFKA-7164: a follower goes on where it is, whatever the leader has")
def no_truncation(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(fetching, "_divergence", lambda log, target: None)


@mutant("KIP-279: a follower cuts where the leader's epoch ends, not where its own does")
def truncate_to_leaders_end(patch: pytest.MonkeyPatch) -> None:
    def cut(leader: tuple[int, int], own: tuple[int, int], log_end_offset: int) -> Any:
        return fetch_answers.Cut(log_end_offset)

    patch.setattr(fetch_answers, "cut_by_epoch", cut)


@mutant("KIP-279: a leader answers for the epoch it was asked for, known or not")
def epochs_not_remembered(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(LeaderEpochCache, "end_offset_for", lambda self, epoch, end: (epoch, end))


@mutant("KIP-380, KIP-570, KAFKA-13790, zombie controllers: whatever anybody says is obeyed")
def open_gate(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ControlGate, "_admit", lambda self, request, correlation_id: ErrorCode.NONE)
    patch.setattr(ReplicaManager, "_check_controller", lambda *_: None)
    patch.setattr(replica_manager, "refuse_directive", lambda *_: None)
    patch.setattr(replica_manager, "refuse_stop", lambda *_: None)


@mutant("what a controller said before is obeyed after what it said since")
def late_requests_obeyed(patch: pytest.MonkeyPatch) -> None:
    admit = ControlGate._admit
    patch.setattr(ControlGate, "_admit", lambda self, request, correlation_id: admit(self, request, 1 << 31))


@mutant("a leader that resigned still acknowledges")
def acknowledging_after_resignation(patch: pytest.MonkeyPatch) -> None:
    def acknowledgement(self: Any, end_offset: int, awaited_in: int) -> ErrorCode | None:
        reached = self.log.log_end_offset if self.led_since != awaited_in else self.high_watermark
        return ErrorCode.NONE if reached >= end_offset else None

    patch.setattr(Partition, "acknowledgement", acknowledgement)


@mutant("the high watermark of a new leader is the end of its log")
def new_leader_commits_its_log(patch: pytest.MonkeyPatch) -> None:
    become_leader = Partition.become_leader

    def committing(self: Any, directive: Any) -> bool:
        answer = become_leader(self, directive)
        self.committed.high_watermark = self.log.log_end_offset
        return answer

    patch.setattr(Partition, "become_leader", committing)


# ---- groups, deletion, compaction, directories


@mutant("offsets are acknowledged when the coordinator alone has them")
def commits_not_replicated(patch: pytest.MonkeyPatch) -> None:
    append_own = PartitionTable.append_own

    def early(self: Any, tp: Any, records: Any, *, timeout_ms: int, done: Any, acks: int = -1) -> None:
        append_own(self, tp, records, timeout_ms=timeout_ms, done=done, acks=1)

    patch.setattr(PartitionTable, "append_own", early)


@mutant("a coordinator that takes over begins with nothing")
def groups_not_replayed(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(GroupReplay, "groups", lambda self, now: [])


@mutant("an answer to a former registration of a broker ends the deletion that was begun for the present one")
def late_answer_ends_deletion(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(request_answers, "ErrorCode", _WithoutStaleEpoch())


class _WithoutStaleEpoch:
    """The error codes, but for the one that the rule is about."""

    STALE_BROKER_EPOCH = None

    def __call__(self, number: int) -> ErrorCode:
        return ErrorCode(number)

    def __getattr__(self, name: str) -> ErrorCode:
        return ErrorCode[name]


@mutant("a topic is deleted without waiting for the brokers that are away")
def deletion_waits_for_nobody(patch: pytest.MonkeyPatch) -> None:
    def forget_all(context: Any) -> Any:
        for topic in sorted(context.to_delete & context.topics.keys()):
            yield topic_deletion.DeleteTopicNodes(topic)
            context.forget_topic(topic)

    patch.setattr(topic_deletion, "resume_deletions", forget_all)


@mutant("compaction removes the last record of a key")
def last_of_key_is_removed(patch: pytest.MonkeyPatch) -> None:
    put = KeyMap.put
    patch.setattr(KeyMap, "put", lambda self, key, offset: put(self, key, offset + 1))


@mutant("retention deletes what is not committed")
def retention_beyond_the_watermark(patch: pytest.MonkeyPatch) -> None:
    def everything(segments: Any, *_: Any, **__: Any) -> int:
        return len(segments) - 1

    patch.setattr(partition_log, "expired_count", everything)


@mutant("replicas of a failed directory are served on")
def failed_directory_ignored(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ReplicaManager, "take_offline", lambda self, tps: None)


@mutant("KAFKA-2729: a leader whose change of the ISR was refused never asks again")
def refused_change_stays(patch: pytest.MonkeyPatch) -> None:
    isr_answered = Partition.isr_answered

    def deaf(self: Any, change: Any, answer: Any) -> Any:
        return isr_answered(self, change, answer) if not isinstance(answer, ErrorCode) else NO_ADVANCE

    def only_when_new(change: Callable[..., bool]) -> Callable[..., bool]:
        def changed(self: Any, directive: Any) -> bool:
            pending = self.followers.pending
            done = change(self, directive)
            self.followers.pending = pending or self.followers.pending
            return done

        return changed

    patch.setattr(Partition, "isr_answered", deaf)
    patch.setattr(Partition, "become_leader", only_when_new(Partition.become_leader))


@mutant("a replica that was moved while its broker was away stays in its role")
def strays_stay(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ReplicaManager, "set_strays_aside", lambda self: None)


@mutant("a reassignment ends before the new replicas are in sync")
def reassignment_without_waiting(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(reassignment_steps, "set", _SetOfAll, raising=False)


class _SetOfAll(set[int]):
    def issuperset(self, other: object) -> bool:
        return True


# ---- commits and recovery


@mutant("KIP-966: the high watermark advances below min.insync.replicas")
def lone_replica_commits(patch: pytest.MonkeyPatch) -> None:
    advance = Partition._advance_high_watermark

    def alone(self: Any) -> bool:
        with pytest.MonkeyPatch.context() as within:
            within.setattr(Partition, "_min_isr", lambda self: 1)
            return advance(self)

    patch.setattr(Partition, "_advance_high_watermark", alone)


@mutant("KAFKA-3919: a torn tail stays in the log after a power failure")
def torn_tail_stays(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Segment, "cut_back", lambda self, size, next_offset: None)

"""Positions of groups in transactions: verified, checked after the verification, pending until the marker."""

from collections.abc import Callable, Iterable
from dataclasses import replace

import pytest
from slow_stage import ORDERS, SlowLog, Stage

from odradek.base.errors import ErrorCode
from odradek.broker.coordinator.groups.core.group_records import (
    CommittedOffset,
    OffsetKey,
    encode_key,
    encode_offset,
)
from odradek.broker.coordinator.groups.core.member_checks import Committer
from odradek.broker.coordinator.groups.group_offsets import UNSTABLE
from odradek.broker.coordinator.groups.group_replay import GroupReplay
from odradek.broker.coordinator.state.core.state_batch import TransactionalProducer, state_batch
from odradek.broker.coordinator.state.state_log import EncodedRecord
from odradek.broker.log.core.verification import VERIFICATION_OFF, VerificationGuard
from odradek.protocol.compression import Codec
from odradek.protocol.record_batch import read_header

PRODUCER = TransactionalProducer("payments", 7, 0)
Verified = Callable[[ErrorCode, VerificationGuard | None], None]


class VerifyingLog(SlowLog):
    """The coordinator of the transaction is played by the test."""

    def __init__(self) -> None:
        super().__init__()
        self.questions: list[Verified] = []
        self.guards: list[VerificationGuard | None] = []
        self.abandoned = 0

    def verify(self, partition: int, producer: TransactionalProducer, done: Verified, *, add: bool) -> None:
        self.questions.append(done)

    def append(
        self,
        partition: int,
        records: Iterable[EncodedRecord],
        done: Callable[[ErrorCode], None],
        producer: TransactionalProducer | None = None,
        guard: VerificationGuard | None = None,
    ) -> None:
        self.guards.append(guard)
        super().append(partition, records, done)

    def abandon(self, partition: int, producer: TransactionalProducer, guard: VerificationGuard | None) -> None:
        self.abandoned += 1


@pytest.fixture
def log() -> VerifyingLog:
    return VerifyingLog()


@pytest.fixture
def stage(log: VerifyingLog, monkeypatch: pytest.MonkeyPatch) -> Stage:
    monkeypatch.setattr("slow_stage.SlowLog", lambda: log)
    made = Stage()
    made.lead(0)
    made.settle_tenures()
    return made


def commit(
    stage: Stage,
    member: str = "",
    generation: int = -1,
    offset: int = 5,
    producer: TransactionalProducer = PRODUCER,
) -> list[ErrorCode]:
    answers: list[ErrorCode] = []
    commits = {ORDERS: CommittedOffset(offset, -1, "", stage.clock.now_ms())}
    stage.groups.offsets.commit_in_transaction(
        "g",
        Committer(member, None, generation),
        producer,
        commits,
        lambda errors: answers.append(errors[ORDERS]),
        add=False,
    )
    return answers


def end(stage: Stage, epoch: int, *, committed: bool) -> None:
    """The marker of the producer's transaction in that epoch is there."""
    stage.groups.offsets.end_transaction(0, PRODUCER.producer_id, epoch, committed=committed)


def test_offsets_of_a_transaction_are_verified_first_15449(stage: Stage, log: VerifyingLog) -> None:
    answers = commit(stage)
    assert (log.written, answers) == ([], [])
    log.questions.pop()(ErrorCode.TRANSACTION_ABORTABLE, None)
    assert (log.written, answers) == ([], [ErrorCode.TRANSACTION_ABORTABLE])
    again = commit(stage)
    log.at_once = True
    log.questions.pop()(ErrorCode.NONE, VERIFICATION_OFF)
    assert (len(log.written), log.guards, again) == (1, [VERIFICATION_OFF], [ErrorCode.NONE])


def test_a_member_that_is_fenced_during_the_verification_commits_nothing_15784(stage: Stage, log: VerifyingLog) -> None:
    """Checked after the answer, at one moment with the write; the guard is given back."""
    log.at_once = True
    answered = stage.join("g", "m-1")
    stage.passes(3_000)
    (joined,) = answered
    stage.sync("g", "m-1", joined.generation)
    answers = commit(stage, "m-1", joined.generation)
    stage.passes(60_000)  # its session is over, the group is empty
    log.questions.pop()(ErrorCode.NONE, VERIFICATION_OFF)
    assert answers in ([ErrorCode.UNKNOWN_MEMBER_ID], [ErrorCode.ILLEGAL_GENERATION])
    assert (log.guards.count(VERIFICATION_OFF), log.abandoned) == (0, 1)


@pytest.mark.parametrize(("committed", "found"), [(True, 5), (False, 3)])
def test_offsets_count_from_the_marker_on(stage: Stage, log: VerifyingLog, committed: bool, found: int) -> None:
    log.at_once = True
    stage.commit("g", 3)
    commit(stage)
    log.questions.pop()(ErrorCode.NONE, VERIFICATION_OFF)
    assert stage.committed("g") == 3
    assert stage.groups.offsets.committed("g", [ORDERS], stable=True)[ORDERS] is UNSTABLE
    end(stage, PRODUCER.producer_epoch, committed=committed)
    assert stage.committed("g") == found


@pytest.mark.parametrize("committed", [True, False])
def test_a_repeated_marker_does_not_end_the_next_transaction(stage: Stage, log: VerifyingLog, committed: bool) -> None:
    """Version 2: the marker has the epoch of the next transaction, whose first offsets are on their way to the log."""
    log.at_once = True
    stage.commit("g", 3)
    log.at_once = False
    commit(stage, producer=replace(PRODUCER, producer_epoch=1))
    log.questions.pop()(ErrorCode.NONE, VERIFICATION_OFF)
    end(stage, 0, committed=committed)
    log.settle()
    assert stage.committed("g") == 3
    end(stage, 1, committed=True)
    assert stage.committed("g") == 5


class MovedLog(VerifyingLog):
    """A log in which a former coordinator left offsets of an open transaction."""

    def __init__(self) -> None:
        super().__init__()
        self.before_taking_up: Callable[[], None] = lambda: None

    def is_new(self, partition: int) -> bool:
        return False

    def replay(self, partition: int) -> GroupReplay:
        record = encode_key(OffsetKey("g", ORDERS)), encode_offset(CommittedOffset(5, -1, "", 0))
        raw = bytes(state_batch([record], 0, Codec.NONE, PRODUCER))
        replayed = GroupReplay()
        replayed.apply(raw, 0, read_header(raw))
        return replayed

    def when_committed(self, partition: int, done: Callable[[ErrorCode], None]) -> None:
        self.before_taking_up()
        done(ErrorCode.NONE)


@pytest.mark.parametrize(("committed", "found"), [(True, 5), (False, None)])
def test_a_marker_that_comes_while_its_group_is_loaded_counts(
    monkeypatch: pytest.MonkeyPatch, committed: bool, found: int | None
) -> None:
    """It is behind what was replayed, and on all replicas before the group is taken up."""
    log = MovedLog()
    monkeypatch.setattr("slow_stage.SlowLog", lambda: log)
    stage = Stage()
    log.before_taking_up = lambda: end(stage, PRODUCER.producer_epoch, committed=committed)
    stage.lead(0)
    stage.settle_tenures()
    position = stage.groups.offsets.committed("g", [ORDERS], stable=True)[ORDERS]
    assert (None if position is None else position.offset) == found
    stage.groups.stop()


def test_groups_of_a_leadership_that_ends_while_they_are_loaded_wait_for_no_marker(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    log = MovedLog()
    monkeypatch.setattr("slow_stage.SlowLog", lambda: log)
    stage = Stage()
    log.before_taking_up = lambda: stage.resign(1)
    stage.lead(0)
    stage.settle_tenures()
    assert stage.groups.offsets._open == {}
    stage.groups.stop()

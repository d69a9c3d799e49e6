"""Transactional batches enter a partition only inside of a transaction that its coordinator knows (KIP-890)."""

from collections.abc import Iterator
from pathlib import Path
from traceback import walk_stack
from typing import Any

import pytest
from partition_stage import TransactionStage, code_of

from odradek.base.errors import ErrorCode
from odradek.broker.log.core.verification import VERIFICATION_OFF, VerificationGuard
from odradek.broker.replication.core.verification_errors import produce_error
from odradek.broker.replication.leader.transactional_appends import WAITING_MAX, TransactionalProduce


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[TransactionStage]:
    stage = TransactionStage(tmp_path)
    yield stage
    stage.close()


def test_the_coordinator_is_asked_once_for_each_transaction(stage: TransactionStage) -> None:
    assert code_of(stage.send("a", 0)) is ErrorCode.NONE
    assert code_of(stage.send("b", 1)) is ErrorCode.NONE
    (asked,) = stage.coordinator.asked
    assert (asked.transactional_id, asked.producer_id, asked.producer_epoch) == ("payments", 1, 0)
    stage.end()
    assert code_of(stage.send("c", 2)) is ErrorCode.NONE
    assert len(stage.coordinator.asked) == 2


def test_kafka_14402_12671_a_late_batch_opens_no_transaction(stage: TransactionStage) -> None:
    stage.coordinator.waits = True
    answer = stage.send("late", 0)
    stage.coordinator.asked[0].answer(ErrorCode.TRANSACTION_ABORTABLE)
    assert code_of(answer) is ErrorCode.TRANSACTION_ABORTABLE
    assert stage.partition.log.log_end_offset == 0
    assert not stage.partition.log.producers.verifications


def test_kafka_14884_a_marker_between_verification_and_append_refuses_the_append(stage: TransactionStage) -> None:
    stage.coordinator.waits = True
    answer = stage.send("late", 0)
    stage.end(committed=False)
    stage.coordinator.asked[0].answer()
    assert code_of(answer) is ErrorCode.INVALID_TXN_STATE
    stage.replicate()
    assert stage.stable == 1, "nothing is open"


def test_kafka_14884_so_does_a_repeated_marker_that_is_not_written(stage: TransactionStage) -> None:
    stage.end(committed=False)
    stage.coordinator.waits = True
    answer = stage.send("late", 0)
    end = stage.partition.log.log_end_offset
    stage.end(committed=False)
    assert stage.partition.log.log_end_offset == end
    stage.coordinator.asked[0].answer()
    assert code_of(answer) is ErrorCode.INVALID_TXN_STATE


def test_a_stale_answer_does_not_serve_the_next_verification(stage: TransactionStage) -> None:
    """ABA: verified, aborted, and a second verification under way when the first one's answer is used."""
    partition = stage.partition
    first = partition.begin_verification(1, 0)
    stage.end(committed=False)
    second = partition.begin_verification(1, 0)
    assert first is not None
    assert second is not None
    assert first is not second


def test_kafka_14904_nothing_out_of_order_is_taken_behind_a_retriable_refusal(stage: TransactionStage) -> None:
    stage.coordinator.waits = True
    first, second = stage.send("a", 0), stage.send("b", 1)
    assert (code_of(first), code_of(second)) == (None, None), "the second one waits behind the first"
    stage.coordinator.asked[0].answer(ErrorCode.CONCURRENT_TRANSACTIONS)
    assert code_of(first) is ErrorCode.NOT_ENOUGH_REPLICAS
    stage.coordinator.asked[1].answer()
    assert code_of(second) is ErrorCode.NOT_ENOUGH_REPLICAS
    again = stage.send("a", 0)
    stage.coordinator.asked[2].answer()
    assert (code_of(again), code_of(stage.send("b", 1))) == (ErrorCode.NONE, ErrorCode.NONE)


def test_requests_behind_a_verification_keep_their_order(stage: TransactionStage) -> None:
    stage.coordinator.waits = True
    answers = [stage.send(str(sequence), sequence) for sequence in range(5)]
    assert len(stage.coordinator.asked) == 1
    stage.coordinator.asked[0].answer()
    assert [code_of(answer) for answer in answers] == [ErrorCode.NONE] * 5
    assert len(stage.coordinator.asked) == 1


def test_requests_that_wait_are_bounded(stage: TransactionStage) -> None:
    stage.coordinator.waits = True
    for sequence in range(WAITING_MAX + 1):
        assert code_of(stage.send("x", sequence)) is None
    assert code_of(stage.send("x", WAITING_MAX + 1)) is ErrorCode.NOT_ENOUGH_REPLICAS


def test_requests_behind_a_verification_resume_one_after_the_other(
    stage: TransactionStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A coordinator on this broker answers at once. If each resumed within the one before, the stack would overflow,
    and the producer would wait for ever."""
    depths: list[int] = []

    def refuse(*asked: Any, add: bool) -> None:
        depths.append(len(list(walk_stack(None))))
        asked[-1]({stage.partition.topic_partition: ErrorCode.TRANSACTION_ABORTABLE})

    stage.coordinator.waits = True
    answers = [stage.send("x", 0) for _ in range(WAITING_MAX + 1)]
    with monkeypatch.context() as here:
        here.setattr(stage.coordinator, "verify", refuse)
        stage.coordinator.asked[0].answer(ErrorCode.TRANSACTION_ABORTABLE)
    assert [code_of(answer) for answer in answers] == [ErrorCode.TRANSACTION_ABORTABLE] * (WAITING_MAX + 1)
    assert (len(depths), len(set(depths))) == (WAITING_MAX, 1)
    stage.coordinator.waits = False
    assert code_of(stage.send("a", 0)) is ErrorCode.NONE


def test_a_verifier_that_answers_and_fails_answers_once(
    stage: TransactionStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*asked: Any, add: bool) -> None:
        asked[-1]({stage.partition.topic_partition: ErrorCode.NONE})
        raise RuntimeError("broken")

    with monkeypatch.context() as here:
        here.setattr(stage.coordinator, "verify", broken)
        assert code_of(stage.send("a", 0)) is ErrorCode.NONE
    assert code_of(stage.send("b", 1)) is ErrorCode.NONE


def test_a_verifier_that_fails_leaves_nobody_waiting(stage: TransactionStage, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("broken")

    monkeypatch.setattr(stage.coordinator, "verify", broken)
    assert code_of(stage.send("a", 0)) is ErrorCode.NOT_ENOUGH_REPLICAS
    monkeypatch.undo()
    assert code_of(stage.send("a", 0)) is ErrorCode.NONE


def test_kafka_14916_a_batch_outside_of_a_transaction_needs_no_coordinator(stage: TransactionStage) -> None:
    """Its request may have a transactional batch for another partition."""
    assert code_of(stage.send("plain", 0, transactional=False, in_transaction=True)) is ErrorCode.NONE
    assert not stage.coordinator.asked
    stage.replicate()
    assert stage.stable == 1


def test_verification_can_be_switched_off(stage: TransactionStage) -> None:
    stage.replicas.transactions.is_enabled = False
    assert code_of(stage.send("a", 0)) is ErrorCode.NONE
    assert not stage.coordinator.asked


def test_a_batch_outside_of_an_open_transaction_is_refused(stage: TransactionStage) -> None:
    stage.send("a", 0)
    assert code_of(stage.send("b", 1, transactional=False)) is ErrorCode.INVALID_TXN_STATE


def test_a_new_leadership_trusts_no_earlier_verification(stage: TransactionStage) -> None:
    stage.coordinator.waits = True
    answer = stage.send("a", 0)
    stage.become(1, 1)
    stage.become(0, 2)
    stage.coordinator.asked[0].answer()
    assert code_of(answer) is ErrorCode.INVALID_TXN_STATE


def test_coordinators_append_with_a_guard_of_their_own(stage: TransactionStage) -> None:
    transactions, partition = stage.replicas.transactions, stage.partition
    found: list[tuple[ErrorCode, VerificationGuard | None]] = []
    producer = TransactionalProduce("payments", 1, 0)
    transactions.verify_own(partition, producer, lambda code, guard: found.append((code, guard)))
    code, guard = found[-1]
    assert code is ErrorCode.NONE
    assert guard is not None
    stage.send("a", 0)
    transactions.verify_own(partition, producer, lambda code, guard: found.append((code, guard)))
    assert found[-1] == (ErrorCode.NONE, None), "the transaction is open"
    transactions.is_enabled = False
    transactions.verify_own(partition, producer, lambda code, guard: found.append((code, guard)))
    assert found[-1] == (ErrorCode.NONE, VERIFICATION_OFF)


def test_partitions_are_added_whether_or_not_verification_is_enabled(stage: TransactionStage) -> None:
    stage.replicas.transactions.is_enabled = False
    stage.send("a", 0, version=11)
    assert not stage.coordinator.asked
    stage.end()
    stage.send("b", 0, epoch=1, version=12)
    stage.send("c", 1, epoch=1, version=12)
    assert [question.add for question in stage.coordinator.asked] == [True]


def test_the_marker_of_the_former_transaction_leaves_the_next_ones_verification_alone(stage: TransactionStage) -> None:
    """In version 2 the producer goes on as soon as its end is decided."""
    stage.send("a", 0, version=12)
    stage.coordinator.waits = True
    delayed, following = stage.send("late", 1, version=12), stage.send("b", 0, epoch=1, version=12)
    assert code_of(delayed) is ErrorCode.NONE
    assert code_of(following) is None
    stage.end(epoch=1, bumps_epoch=True)
    stage.coordinator.asked[-1].answer()
    assert code_of(following) is ErrorCode.NONE


def test_a_late_marker_does_not_end_the_next_transaction_1228(stage: TransactionStage) -> None:
    stage.send("a", 0, version=12)
    stage.end(epoch=1, bumps_epoch=True)
    stage.send("b", 0, epoch=1, version=12)
    open_since = stage.partition.log.log_end_offset - 1
    assert stage.end(epoch=1, bumps_epoch=True) == [ErrorCode.INVALID_PRODUCER_EPOCH]
    stage.replicate()
    assert stage.stable == open_since
    stage.end(epoch=2, bumps_epoch=True, coordinator_epoch=1)
    stage.replicate()
    assert stage.stable == stage.partition.log.log_end_offset
    end = stage.partition.log.log_end_offset
    stage.end(epoch=2, bumps_epoch=True, coordinator_epoch=1)
    assert stage.partition.log.log_end_offset == end, "repeated, and not written again (19999)"


@pytest.mark.parametrize(
    ("code", "version", "answered"),
    [
        (ErrorCode.CONCURRENT_TRANSACTIONS, 11, ErrorCode.NOT_ENOUGH_REPLICAS),
        (ErrorCode.CONCURRENT_TRANSACTIONS, 12, ErrorCode.CONCURRENT_TRANSACTIONS),
        (ErrorCode.NOT_COORDINATOR, 12, ErrorCode.NOT_ENOUGH_REPLICAS),
        (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, 11, ErrorCode.NOT_ENOUGH_REPLICAS),
        (ErrorCode.COORDINATOR_NOT_AVAILABLE, 3, ErrorCode.NOT_ENOUGH_REPLICAS),
        (ErrorCode.NOT_COORDINATOR, 11, ErrorCode.NOT_ENOUGH_REPLICAS),
        (ErrorCode.NETWORK_EXCEPTION, 11, ErrorCode.NOT_ENOUGH_REPLICAS),
        (ErrorCode.PRODUCER_FENCED, 11, ErrorCode.INVALID_PRODUCER_EPOCH),
        (ErrorCode.INVALID_PRODUCER_ID_MAPPING, 11, ErrorCode.INVALID_PRODUCER_ID_MAPPING),
        (ErrorCode.TRANSACTION_ABORTABLE, 11, ErrorCode.TRANSACTION_ABORTABLE),
        (ErrorCode.TRANSACTION_ABORTABLE, 10, ErrorCode.INVALID_TXN_STATE),
    ],
)
def test_errors_of_the_coordinator_as_producers_know_them(code: ErrorCode, version: int, answered: ErrorCode) -> None:
    error = produce_error(code, version)
    assert error is not None
    assert error.code is answered


def test_a_batch_within_an_open_transaction_is_not_asked_about_and_does_not_overtake(stage: TransactionStage) -> None:
    stage.send("a", 0)
    assert len(stage.coordinator.asked) == 1
    assert code_of(stage.send("b", 1)) is ErrorCode.NONE
    assert len(stage.coordinator.asked) == 1
    stage.end()
    stage.coordinator.waits = True
    waiting, behind = stage.send("c", 2), stage.send("d", 3)
    assert (waiting, behind) == ([], [])
    stage.coordinator.asked.pop().answer()
    assert (code_of(waiting), code_of(behind)) == (ErrorCode.NONE, ErrorCode.NONE)

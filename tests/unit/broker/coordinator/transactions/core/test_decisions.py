"""Decisions about one transactional id. Numbers in names are Kafka's bugs that the rule avoids."""

import pytest

from odradek.base.errors import ErrorCode
from odradek.broker.coordinator.transactions.core import decisions
from odradek.broker.coordinator.transactions.core.decisions import DONE, NEEDS_PRODUCER_ID, Decision, Move, Producer
from odradek.broker.coordinator.transactions.core.decisions import Refused as R
from odradek.broker.coordinator.transactions.core.transaction import (
    EPOCH_MAX,
    LEGAL_FROM,
    IllegalTransactionMove,
    Transaction,
    TransactionState,
)
from odradek.model.topology import TopicPartition

S = TransactionState
E = ErrorCode
TP = TopicPartition("orders", 0)
OTHER = TopicPartition("orders", 1)
NOW = 1_700_000_000_000


def transaction(state: S = S.EMPTY, epoch: int = 5, **more: object) -> Transaction:
    partitions = frozenset({TP}) if state in (S.ONGOING, S.PREPARE_COMMIT, S.PREPARE_ABORT) else frozenset()
    values: dict[str, object] = {"start_ms": NOW if partitions else -1, **more}
    return Transaction("t", 7, epoch, 60_000, state, partitions, NOW, **values)  # type: ignore[arg-type]


def moved(decision: Decision) -> Transaction:
    assert isinstance(decision, Move), decision
    return decision.to


def init(
    before: Transaction, expected: Producer | None = None, *, pending: bool = False, new_id: int | None = None
) -> Decision:
    return decisions.init_producer_id(before, expected, 30_000, NOW, pending=pending, new_producer_id=new_id)


def end(
    before: Transaction,
    producer: Producer,
    *,
    commit: bool,
    version: int = 1,
    pending: bool = False,
    new_id: int | None = None,
) -> Decision:
    return decisions.end(before, producer, version, NOW, commit=commit, pending=pending, new_producer_id=new_id)


# ---- InitProducerId


def test_a_new_id_begins_with_epoch_0() -> None:
    after = moved(init(Transaction.new("t", 7, 60_000, NOW)))
    assert (after.producer_id, after.producer_epoch, after.state, after.timeout_ms) == (7, 0, S.EMPTY, 30_000)


@pytest.mark.parametrize("state", [S.EMPTY, S.COMPLETE_COMMIT, S.COMPLETE_ABORT])
def test_the_next_producer_of_an_id_has_the_next_epoch(state: S) -> None:
    after = moved(init(transaction(state)))
    assert (after.producer_id, after.producer_epoch, after.state) == (7, 6, S.EMPTY)


def test_an_open_transaction_is_aborted_and_its_producer_fenced_5231_6119() -> None:
    after = moved(init(transaction(S.ONGOING)))
    assert (after.state, after.producer_epoch, after.partitions) == (S.PREPARE_ABORT, 6, {TP})


@pytest.mark.parametrize("state", [S.PREPARE_COMMIT, S.PREPARE_ABORT])
def test_while_markers_are_written_a_producer_has_to_ask_again(state: S) -> None:
    assert init(transaction(state)) == R(E.CONCURRENT_TRANSACTIONS)


def test_while_a_move_is_pending_a_producer_has_to_ask_again() -> None:
    assert init(transaction(), pending=True) == R(E.CONCURRENT_TRANSACTIONS)


def test_a_producer_that_goes_on_raises_its_epoch_and_may_repeat_the_request() -> None:
    after = moved(init(transaction(), Producer(7, 5)))
    assert (after.producer_epoch, after.last_producer_epoch) == (6, 5)
    again = moved(init(after, Producer(7, 5)))
    assert again.producer_epoch == 6


@pytest.mark.parametrize("expected", [Producer(7, 4), Producer(7, 6), Producer(8, 5), Producer(6, EPOCH_MAX - 1)])
def test_a_producer_with_another_id_or_epoch_is_fenced(expected: Producer) -> None:
    assert init(transaction(), expected) == R(E.PRODUCER_FENCED)


@pytest.mark.parametrize("epoch", [EPOCH_MAX - 1, EPOCH_MAX])
@pytest.mark.parametrize("goes_on", [False, True])
def test_used_up_epochs_give_a_new_id_20090(epoch: int, goes_on: bool) -> None:
    expected = Producer(7, epoch) if goes_on else None
    before = transaction(S.COMPLETE_ABORT, epoch)
    assert init(before, expected) is NEEDS_PRODUCER_ID
    after = moved(init(before, expected, new_id=8))
    assert (after.producer_id, after.producer_epoch, after.previous_producer_id) == (8, 0, 7)
    if goes_on:  # its answer was lost
        assert moved(init(after, expected)).producer_epoch == 0


def test_the_last_epoch_of_a_producer_leaves_one_to_fence_it() -> None:
    after = moved(init(transaction(epoch=EPOCH_MAX - 2)))
    assert after.producer_epoch == EPOCH_MAX - 1
    begun = moved(decisions.add_partitions(after, Producer(7, EPOCH_MAX - 1), [TP], 1, NOW, pending=False))
    assert decisions.fence(begun, NOW).producer_epoch == EPOCH_MAX


def test_no_epoch_is_above_the_largest_9666() -> None:
    assert decisions.fence(transaction(S.ONGOING, EPOCH_MAX), NOW).producer_epoch == EPOCH_MAX


def test_a_fence_that_was_not_written_uses_up_no_epoch_9666() -> None:
    before = transaction(S.ONGOING)
    assert [decisions.fence(before, NOW).producer_epoch for _ in range(3)] == [6, 6, 6]


# ---- AddPartitionsToTxn


@pytest.mark.parametrize("state", [S.EMPTY, S.COMPLETE_COMMIT, S.COMPLETE_ABORT])
def test_the_first_partition_begins_a_transaction(state: S) -> None:
    after = moved(decisions.add_partitions(transaction(state), Producer(7, 5), [TP], 1, NOW + 1, pending=False))
    assert (after.state, after.partitions, after.start_ms) == (S.ONGOING, {TP}, NOW + 1)


def test_further_partitions_join_it() -> None:
    after = moved(decisions.add_partitions(transaction(S.ONGOING), Producer(7, 5), [OTHER], 1, NOW + 9, pending=False))
    assert (after.partitions, after.start_ms) == ({TP, OTHER}, NOW)


def test_partitions_that_are_in_it_already_change_nothing() -> None:
    assert decisions.add_partitions(transaction(S.ONGOING), Producer(7, 5), [TP], 1, NOW, pending=False) is DONE


@pytest.mark.parametrize(
    ("producer", "error"),
    [
        (Producer(8, 5), E.INVALID_PRODUCER_ID_MAPPING),
        (Producer(7, 4), E.PRODUCER_FENCED),
        (Producer(7, 6), E.PRODUCER_FENCED),
    ],
)
def test_other_producers_are_refused_9600(producer: Producer, error: E) -> None:
    assert decisions.add_partitions(transaction(S.ONGOING), producer, [TP], 1, NOW, pending=False) == R(error)
    assert decisions.verify(transaction(S.ONGOING), producer, [TP]) == {TP: error}
    assert end(transaction(S.ONGOING), producer, commit=True) == R(error)


@pytest.mark.parametrize("state", [S.PREPARE_COMMIT, S.PREPARE_ABORT])
def test_nothing_joins_a_transaction_that_ends(state: S) -> None:
    assert decisions.add_partitions(transaction(state), Producer(7, 5), [OTHER], 1, NOW, pending=False) == R(
        E.CONCURRENT_TRANSACTIONS
    )


def test_the_version_of_a_transaction_stays_while_it_is_open_18227() -> None:
    after = moved(decisions.add_partitions(transaction(S.ONGOING), Producer(7, 5), [OTHER], 2, NOW, pending=False))
    assert after.client_version == 0


def test_verification_asks_for_the_open_transaction() -> None:
    producer = Producer(7, 5)
    assert decisions.verify(transaction(S.ONGOING), producer, [TP, OTHER]) == {
        TP: E.NONE,
        OTHER: E.TRANSACTION_ABORTABLE,
    }
    assert decisions.verify(transaction(S.PREPARE_ABORT), producer, [TP]) == {TP: E.CONCURRENT_TRANSACTIONS}
    assert decisions.verify(transaction(S.COMPLETE_ABORT), producer, [TP]) == {TP: E.TRANSACTION_ABORTABLE}


# ---- EndTxn


@pytest.mark.parametrize(("commit", "state"), [(True, S.PREPARE_COMMIT), (False, S.PREPARE_ABORT)])
def test_an_open_transaction_ends(commit: bool, state: S) -> None:
    after = moved(end(transaction(S.ONGOING), Producer(7, 5), commit=commit))
    assert (after.state, after.producer_epoch, after.partitions) == (state, 5, {TP})


@pytest.mark.parametrize(
    ("state", "commit", "expected"),
    [
        (S.EMPTY, True, R(E.INVALID_TXN_STATE)),
        (S.EMPTY, False, R(E.INVALID_TXN_STATE)),
        (S.PREPARE_COMMIT, True, R(E.CONCURRENT_TRANSACTIONS)),
        (S.PREPARE_COMMIT, False, R(E.INVALID_TXN_STATE)),
        (S.PREPARE_ABORT, False, R(E.CONCURRENT_TRANSACTIONS)),
        (S.PREPARE_ABORT, True, R(E.INVALID_TXN_STATE)),
        (S.COMPLETE_COMMIT, True, DONE),
        (S.COMPLETE_COMMIT, False, R(E.INVALID_TXN_STATE)),
        (S.COMPLETE_ABORT, False, DONE),
        (S.COMPLETE_ABORT, True, R(E.INVALID_TXN_STATE)),
    ],
)
def test_the_end_of_no_open_transaction(state: S, commit: bool, expected: Decision) -> None:
    assert end(transaction(state), Producer(7, 5), commit=commit) == expected


def test_a_pending_move_comes_before_the_end() -> None:
    assert end(transaction(S.ONGOING), Producer(7, 5), commit=True, pending=True) == R(E.CONCURRENT_TRANSACTIONS)


def test_completion_keeps_the_producer_and_drops_the_partitions() -> None:
    after = decisions.complete(transaction(S.PREPARE_COMMIT), NOW + 1)
    assert (after.state, after.producer_epoch, after.partitions) == (S.COMPLETE_COMMIT, 5, frozenset())


# ---- version 2


def test_each_end_raises_the_epoch() -> None:
    prepared = moved(end(transaction(S.ONGOING, client_version=2), Producer(7, 5), commit=True, version=2))
    assert (prepared.state, prepared.producer_epoch) == (S.PREPARE_COMMIT, 6)
    assert decisions.next_producer(prepared) == Producer(7, 6)


def test_a_repeated_end_is_answered_with_the_raised_epoch() -> None:
    completed = transaction(S.COMPLETE_COMMIT, 6, client_version=2)
    assert end(completed, Producer(7, 5), commit=True, version=2) is DONE
    assert end(completed, Producer(7, 5), commit=False, version=2) == R(E.INVALID_TXN_STATE)
    assert end(completed, Producer(7, 4), commit=True, version=2) == R(E.PRODUCER_FENCED)


def test_a_late_end_does_not_touch_the_next_transaction() -> None:
    following = transaction(S.ONGOING, 6, client_version=2)
    assert end(following, Producer(7, 5), commit=True, version=2) == R(E.PRODUCER_FENCED)


def test_an_abort_without_a_partition_raises_the_epoch_too() -> None:
    prepared = moved(end(transaction(S.COMPLETE_COMMIT, 6, client_version=2), Producer(7, 6), commit=False, version=2))
    assert (prepared.state, prepared.producer_epoch, prepared.partitions) == (S.PREPARE_ABORT, 7, frozenset())


@pytest.mark.parametrize("epoch", [EPOCH_MAX - 2, EPOCH_MAX - 1])
def test_overflow_by_ends_gives_the_next_id_18660(epoch: int) -> None:
    before = transaction(S.ONGOING, epoch, client_version=2)
    if epoch == EPOCH_MAX - 2:
        prepared = moved(end(before, Producer(7, epoch), commit=True, version=2))
        assert decisions.next_producer(prepared) == Producer(7, EPOCH_MAX - 1)
        return
    assert end(before, Producer(7, epoch), commit=True, version=2) is NEEDS_PRODUCER_ID
    prepared = moved(end(before, Producer(7, epoch), commit=True, version=2, new_id=8))
    assert (prepared.producer_id, prepared.producer_epoch) == (7, EPOCH_MAX)
    assert decisions.next_producer(prepared) == Producer(8, 0)
    completed = decisions.complete(prepared, NOW)
    assert (completed.producer_id, completed.producer_epoch, completed.previous_producer_id) == (8, 0, 7)
    assert end(completed, Producer(7, epoch), commit=True, version=2) is DONE
    assert decisions.next_producer(completed) == Producer(8, 0)


def test_a_producer_with_the_next_id_waits_for_the_markers_of_the_id_before() -> None:
    before = transaction(S.ONGOING, EPOCH_MAX - 1, client_version=2)
    prepared = moved(end(before, Producer(7, EPOCH_MAX - 1), commit=True, version=2, new_id=8))
    after = decisions.next_producer(prepared)
    again = R(E.CONCURRENT_TRANSACTIONS)
    assert decisions.add_partitions(prepared, after, [TP], 2, NOW, pending=True) == again
    assert decisions.verify(prepared, after, [TP]) == {TP: E.CONCURRENT_TRANSACTIONS}
    assert end(prepared, after, commit=False, version=2) == again
    assert init(prepared, after) == again
    stranger = R(E.INVALID_PRODUCER_ID_MAPPING)
    assert decisions.add_partitions(prepared, Producer(9, 0), [TP], 2, NOW, pending=True) == stranger


def test_a_fenced_producer_of_version_2_does_not_pass_for_a_repeated_end_19367() -> None:
    fenced = decisions.fence(transaction(S.ONGOING, 5, client_version=2), NOW)
    assert fenced.producer_epoch == 6
    assert end(decisions.complete(fenced, NOW), Producer(7, 5), commit=False, version=2) == R(E.PRODUCER_FENCED)


# ---- time, and the table


def test_a_transaction_times_out_after_its_own_timeout() -> None:
    assert not decisions.is_timed_out(transaction(S.ONGOING), NOW + 60_000)
    assert decisions.is_timed_out(transaction(S.ONGOING), NOW + 60_001)
    assert not decisions.is_timed_out(transaction(S.PREPARE_COMMIT), NOW + 60_001)


@pytest.mark.parametrize("epoch", [-1, 5])
def test_ids_without_news_expire_even_without_an_epoch_14880(epoch: int) -> None:
    assert decisions.is_expired(transaction(epoch=epoch), NOW + 10, 10)
    assert not decisions.is_expired(transaction(epoch=epoch), NOW + 9, 10)
    assert not decisions.is_expired(transaction(S.ONGOING, epoch), NOW + 10, 10)


@pytest.mark.parametrize("to", list(S))
def test_a_move_that_is_not_in_the_table_changes_nothing(to: S) -> None:
    for state in S:
        before = transaction(state)
        if state in LEGAL_FROM[to]:
            assert before.move_to(to).state is to
        else:
            with pytest.raises(IllegalTransactionMove):
                before.move_to(to)

"""Rules of transactions, as their producers and readers of committed records saw them."""

import pytest

from odradek.model.topology import TopicPartition
from odradek.protocol.record_batch import build_batch
from odradek.protocol.records import Record
from odradek.protocol.transaction_markers import EndTransactionMarker, build_marker
from odradek.sim.checkers.transaction_history import (
    TransactionHistory,
    TxnOutcome,
    check_copies,
    visible_values,
)
from odradek.sim.checkers.violation import Violation

A = TopicPartition("ledger", 0)
B = TopicPartition("ledger", 1)


def written(outcome: TxnOutcome) -> TransactionHistory:
    history = TransactionHistory()
    history.begin("1/1", {A: [b"1/1/0"], B: [b"1/1/1", b"1/1/2"]})
    history.end("1/1", outcome)
    return history


ALL = {A: [b"1/1/0"], B: [b"1/1/1", b"1/1/2"]}
NONE: dict[TopicPartition, list[bytes]] = {A: [], B: []}


@pytest.mark.parametrize(
    ("outcome", "visible"),
    [
        (TxnOutcome.COMMITTED, ALL),
        (TxnOutcome.ABORTED, NONE),
        (TxnOutcome.UNKNOWN, ALL),
        (TxnOutcome.UNKNOWN, NONE),
    ],
)
def test_a_transaction_is_visible_as_its_producer_was_told(
    outcome: TxnOutcome, visible: dict[TopicPartition, list[bytes]]
) -> None:
    written(outcome).check_end(visible, "a broker")


@pytest.mark.parametrize("outcome", [TxnOutcome.COMMITTED, TxnOutcome.UNKNOWN])
@pytest.mark.parametrize("visible", [{A: ALL[A], B: []}, {A: [], B: ALL[B]}, {A: ALL[A], B: ALL[B][:1]}])
def test_a_part_of_a_transaction_is_a_violation(
    outcome: TxnOutcome, visible: dict[TopicPartition, list[bytes]]
) -> None:
    with pytest.raises(Violation, match="visible in part"):
        written(outcome).check_end(visible, "a broker")


@pytest.mark.parametrize(("outcome", "visible"), [(TxnOutcome.COMMITTED, NONE), (TxnOutcome.ABORTED, ALL)])
def test_the_other_end_is_a_violation(outcome: TxnOutcome, visible: dict[TopicPartition, list[bytes]]) -> None:
    with pytest.raises(Violation, match="transaction 1/1 is"):
        written(outcome).check_end(visible, "a broker")


def test_records_twice_or_out_of_order_are_violations() -> None:
    history = written(TxnOutcome.COMMITTED)
    with pytest.raises(Violation, match="stored twice"):
        history.check_end({**ALL, A: [b"1/1/0", b"1/1/0"]}, "a broker")
    with pytest.raises(Violation, match="out of order"):
        history.check_end({**ALL, B: [b"1/1/2", b"1/1/1"]}, "a broker")


def test_readers_see_committed_records_only_and_all_of_them() -> None:
    history = written(TxnOutcome.COMMITTED)
    history.begin("1/2", {A: [b"1/2/0"]})
    history.read(A, [b"1/1/0"])
    history.check()
    with pytest.raises(Violation, match="a reader was given"):
        history.check_read(ALL)
    history.read(B, ALL[B])
    history.check_read(ALL)
    history.end("1/2", TxnOutcome.ABORTED)
    history.read(A, [b"1/2/0"])
    with pytest.raises(Violation, match="of an aborted transaction"):
        history.check()


def test_the_last_stable_offset_does_not_go_back_in_an_epoch() -> None:
    history = TransactionHistory()
    history.stable(A, "a life", 1, 5)
    history.stable(A, "a life", 1, 5)
    history.stable(A, "a life", 2, 3)
    with pytest.raises(Violation, match="went back from 5 to 4"):
        history.stable(A, "a life", 1, 4)


def batch(offset: int, producer_id: int, value: bytes) -> bytes:
    return build_batch(
        [Record(offset, 0, None, value)],
        base_offset=offset,
        producer_id=producer_id,
        producer_epoch=0,
        base_sequence=0,
        transactional=True,
    )


def marker(offset: int, producer_id: int, *, committed: bool) -> bytes:
    data = bytearray(build_marker(EndTransactionMarker(producer_id, 0, 0, committed), 0))
    data[:8] = offset.to_bytes(8, "big")
    return bytes(data)


def test_a_reader_drops_what_the_broker_names_as_aborted_until_its_marker() -> None:
    data = b"".join(
        [
            batch(0, 7, b"aborted"),
            batch(1, 8, b"committed"),
            marker(2, 7, committed=False),
            batch(3, 7, b"the next of it"),
            marker(4, 8, committed=True),
        ]
    )
    assert visible_values(data, [(0, 7)]) == ([b"committed", b"the next of it"], 5)
    assert visible_values(data, []) == ([b"aborted", b"committed", b"the next of it"], 5)


def test_a_stable_end_that_was_told_does_not_go_back() -> None:
    history = TransactionHistory()
    for offset in (3, 3, 5):
        history.end_told(A, offset)
    history.end_told(B, 1)
    with pytest.raises(Violation, match="the last stable offset 4 is told, 5 was told before"):
        history.end_told(A, 4)


def test_a_reader_trusts_the_order_of_aborted_transactions() -> None:
    data = b"".join(
        [batch(0, 7, b"first"), batch(1, 8, b"second"), *(marker(n, n + 5, committed=False) for n in (2, 3))]
    )
    assert visible_values(data, [(0, 7), (1, 8)]) == ([], 4)
    assert visible_values(data, [(1, 8), (0, 7)]) == ([b"first"], 4)


def test_each_record_is_copied_once() -> None:
    check_copies([b"401/1/0", b"402/1/2", b"401/1/1"], 3)
    with pytest.raises(Violation, match=r"\[1\] are copied twice, \[2\] not at all"):
        check_copies([b"401/1/0", b"401/1/1", b"402/1/1"], 3)

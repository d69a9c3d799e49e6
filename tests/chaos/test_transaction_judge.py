"""The judge of transactions judged: a sound history has no anomaly, and each kind of fault is found."""

import pytest

from chaos.history import History, Polled
from chaos.judge import Kind, judge
from chaos.transactions import Outcome, Transaction, add_to, copy_faults, read_transactions, torn

COMMITTED = """\
B 0
R 0 0 orders 0
R 0 1 orders 1
C 0
E 0 committed
"""
ABORTED = """\
B 1
R 1 0 orders 0
E 1 aborted
"""
UNDECIDED = """\
B 2
R 2 0 orders 0
R 2 1 orders 1
C 2
"""
LEFT_OPEN = """\
B 3
R 3 0 orders 0
"""


def printed(*parts: str) -> list[Transaction]:
    return read_transactions("t", "".join(parts).splitlines(keepends=True))


def kinds(transactions: list[Transaction], *values: str) -> set[Kind]:
    """The anomalies when a reader of committed records sees these values, each in the partition it was sent to."""
    history = History()
    add_to(history, transactions)
    places = {sent.value: sent.partition for sent in history.sent}
    for offset, value in enumerate(values):
        history.record_polled(Polled("reader", places[value], offset, value))
    return {anomaly.kind for anomaly in [*judge(history), *torn(transactions, set(values))]}


def test_outcomes() -> None:
    outcomes = [each.outcome for each in printed(COMMITTED, ABORTED, UNDECIDED, LEFT_OPEN)]
    assert outcomes == [Outcome.COMMITTED, Outcome.ABORTED, Outcome.UNKNOWN, Outcome.ABORTED]


def test_a_line_that_was_torn_announces_nothing() -> None:
    (transaction,) = printed(LEFT_OPEN, "R 3 1 ord")
    assert [sent.value for sent in transaction.records] == ["t-3000"]


@pytest.mark.parametrize("undecided", [(), ("t-2000", "t-2001")])
def test_a_sound_history(undecided: tuple[str, ...]) -> None:
    transactions = printed(COMMITTED, ABORTED, UNDECIDED, LEFT_OPEN)
    assert kinds(transactions, "t-0", "t-1", *undecided) == set()


def test_a_committed_transaction_that_is_gone() -> None:
    assert kinds(printed(COMMITTED)) == {Kind.LOST}


def test_a_part_of_a_transaction() -> None:
    assert Kind.TORN in kinds(printed(COMMITTED), "t-1")
    assert kinds(printed(UNDECIDED), "t-2000") == {Kind.TORN}


@pytest.mark.parametrize(("transaction", "value"), [(ABORTED, "t-1000"), (LEFT_OPEN, "t-3000")])
def test_an_aborted_record_that_is_read(transaction: str, value: str) -> None:
    assert kinds(printed(transaction), value) == {Kind.FAILED_BUT_READ}


def test_a_committed_record_twice() -> None:
    assert kinds(printed(COMMITTED), "t-0", "t-1", "t-0") == {Kind.DUPLICATE}


@pytest.mark.parametrize(
    ("copies", "found"),
    [
        (["a", "b", "c"], set()),
        (["a", "b"], {Kind.NOT_COPIED}),
        (["a", "c"], {Kind.NOT_COPIED, Kind.COPIES_DIFFER}),
        (["a", "b", "b", "c"], {Kind.COPIES_DIFFER}),
        (["a", "c", "b"], {Kind.COPIES_DIFFER}),
        (["a", "b", "c", "a"], {Kind.COPIES_DIFFER}),
        ([], {Kind.NOT_COPIED}),
    ],
)
def test_copies(copies: list[str], found: set[Kind]) -> None:
    assert {anomaly.kind for anomaly in copy_faults({0: ["a", "b", "c"]}, {0: copies}, "copies")} == found

"""The sum of all accounts, as a reader of committed transfers adds it up."""

import pytest

from odradek.model.topology import TopicPartition
from odradek.sim.checkers.balances import FIRST_BALANCE, TOTAL, BalanceEntry, Balances
from odradek.sim.checkers.violation import Violation

A = TopicPartition("accounts", 0)
B = TopicPartition("accounts", 1)


def transfer(number: int, payer_balance: int, paid_balance: int, payer: int = 0, paid: int = 1) -> tuple[bytes, bytes]:
    entries = BalanceEntry(number, payer, payer_balance, paid), BalanceEntry(number, paid, paid_balance, payer)
    return entries[0].value("501/1"), entries[1].value("501/1")


FIRST = transfer(1, FIRST_BALANCE - 5, FIRST_BALANCE + 5)
SECOND = transfer(2, FIRST_BALANCE - 6, FIRST_BALANCE + 6)


def test_an_entry_is_read_as_it_was_written() -> None:
    entry = BalanceEntry(7, 2, 93, 3)
    assert BalanceEntry.of(entry.value("501/12")) == entry


def test_a_transfer_counts_when_both_accounts_have_it() -> None:
    balances = Balances()
    balances.read(A, [FIRST[0], SECOND[0]])
    assert balances.last_transfer == 0
    assert not balances.is_whole
    balances.read(B, [FIRST[1]])
    assert balances.last_transfer == 1
    balances.read(B, [SECOND[1]])
    assert balances.is_whole
    assert sum(balances.of_accounts) == TOTAL
    balances.check_end()


def test_a_transfer_waits_for_those_before_it() -> None:
    balances = Balances()
    balances.read(A, SECOND)
    assert balances.last_transfer == 0
    balances.read(A, FIRST)
    assert balances.last_transfer == 2


def test_a_transfer_that_is_visible_in_part_is_a_violation_in_the_end() -> None:
    balances = Balances()
    balances.read(A, [FIRST[0]])
    with pytest.raises(Violation, match="visible in part"):
        balances.check_end()


def test_a_transfer_that_is_lost_shows_in_the_ones_behind_it() -> None:
    balances = Balances()
    balances.read(A, SECOND)
    with pytest.raises(Violation, match="behind 0"):
        balances.check_end()


@pytest.mark.parametrize("again", [FIRST[:1], FIRST])
def test_a_transfer_that_comes_twice_is_a_violation(again: tuple[bytes, ...]) -> None:
    balances = Balances()
    balances.read(A, FIRST)
    with pytest.raises(Violation, match="twice"):
        balances.read(B, again)


def test_two_tellers_that_made_the_same_transfer_are_a_violation() -> None:
    balances = Balances()
    other = transfer(1, FIRST_BALANCE - 1, FIRST_BALANCE + 1, payer=2, paid=3)
    with pytest.raises(Violation, match="two transfers"):
        balances.read(A, [FIRST[0], other[1]])


def test_a_teller_that_did_not_know_the_balance_changes_the_sum() -> None:
    balances = Balances()
    balances.read(A, FIRST)
    stale = transfer(2, FIRST_BALANCE - 1, FIRST_BALANCE + 1, payer=0, paid=2)
    with pytest.raises(Violation, match="changes the sum"):
        balances.read(A, stale)

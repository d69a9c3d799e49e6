"""Balances of accounts, by the transfers of money between them: their sum never changes.

A transfer has a number, one higher than that of the transfer before it, and writes two records in one transaction: the
new balance of the account that pays, and of the one that is paid. The accounts are in several partitions, so that a
reader has one record before the other; a transfer counts when both are there, and when all before it have counted. A
transfer that is lost, visible in part, or made by a producer that didn't know the one before shows in the sum, in a
number that comes twice, or in one that never comes.
"""

from collections.abc import Sequence
from typing import NamedTuple

from odradek.model.topology import TopicPartition
from odradek.sim.checkers.violation import Violation

ACCOUNT_COUNT = 4
FIRST_BALANCE = 100
TOTAL = ACCOUNT_COUNT * FIRST_BALANCE


class BalanceEntry(NamedTuple):
    """One record of a transfer: the balance of an account after it, and the other account."""

    transfer: int
    account: int
    balance: int
    other: int

    def value(self, transaction: str) -> bytes:
        return "/".join([transaction, *map(str, self)]).encode()

    @classmethod
    def of(cls, value: bytes) -> "BalanceEntry":
        return cls(*map(int, value.decode().split("/")[-4:]))


class Balances:
    """Balances as one reader of committed records knows them."""

    def __init__(self) -> None:
        self.last_transfer = 0
        self.of_accounts = [FIRST_BALANCE] * ACCOUNT_COUNT
        self._waiting: dict[int, dict[int, BalanceEntry]] = {}  # transfers that don't count yet, by number and account

    @property
    def is_whole(self) -> bool:
        """Return whether every transfer of which a record was read has counted."""
        return not self._waiting

    def read(self, tp: TopicPartition, values: Sequence[bytes]) -> None:
        for entry in map(BalanceEntry.of, values):
            entries = self._waiting.setdefault(entry.transfer, {})
            if entry.transfer <= self.last_transfer or entry.account in entries:
                raise Violation(f"{tp}: transfer {entry.transfer} is there twice: {entry}")
            entries[entry.account] = entry
        while len(entries := self._waiting.get(self.last_transfer + 1, {})) == 2:
            self._count(entries)

    def _count(self, entries: dict[int, BalanceEntry]) -> None:
        self.last_transfer += 1
        del self._waiting[self.last_transfer]
        for account, entry in entries.items():
            if entry.other not in entries:
                raise Violation(f"transfer {self.last_transfer} is two transfers: {list(entries.values())}")
            self.of_accounts[account] = entry.balance
        if sum(self.of_accounts) != TOTAL:
            raise Violation(f"transfer {self.last_transfer} changes the sum: {self.of_accounts}")

    def check_end(self) -> None:
        if self._waiting:
            incomplete = {number: list(entries.values()) for number, entries in sorted(self._waiting.items())}
            raise Violation(f"transfers behind {self.last_transfer} are visible in part: {incomplete}")

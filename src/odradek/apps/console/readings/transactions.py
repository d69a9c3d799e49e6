"""Transactions: a line for each, details of one, and the hanging ones, which no coordinator will end."""

from dataclasses import dataclass

from odradek.base.clock import SYSTEM_CLOCK
from odradek.client.cluster_client import ClusterClient
from odradek.client.transaction_admin import (
    OpenTransaction,
    TransactionDescription,
    TransactionListing,
    all_open_transactions,
    describe_transaction,
    hanging_transactions,
    list_transactions,
)
from odradek.model.topology import TopicPartition

_PARTITIONS_AT_ONCE = 1_000


@dataclass(frozen=True, slots=True)
class TransactionsState:
    transactions: tuple[TransactionListing, ...]


def read_transactions(client: ClusterClient, before: TransactionsState | None) -> TransactionsState:
    return TransactionsState(tuple(list_transactions(client)))


@dataclass(frozen=True, slots=True)
class TransactionDetail:
    at_ms: int
    transaction: TransactionDescription


def read_transaction(
    client: ClusterClient, before: TransactionDetail | None, transactional_id: str
) -> TransactionDetail:
    return TransactionDetail(SYSTEM_CLOCK.now_ms(), describe_transaction(client, transactional_id))


def find_hanging(client: ClusterClient, older_than_ms: int) -> list[OpenTransaction]:
    """Ask every leader for open transactions without a record for this long; return those that no coordinator knows."""
    before_ms = SYSTEM_CLOCK.now_ms() - older_than_ms
    partitions = [
        TopicPartition(topic.name, partition.partition)
        for topic in client.topics().values()
        for partition in topic.partitions
        if partition.is_available
    ]
    found: list[OpenTransaction] = []
    for first in range(0, len(partitions), _PARTITIONS_AT_ONCE):
        asked = partitions[first : first + _PARTITIONS_AT_ONCE]
        found += [each for each in all_open_transactions(client, asked) if each.last_timestamp_ms <= before_ms]
    return hanging_transactions(client, found)

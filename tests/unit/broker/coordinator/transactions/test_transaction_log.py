"""The replay of a partition of __transaction_state: the last value of each id, whatever lies before it."""

from collections.abc import Iterator

import pytest

from odradek.broker.coordinator.state.core.state_batch import state_batch
from odradek.broker.coordinator.transactions.core.transaction import Transaction, TransactionState
from odradek.broker.coordinator.transactions.core.transaction_records import encode_key, encode_record
from odradek.broker.coordinator.transactions.transaction_log import TransactionLog
from odradek.model.topology import TopicPartition
from odradek.protocol.compression import Codec
from odradek.protocol.record_batch import BatchHeader, batches
from opcodes import opcodes_of

NOW_MS = 1_700_000_000_000


def transaction(name: str, epoch: int) -> Transaction:
    partitions = frozenset({TopicPartition("orders", epoch % 6)})
    return Transaction(name, 7, epoch, 60_000, TransactionState.ONGOING, partitions, NOW_MS)


class WrittenLog(TransactionLog):
    def __init__(self, *written: tuple[bytes, bytes | None]) -> None:
        self._batch = bytes(state_batch(written, NOW_MS, Codec.NONE))

    def read(self, partition: int) -> Iterator[tuple[bytes, int, BatchHeader]]:
        return ((self._batch, pos, header) for pos, header in batches(self._batch))


def test_the_last_value_of_each_id_counts() -> None:
    log = WrittenLog(
        encode_record(transaction("a", 1)),
        encode_record(transaction("b", 1)),
        encode_record(transaction("a", 2)),
        (encode_key("b"), None),
        (b"\x00\x07newer", b"of a kind that is not known"),
        encode_record(transaction("c", 1)),
        (encode_key("c"), None),
        encode_record(transaction("c", 3)),
    )
    assert log.replay(0) == {"a": transaction("a", 2), "c": transaction("c", 3)}


def test_a_record_that_cannot_be_read_changes_nothing(caplog: pytest.LogCaptureFixture) -> None:
    a = encode_record(transaction("a", 1))
    for torn in (encode_key("a"), b"\x00\x09"), (encode_key("b"), b"\x00"), (b"\x00", b"no key"):
        assert WrittenLog(a, torn).replay(0) == {"a": transaction("a", 1)}


def test_two_keys_of_one_id_are_replayed_in_their_order() -> None:
    key, value = encode_record(transaction("a", 1))
    longer = key + b"\x00"
    assert WrittenLog((key, value), (longer, encode_record(transaction("a", 2))[1])).replay(0)["a"].producer_epoch == 2
    assert WrittenLog((longer, value), (key, None)).replay(0) == {}


def test_a_replay_decodes_a_value_for_each_id_and_not_for_each_record() -> None:
    few = WrittenLog(*(encode_record(transaction("a", epoch)) for epoch in range(10)))
    many = WrittenLog(*(encode_record(transaction("a", epoch)) for epoch in range(1_010)))
    opcodes = opcodes_of(lambda: many.replay(0)) - opcodes_of(lambda: few.replay(0))
    assert opcodes < 1_000 * 250, "less than decoding takes"

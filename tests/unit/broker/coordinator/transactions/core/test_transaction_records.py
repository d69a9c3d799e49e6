"""Records of __transaction_state: one layout has an encoder of its own, which makes the bytes of the general one."""

from itertools import product

from odradek.broker.coordinator.transactions.core.transaction import Transaction, TransactionState
from odradek.broker.coordinator.transactions.core.transaction_records import (
    PLAIN,
    TAGGED,
    decode_transaction,
    encode_record,
    encode_transaction,
)
from odradek.model.topology import TopicPartition

PARTITIONS = (
    frozenset[TopicPartition](),
    frozenset({TopicPartition("orders", 3)}),
    frozenset({TopicPartition("orders", 3), TopicPartition("orders", 0), TopicPartition("zahlungen-ü", 70_000)}),
)


def test_the_short_encoder_makes_the_bytes_of_the_general_one() -> None:
    for state, partitions in product(TransactionState, PARTITIONS):
        transaction = Transaction("t", 2**40, 32_767, 60_000, state, partitions, 1_700_000_000_000, 1_699_999_999_999)
        _, value = encode_record(transaction)
        assert value == encode_transaction(transaction, PLAIN)
        tagged = transaction._replace(client_version=2, next_producer_id=7)
        assert encode_record(tagged)[1] == encode_transaction(tagged, TAGGED)
        if state is not TransactionState.EMPTY:
            assert decode_transaction("t", value) == transaction

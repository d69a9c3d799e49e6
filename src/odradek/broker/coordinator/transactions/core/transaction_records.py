"""The records of __transaction_state, byte for byte as Apache Kafka keeps them.

Each key and each value begins with its version, an int16. The key (version 0) is the transactional id; no value takes
the id away. Values are written in version 0, which every broker reads; those of transactions of version 2 in version 1,
which has tagged fields.
Keys of other versions belong to newer coordinators and are left alone.
"""

from functools import lru_cache
from itertools import groupby
from struct import Struct as Packer
from struct import error as StructError
from typing import Final

from odradek.base.errors import ErrorCode, KafkaError
from odradek.broker.coordinator.transactions.core.transaction import Transaction, TransactionState
from odradek.model.topology import TopicPartition
from odradek.protocol.primitives import ProtocolError
from odradek.protocol.schema import Message, Struct, array, int8, int16, int32, int64, string

_VERSION = Packer(">h")
_COUNT = Packer(">i")
_BEFORE_PARTITIONS = Packer(">hqhib")
_TIMES = Packer(">qq")
_NO_ARRAY: Final = b"\xff\xff\xff\xff"
_KEY_VERSION: Final = 0
_KEYS_MAX: Final = 1_000
PLAIN: Final = 0
TAGGED: Final = 1
"""Versions of values."""


class TransactionLogKey(Message, versions="0"):
    transactional_id: str = string()


class PartitionsSchema(Struct):
    topic: str = string()
    partition_ids: list[int] = array(int32)


class TransactionLogValue(Message, versions="0-1", flexible="1+"):
    producer_id: int = int64()
    previous_producer_id: int = int64("1+", default=-1, tag=0, ignorable=True)  # of the transaction before
    next_producer_id: int = int64("1+", default=-1, tag=1, ignorable=True)  # once the markers are written
    producer_epoch: int = int16()
    transaction_timeout_ms: int = int32()
    transaction_status: int = int8()
    transaction_partitions: list[PartitionsSchema] | None = array(PartitionsSchema, nullable="0+")  # None: Empty
    transaction_last_update_timestamp_ms: int = int64()
    transaction_start_timestamp_ms: int = int64()
    client_transaction_version: int = int16("1+", default=0, tag=2, ignorable=True)


@lru_cache(maxsize=_KEYS_MAX)  # the key of a busy id is the same for each of its moves
def encode_key(transactional_id: str) -> bytes:
    return _VERSION.pack(_KEY_VERSION) + TransactionLogKey(transactional_id=transactional_id).encode(_KEY_VERSION)


def encode_record(transaction: Transaction) -> tuple[bytes, bytes]:
    """Key and value."""
    value = encode_transaction(transaction, TAGGED) if transaction.bumps_epochs else _encode_plain(transaction)
    return encode_key(transaction.transactional_id), value


def _encode_plain(transaction: Transaction) -> bytes:
    """Make the same bytes as `encode_transaction` in version 0, faster, because four are written for each
    transaction."""
    _, producer_id, epoch, timeout_ms, state, partitions, last_update_ms, start_ms, *_ = transaction
    return b"".join(
        (
            _BEFORE_PARTITIONS.pack(PLAIN, producer_id, epoch, timeout_ms, state),
            _NO_ARRAY if state is TransactionState.EMPTY else _encode_partitions(partitions),
            _TIMES.pack(last_update_ms, start_ms),
        )
    )


@lru_cache(maxsize=_KEYS_MAX)
def _encode_partitions(partitions: frozenset[TopicPartition]) -> bytes:
    by_topic = [
        (topic, [tp.partition for tp in tps]) for topic, tps in groupby(sorted(partitions), lambda tp: tp.topic)
    ]
    pieces = [_COUNT.pack(len(by_topic))]
    for topic, ids in by_topic:
        name = topic.encode()
        pieces += (_VERSION.pack(len(name)), name, _COUNT.pack(len(ids)), Packer(f">{len(ids)}i").pack(*ids))
    return b"".join(pieces)


def encode_transaction(transaction: Transaction, version: int) -> bytes:
    partitions = None
    if transaction.state is not TransactionState.EMPTY:
        partitions = [
            PartitionsSchema(topic=topic, partition_ids=[tp.partition for tp in tps])
            for topic, tps in groupby(sorted(transaction.partitions), key=lambda tp: tp.topic)
        ]
    value = TransactionLogValue(
        producer_id=transaction.producer_id,
        previous_producer_id=transaction.previous_producer_id,
        next_producer_id=transaction.next_producer_id,
        producer_epoch=transaction.producer_epoch,
        transaction_timeout_ms=transaction.timeout_ms,
        transaction_status=transaction.state,
        transaction_partitions=partitions,
        transaction_last_update_timestamp_ms=transaction.last_update_ms,
        transaction_start_timestamp_ms=transaction.start_ms,
        client_transaction_version=transaction.client_version,
    )
    return _VERSION.pack(version) + value.encode(version)


def decode_key(raw: bytes) -> str | None:
    """The transactional id; None for a kind that isn't known."""
    if _version_of(raw) not in TransactionLogKey.VERSIONS:
        return None
    try:
        return TransactionLogKey.decode(memoryview(raw), _VERSION.size, _KEY_VERSION)[0].transactional_id
    except ProtocolError as error:
        raise _malformed(f"TransactionLogKey: {error}") from error


def decode_transaction(transactional_id: str, raw: bytes) -> Transaction:
    version = _version_of(raw)
    if version not in TransactionLogValue.VERSIONS:
        raise _malformed(f"TransactionLogValue has no version {version}")
    try:
        value = TransactionLogValue.decode(memoryview(raw), _VERSION.size, version)[0]
        state = TransactionState(value.transaction_status)
    except (ProtocolError, ValueError) as error:
        raise _malformed(f"TransactionLogValue: {error}") from error
    return Transaction(
        transactional_id,
        value.producer_id,
        value.producer_epoch,
        value.transaction_timeout_ms,
        state,
        frozenset(
            TopicPartition(each.topic, partition)
            for each in value.transaction_partitions or ()
            for partition in each.partition_ids
        ),
        value.transaction_last_update_timestamp_ms,
        value.transaction_start_timestamp_ms,
        value.previous_producer_id,
        value.next_producer_id,
        client_version=value.client_transaction_version,
    )


def _version_of(raw: bytes) -> int:
    try:
        return int(_VERSION.unpack_from(raw)[0])
    except StructError:
        raise _malformed(f"{len(raw)} bytes have no version") from None


def _malformed(what: str) -> KafkaError:
    return KafkaError(ErrorCode.CORRUPT_MESSAGE, f"Not a record of transaction state: {what}")

"""Decoders of keys and values. JSON, text, hex, Avro by a schema, and the two internal topics.

Filters and exports use `document`, which consists of JSON values. Undecodable bytes are shown unchanged, with the
reason.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from typing import Any

from odradek.apps.records.avro import AvroError, AvroSchema
from odradek.base.errors import KafkaError
from odradek.broker.coordinator.groups.core import group_records
from odradek.broker.coordinator.transactions.core import transaction_records
from odradek.model.topic_names import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from odradek.protocol.records import Record
from odradek.protocol.schema import Struct

JSON_BYTES_MAX = 256 * 1024
AUTO, TEXT, HEX, GROUPS, TRANSACTIONS = "auto", "text", "hex", "groups", "transactions"
AVRO = "avro:"
NOTHING = object()
"""The document of bytes that have none."""


@dataclass(frozen=True, slots=True)
class Decoded:
    data: bytes | None
    kind: str
    document: Any = NOTHING
    problem: str = ""
    """Reason of the failure of the requested decoder."""


@dataclass(frozen=True, slots=True)
class Decoder:
    key: Callable[[Record], Decoded]
    value: Callable[[Record], Decoded]


AUTOMATIC = Decoder(lambda record: guessed(record.key), lambda record: guessed(record.value))


def decoder_named(name: str, topic: str, schemas: Mapping[str, AvroSchema]) -> Decoder:
    """Choose a decoder by name; `auto` knows internal topics, and a schema with the topic's name. ValueError: unknown
    name."""
    if name == AUTO and topic in schemas:
        name = f"{AVRO}{topic}"
    elif name == AUTO:
        name = {OFFSETS_TOPIC: GROUPS, TRANSACTIONS_TOPIC: TRANSACTIONS}.get(topic, AUTO)
    if name.startswith(AVRO) and (schema := schemas.get(name.removeprefix(AVRO))) is not None:
        return Decoder(lambda record: guessed(record.key), lambda record: _avro(record.value, schema))
    known = {
        AUTO: AUTOMATIC,
        TEXT: Decoder(lambda record: _text(record.key), lambda record: _text(record.value)),
        HEX: Decoder(lambda record: _bytes(record.key), lambda record: _bytes(record.value)),
        GROUPS: Decoder(_group_key, _group_value),
        TRANSACTIONS: Decoder(_transaction_key, _transaction_value),
    }
    if name not in known:
        valid = [*known, *(f"{AVRO}{each}" for each in schemas)]
        raise ValueError(f"'{name}' is not a decoder; there are {', '.join(valid)}")
    return known[name]


def guessed(data: bytes | None) -> Decoded:
    """Decode JSON objects and lists, else text, else bytes."""
    if data is None:
        return Decoded(None, "null")
    if data[:1] in (b"{", b"[") and len(data) <= JSON_BYTES_MAX:
        try:
            return Decoded(data, "JSON", json.loads(data))
        except (ValueError, RecursionError):
            pass
    return Decoded(data, "")


def _text(data: bytes | None) -> Decoded:
    return Decoded(data, "null" if data is None else "text")


def _bytes(data: bytes | None) -> Decoded:
    return Decoded(data, "null" if data is None else "bytes")


def _avro(data: bytes | None, schema: AvroSchema) -> Decoded:
    if data is None:
        return Decoded(None, "null")
    try:
        return Decoded(data, "Avro", schema.decode(data))
    except AvroError as error:
        return Decoded(data, "bytes", problem=f"not Avro of this schema: {error}")


def _group_key(record: Record) -> Decoded:
    return _tried(record.key, "key", lambda data: _plain(group_records.decode_key(data)))


def _group_value(record: Record) -> Decoded:
    def decode(data: bytes) -> Any:
        key = group_records.decode_key(record.key or b"")
        is_offset = isinstance(key, group_records.OffsetKey)
        return _plain(group_records.decode_offset(data) if is_offset else group_records.decode_group(data))

    return _tried(record.value, "group state", decode)


def _transaction_key(record: Record) -> Decoded:
    return _tried(record.key, "key", lambda data: {"transactional_id": transaction_records.decode_key(data)})


def _transaction_value(record: Record) -> Decoded:
    def decode(data: bytes) -> Any:
        name = transaction_records.decode_key(record.key or b"") or ""
        return _plain(transaction_records.decode_transaction(name, data))

    return _tried(record.value, "transaction state", decode)


def _tried(data: bytes | None, kind: str, decode: Callable[[bytes], Any]) -> Decoded:
    if data is None:
        return Decoded(None, "null")
    try:
        return Decoded(data, kind, decode(bytes(data)))
    except KafkaError as error:
        return Decoded(data, "bytes", problem=error.message or error.code.name)


def _plain(value: Any) -> Any:
    """Convert values of the broker to JSON values."""
    if isinstance(value, Enum):
        return getattr(value, "label", value.name)
    if isinstance(value, Struct):
        return {name: _plain(getattr(value, name)) for name in value.FIELDS}
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, bytes | memoryview):
        return bytes(value).hex()
    if hasattr(value, "_asdict"):
        return {key: _plain(held) for key, held in value._asdict().items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(each) for each in value]
    return value

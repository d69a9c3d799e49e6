"""Decoders: documents out of bytes, or the bytes with the reason why not."""

import io
import json

import pytest

from odradek.apps.records.avro import AvroError, AvroSchema, framed_schema
from odradek.apps.records.decoders import NOTHING, Decoder, decoder_named
from odradek.broker.coordinator.groups.core import group_records
from odradek.broker.coordinator.transactions.core import transaction_records
from odradek.broker.coordinator.transactions.core.transaction import Transaction, TransactionState
from odradek.model.topology import TopicPartition
from odradek.protocol.records import Record

SCHEMA = {
    "type": "record",
    "name": "Order",
    "namespace": "shop",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "who", "type": ["null", "string"]},
        {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["NEW", "OLD"]}},
        {"name": "tags", "type": {"type": "array", "items": "string"}},
        {"name": "prices", "type": {"type": "map", "values": "double"}},
        {"name": "digest", "type": {"type": "fixed", "name": "Digest", "size": 2}},
        {"name": "other", "type": ["null", "Kind"]},
        {"name": "next", "type": ["null", "Order"]},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
    ],
}
ORDER = {
    "id": -3,
    "who": "Karl",
    "kind": "OLD",
    "tags": ["a", "b"],
    "prices": {"x": 1.5},
    "digest": b"\x01\xff",
    "other": "NEW",
    "at": 1_700_000_000_000,
}


def _written(order: dict[str, object]) -> bytes:
    fastavro = pytest.importorskip("fastavro")
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema({**SCHEMA, "fields": [*SCHEMA["fields"]]}), order)
    return out.getvalue()


def test_avro_is_read_as_fastavro_writes_it_also_in_a_registry_s_frame() -> None:
    data = _written({**ORDER, "next": {**ORDER, "next": None}})
    schema = AvroSchema(json.dumps(SCHEMA))
    shown = {**ORDER, "digest": "01ff"}
    assert schema.decode(data) == {**shown, "next": {**shown, "next": None}}
    assert schema.decode(b"\0\0\0\0\x2a" + data) == schema.decode(data)


def test_every_cut_of_a_record_is_refused_and_nothing_else_happens() -> None:
    data, schema = _written({**ORDER, "next": None}), AvroSchema(json.dumps(SCHEMA))
    for length in range(len(data)):
        with pytest.raises(AvroError):
            schema.decode(data[:length])


def test_hostile_bytes_and_schemas_are_bounded() -> None:
    nulls = AvroSchema('{"type": "array", "items": "null"}')
    with pytest.raises(AvroError, match="items"):
        nulls.decode(b"\xfe\xff\xff\xff\x0f\0")
    linked = AvroSchema('{"type": "record", "name": "L", "fields": [{"name": "n", "type": "L"}]}')
    with pytest.raises(AvroError, match="too deeply"):
        linked.decode(b"")
    for text in (
        "{",
        '{"type": "record"}',
        '"unknown"',
        '{"type": "fixed", "name": "f", "size": -1}',
        "[" * 5_000,
        "3",
    ):
        with pytest.raises(AvroError, match="invalid Avro schema"):
            AvroSchema(text)


def _decoder(name: str, topic: str = "orders") -> Decoder:
    return decoder_named(name, topic, {"orders": AvroSchema('"long"')})


def test_a_schema_of_the_topic_s_name_is_used_by_itself() -> None:
    record = Record(0, 0, b"k", b"\x06", ())
    assert _decoder("auto").value(record).document == 3
    assert _decoder("auto", "letters").value(record).document is NOTHING
    assert _decoder("avro:orders", "letters").value(record).document == 3
    refused = _decoder("auto").value(Record(0, 0, None, b"\xff", ()))
    assert (refused.document, refused.kind) == (NOTHING, "bytes")
    assert "not Avro of this schema" in refused.problem
    with pytest.raises(ValueError, match="is not a decoder"):
        _decoder("avro:nowhere")


def test_committed_offsets_and_groups_are_told() -> None:
    key = group_records.encode_key(group_records.OffsetKey("post", TopicPartition("parcels", 3)))
    value = group_records.encode_offset(group_records.CommittedOffset(42, 1, "note", 5))
    decoder = _decoder("auto", "__consumer_offsets")
    record = Record(0, 0, key, value, ())
    assert decoder.key(record).document == {"group_id": "post", "partition": {"topic": "parcels", "partition": 3}}
    assert decoder.value(record).document["offset"] == 42
    assert decoder.value(Record(0, 0, key, None, ())).kind == "null"
    assert decoder.value(Record(0, 0, key, b"\x00", ())).problem


def test_the_state_of_a_transaction_is_told() -> None:
    transaction = Transaction(
        "bookkeeper",
        producer_id=7,
        producer_epoch=2,
        timeout_ms=60_000,
        state=TransactionState.ONGOING,
        partitions=frozenset({TopicPartition("ledger", 0)}),
        start_ms=1,
        last_update_ms=2,
    )
    key = transaction_records.encode_key("bookkeeper")
    value = transaction_records.encode_transaction(transaction, transaction_records.PLAIN)
    told = _decoder("auto", "__transaction_state").value(Record(0, 0, key, value, ())).document
    assert (told["state"], told["partitions"]) == ("Ongoing", [{"topic": "ledger", "partition": 0}])


@pytest.mark.parametrize(
    ("data", "schema"),
    [
        (b"\0\0\0\0\x2aabc", None),  # as long as a number of eight bytes
        (b"\0\0\0\0\x2aabcd", 42),
        (b"\0\0\0\0\0abcd", None),
        (b"\0\0\0\0\x2a", None),
        (b"\0\xff\0\0\x2aabcd", None),
        (b"{}", None),
    ],
)
def test_a_schema_registry_s_frame_is_recognized(data: bytes, schema: int | None) -> None:
    assert framed_schema(data) == schema

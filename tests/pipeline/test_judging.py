"""Good records and dead letters: each record is one of them, whatever it holds."""

import io
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import fastavro
import pytest
from google.protobuf import descriptor_pb2, timestamp_pb2
from pyspark.sql import SparkSession

from odradek.apps.pipeline.decoding import check_package, columns_of
from odradek.apps.pipeline.quality import KEY_BYTES_MAX, VALUE_BYTES_MAX, dead_letters, good, judged
from odradek.apps.pipeline.spec import Decoding, Encoding, Mode, Source, TopicSink, Watermark
from odradek.apps.pipeline.topic_output import as_records
from odradek.base.errors import FatalError

pytestmark = pytest.mark.timeout(600)

SCHEMA = "id STRING NOT NULL, amount DOUBLE, at TIMESTAMP"
WRITTEN = datetime(2026, 1, 1, 12, 0, 0)
RECORD = "key BINARY, value BINARY, topic STRING, partition INT, offset LONG, timestamp TIMESTAMP"


@pytest.fixture(autouse=True)
def lenient(spark: SparkSession) -> Iterator[None]:
    """As pipelines run."""
    spark.conf.set("spark.sql.ansi.enabled", "false")
    yield
    spark.conf.unset("spark.sql.ansi.enabled")


def source(decoding: Decoding, **rules: str) -> Source:
    return Source(
        name="s",
        topics=("t",),
        decoding=decoding,
        start="earliest",
        rules=rules,
        watermark=Watermark("at", "1 minute"),
        late_after="30 seconds",
        dedupe=("id",),
    )


def judge(
    spark: SparkSession, values: list[bytes | None], decoding: Decoding, judging: Source | None
) -> tuple[Any, Any]:
    """The good rows without their origin, and the reasons of the others, each by offset."""
    rows = [(b"k", value, "t", 0, offset, WRITTEN) for offset, value in enumerate(values)]
    judgement = judged(spark.createDataFrame(rows, RECORD), decoding, judging)
    kept = {row["_record"]["offset"]: row for row in good(judgement).collect()}
    letters = {}
    for row in dead_letters(judgement, "s").collect():
        headers = {h["key"]: bytes(h["value"]).decode() for h in row["headers"]}
        assert row["key"] == b"k"
        letters[int(headers["odradek.offset"])] = headers["odradek.reason"]
    assert sorted([*kept, *letters]) == list(range(len(values))), "each record is one of both, once"
    return kept, letters


def test_json_of_every_kind(spark: SparkSession) -> None:
    decoding = Decoding(Encoding.JSON, SCHEMA)
    fine = {"id": "a", "amount": 2.0, "at": "2026-01-01T11:59:59Z"}
    values = [
        json.dumps(fine).encode(),
        json.dumps({**fine, "a field that is new": 1}).encode(),
        None,
        b"",
        b"{",
        b"[]",
        b"\xff\xfe",
        json.dumps({**fine, "amount": "much"}).encode(),
        json.dumps({**fine, "id": None}).encode(),
        json.dumps({**fine, "at": None}).encode(),
        json.dumps({**fine, "at": "2026-01-01T11:00:00Z"}).encode(),
        json.dumps({**fine, "amount": -1.0, "at": "2026-01-01T11:00:00Z"}).encode(),
        json.dumps({**fine, "amount": None}).encode(),
    ]
    kept, letters = judge(
        spark, values, decoding, source(decoding, dear="amount > 0", sound="100 / amount IS NOT NULL")
    )
    assert sorted(kept) == [0, 1], "a field that nobody declared harms nobody"
    assert kept[0]["amount"] == 2.0
    assert kept[0]["_record"]["topic"] == "t"
    late = "late: at is more than 30 seconds before the record was written"
    assert letters == {
        2: "no value",
        3: "empty value",
        4: "not json of the declared schema",
        5: "not json of the declared schema",
        6: "not UTF-8",
        7: "not json of the declared schema",
        8: "id is missing",
        9: "at is missing",
        10: late,
        11: f"{late}; rule broken: dear",
        12: "rule broken: dear; rule broken: sound",
    }


def test_csv_and_text(spark: SparkSession) -> None:
    decoding = Decoding(Encoding.CSV, SCHEMA, options={"sep": ";"})
    values = [b"a;1.5;2026-01-01T12:00:00Z", b"a;dear;2026-01-01T12:00:00Z", b"a;1;2026-01-01T12:00:00Z;more", b";1;"]
    kept, letters = judge(spark, values, decoding, None)
    assert kept[0]["at"] == datetime(2026, 1, 1, 12, tzinfo=UTC).replace(tzinfo=None)
    assert letters[1] == letters[2] == "not csv of the declared schema"
    assert letters[3] == "id is missing"
    kept, letters = judge(spark, [b"any words", b"\xff"], Decoding(Encoding.TEXT, "line STRING"), None)
    assert (kept[0]["line"], letters) == ("any words", {1: "not UTF-8"})


def test_avro_without_a_jar(spark: SparkSession, tmp_path: Path) -> None:
    fields = [
        {"name": "id", "type": "string"},
        {"name": "amount", "type": ["null", "double"]},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
    ]
    schema = {"type": "record", "name": "order", "fields": fields}
    (tmp_path / "order.avsc").write_text(json.dumps(schema))
    decoding = Decoding(Encoding.AVRO, SCHEMA, tmp_path / "order.avsc")
    stream = io.BytesIO()
    at = datetime(2026, 1, 1, 12, tzinfo=UTC)
    fastavro.schemaless_writer(stream, fastavro.parse_schema(schema), {"id": "a", "amount": 2.5, "at": at})
    kept, letters = judge(spark, [stream.getvalue(), b"\x02", stream.getvalue() + b"x"], decoding, source(decoding))
    assert (kept[0]["id"], kept[0]["amount"], kept[0]["at"]) == ("a", 2.5, at.replace(tzinfo=None))
    assert letters == dict.fromkeys((1, 2), "not avro of the declared schema")


def test_protobuf_without_a_jar(spark: SparkSession, tmp_path: Path) -> None:
    file = descriptor_pb2.FileDescriptorProto(name="o.proto", package="shop", syntax="proto3")
    message = file.message_type.add(name="Order")
    kind = descriptor_pb2.FieldDescriptorProto
    message.field.add(name="id", number=1, type=kind.TYPE_STRING, label=kind.LABEL_OPTIONAL)
    message.field.add(name="amount", number=2, type=kind.TYPE_DOUBLE, label=kind.LABEL_OPTIONAL)
    (tmp_path / "o.desc").write_bytes(descriptor_pb2.FileDescriptorSet(file=[file]).SerializeToString())
    decoding = Decoding(Encoding.PROTOBUF, "id STRING NOT NULL, amount DOUBLE", tmp_path / "o.desc", "shop.Order")
    order = b"\x0a\x01a\x11" + b"\x00\x00\x00\x00\x00\x00\x04\x40"  # field 1 "a", field 2 the double 2.5
    kept, letters = judge(spark, [order, b"\x0a\x7fa"], decoding, None)
    assert (kept[0]["id"], kept[0]["amount"]) == ("a", 2.5)
    assert letters == {1: "not protobuf of the declared schema"}


def test_protobuf_of_every_kind(spark: SparkSession, tmp_path: Path) -> None:
    """Whole numbers of 64 bits stay numbers, zero is not null, messages nest, times are times."""
    file = descriptor_pb2.FileDescriptorProto(name="o.proto", package="shop", syntax="proto3")
    file.dependency.append("google/protobuf/timestamp.proto")
    kind = descriptor_pb2.FieldDescriptorProto
    file.enum_type.add(name="Colour").value.add(name="RED", number=0)
    line = file.message_type.add(name="Line")
    line.field.add(name="sku", number=1, type=kind.TYPE_STRING, label=kind.LABEL_OPTIONAL)
    order = file.message_type.add(name="Order")
    for number, (name, type_, type_name) in enumerate(
        [
            ("id", kind.TYPE_INT64, ""),
            ("zero", kind.TYPE_INT32, ""),
            ("colour", kind.TYPE_ENUM, ".shop.Colour"),
            ("at", kind.TYPE_MESSAGE, ".google.protobuf.Timestamp"),
            ("photo", kind.TYPE_BYTES, ""),
        ],
        1,
    ):
        order.field.add(name=name, number=number, type=type_, type_name=type_name or None, label=kind.LABEL_OPTIONAL)
    order.field.add(name="lines", number=6, type=kind.TYPE_MESSAGE, type_name=".shop.Line", label=kind.LABEL_REPEATED)
    time_file = descriptor_pb2.FileDescriptorProto.FromString(timestamp_pb2.DESCRIPTOR.serialized_pb)
    (tmp_path / "o.desc").write_bytes(descriptor_pb2.FileDescriptorSet(file=[time_file, file]).SerializeToString())
    schema = "id BIGINT, zero INT, colour STRING, at TIMESTAMP, photo BINARY, lines ARRAY<STRUCT<sku: STRING>>"
    decoding = Decoding(Encoding.PROTOBUF, schema, tmp_path / "o.desc", "shop.Order")
    at = b"\x22\x06" + timestamp_pb2.Timestamp(seconds=1767225600).SerializeToString()
    value = b"\x08\xff\xff\xff\xff\xff\xff\xff\x7f" + at + b"\x2a\x02\xff\x00" + b"\x32\x03\x0a\x01s"
    kept, letters = judge(spark, [value], decoding, None)
    assert letters == {}
    row = kept[0]
    assert (row["id"], row["zero"], row["colour"]) == (2**56 - 1, 0, "RED")
    assert (row["at"], bytes(row["photo"]), row["lines"][0]["sku"]) == (datetime(2026, 1, 1), b"\xff\x00", "s")


def test_a_package_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("odradek.apps.pipeline.decoding.find_spec", lambda name: None)
    with pytest.raises(FatalError, match="pip install fastavro"):
        check_package(Encoding.AVRO)
    check_package(Encoding.JSON)


def test_a_schema_that_is_none_is_told(spark: SparkSession) -> None:
    with pytest.raises(FatalError, match="invalid schema"):
        columns_of(Decoding(Encoding.JSON, "id STRIN"))


def test_a_row_that_is_too_large_for_its_topic_goes_to_the_dead_letters(spark: SparkSession) -> None:
    sink = TopicSink(name="s", view="v", mode=Mode.APPEND, topic="t", key=("id",), columns=())
    given = [("a", "small"), ("b", "x" * (VALUE_BYTES_MAX + 1)), ("c" * (KEY_BYTES_MAX + 1), "large by its key")]
    rows = spark.createDataFrame(given, "id STRING, text STRING")
    small, large, large_key = as_records(rows, sink, "dead").collect()
    assert (small["topic"], bytes(small["key"]), small["headers"]) == ("t", b"a", [])
    assert json.loads(small["value"]) == {"id": "a", "text": "small"}
    assert (large["topic"], bytes(large["key"]), len(large["value"])) == ("dead", b"b", VALUE_BYTES_MAX)
    assert (large_key["topic"], large_key["key"]) == ("dead", None)
    for row in (large, large_key):
        told = {h["key"]: bytes(h["value"]).decode() for h in row["headers"]}
        reason = "too large for topic t: more than 900,000 bytes, or 90,000 of key"
        assert told == {"odradek.reason": reason, "odradek.sink": "s"}


def test_a_huge_record_becomes_a_letter_that_fits(spark: SparkSession) -> None:
    rows = [(b"k" * (KEY_BYTES_MAX + 5), b"x" * (VALUE_BYTES_MAX + 5), "t", 0, 0, WRITTEN)]
    judgement = judged(spark.createDataFrame(rows, RECORD), Decoding(Encoding.JSON, SCHEMA))
    (letter,) = dead_letters(judgement, "s").collect()
    assert (letter["key"], len(letter["value"])) == (None, VALUE_BYTES_MAX)
    assert {h["key"]: bytes(h["value"]) for h in letter["headers"]}["odradek.bytes"] == b"900005"

"""Keys and values as `consume` shows them: as they are, decoded, or as text of their bytes."""

import json
from pathlib import Path

import pytest

from odradek.apps.cli.record_decoding import decodings, read_schemas
from odradek.apps.cli.record_formats import RecordFormat, record_printer
from odradek.apps.cli.record_text import ConsumedRecord, Decode
from odradek.apps.cli.usage import WrongUsage

SCHEMA = '{"type": "record", "name": "Order", "fields": [{"name": "amount", "type": "long"}]}'
ORDER = b"\x54"  # amount 42
FRAMED = b"\0\0\0\0\x2a" + ORDER


def record(value: bytes | None, key: bytes | None = b"k", topic: str = "orders") -> ConsumedRecord:
    return ConsumedRecord(topic, 0, 7, 1_700_000_000_000, key, value, ())


def value_in_json(how: Decode, value: bytes | None, **files: str) -> object:
    decoding = decodings(how, read_schemas(f"{topic}={path}" for topic, path in files.items()), ["orders"])
    line = record_printer(RecordFormat.JSON, None, "%s", decoding)(record(value))
    return json.loads(line)["value"]


@pytest.fixture
def schema(tmp_path: Path) -> str:
    path = tmp_path / "order.avsc"
    path.write_text(SCHEMA)
    return str(path)


@pytest.mark.parametrize(
    ("how", "value", "shown"),
    [
        (Decode.AUTO, b'{"a": 1}', '{"a": 1}'),
        (Decode.TEXT, b"a\xff", "a\\xff"),
        (Decode.JSON, b'{"a": 1}', {"a": 1}),
        (Decode.JSON, b"plain", "plain"),
        (Decode.HEX, b"\x00\xfe", "00fe"),
        (Decode.BASE64, b"\x00\xfe", "AP4="),
        (Decode.JSON, None, None),
        (Decode.HEX, None, None),
    ],
)
def test_values_in_json(how: Decode, value: bytes | None, shown: object) -> None:
    assert value_in_json(how, value) == shown


@pytest.mark.parametrize("how", [Decode.AUTO, Decode.AVRO])
@pytest.mark.parametrize("value", [ORDER, FRAMED])
def test_avro_by_a_schema_file(how: Decode, value: bytes, schema: str) -> None:
    assert value_in_json(how, value, orders=schema) == {"amount": 42}


def test_one_schema_for_every_topic(schema: str) -> None:
    decoding = decodings(Decode.AVRO, read_schemas([schema]), ["orders"])
    assert record_printer(RecordFormat.TEXT, None, "%k %s\\n", decoding)(record(ORDER)) == b'k {"amount": 42}\n'


def test_values_that_do_not_fit_are_shown_with_a_reason(schema: str) -> None:
    decoding = decodings(Decode.AVRO, read_schemas([schema]), ["orders"])
    assert decoding["orders"].as_documents(record(b"\xff")) == ("k", "\\xff")
    assert "not Avro of this schema" in decoding["orders"].problem


@pytest.mark.parametrize(
    ("how", "schemas", "told"),
    [
        (Decode.AVRO, [], "there is no schema of topic orders"),
        (Decode.HEX, ["{schema}"], "takes no schema"),
        (Decode.AUTO, ["/nosuch.avsc"], "can't be read"),
    ],
)
def test_wrong_options(how: Decode, schemas: list[str], told: str, schema: str) -> None:
    with pytest.raises(WrongUsage, match=told):
        decodings(how, read_schemas(text.format(schema=schema) for text in schemas), ["orders"])

"""Exports: text as text, documents as documents, other bytes as base64."""

import csv
import io
import json

import pytest

pytest.importorskip("markupsafe", reason="the console needs odradek[console]")

from odradek.apps.console.views.exports import COLUMNS, csv_text, json_lines
from odradek.apps.records.decoders import AUTOMATIC
from odradek.apps.records.filters import SeenRecord
from odradek.protocol.records import Record

RECORDS = [
    SeenRecord(0, Record(1, 1_700_000_000_000, b"Karl", b'{"a": 1}', (("h", b"\xff"),)), AUTOMATIC),
    SeenRecord(1, Record(2, 0, None, b"=1+1,\n", ()), AUTOMATIC),
    SeenRecord(1, Record(3, 0, b"\xff", None, ()), AUTOMATIC),
    SeenRecord(1, Record(4, 0, b"\r=1", b"\t@1", ()), AUTOMATIC),
]


def test_json_lines_can_be_read_back() -> None:
    first, second, third, _ = map(json.loads, json_lines("letters", RECORDS).splitlines())
    assert (first["topic"], first["key"], first["value"]) == ("letters", "Karl", {"a": 1})
    assert (first["timestamp"], first["headers"]) == ("2023-11-14T22:13:20.000+00:00", [["h", {"base64": "/w=="}]])
    assert (second["key"], second["value"]) == (None, "=1+1,\n")
    assert (third["key"], third["value"]) == ({"base64": "/w=="}, None)


def test_csv_has_a_line_for_each_record_and_no_formula() -> None:
    head, *rows = csv.reader(io.StringIO(csv_text("letters", RECORDS)))
    assert tuple(head) == COLUMNS
    assert [row[4] for row in rows] == ['{"a": 1}', "'=1+1,\n", "", "'\t@1"]

import pytest

pytest.importorskip("markupsafe", reason="the console needs odradek[console]")

from odradek.apps.console.readings.records import Found
from odradek.apps.console.views.record_columns import DEFAULT_COLUMNS, RecordLines, parse_columns
from odradek.apps.console.views.record_text import LINE_LENGTH, SHOWN_BYTES_MAX, in_a_line, whole
from odradek.apps.console.views.records import parse_headers, parse_value, parse_when, records_html
from odradek.apps.records.decoders import AUTOMATIC
from odradek.apps.records.filters import SeenRecord
from odradek.protocol.records import Record


@pytest.mark.parametrize(
    ("data", "kind", "shown"),
    [
        (None, "null", "tombstone"),
        (b'{"b":1,"a":[2]}', "JSON", '{\n  "b": 1,\n  "a": [\n    2\n  ]\n}'),
        (b"{broken", "text", "{broken"),
        ("Přeměna".encode(), "text", "Přeměna"),
        (b"\xff\xfe", "bytes", "00000000  ff fe"),
        (b"\x00\x01", "bytes", "00000000  00 01"),
        (b"\x1b[31mred", "bytes", "1b 5b 33"),
    ],
)
def test_a_value_is_shown_for_what_it_is(data: bytes | None, kind: str, shown: str) -> None:
    told = whole(data)
    assert told[0] == kind
    assert shown in told[1]


def test_what_is_long_is_cut_and_says_so() -> None:
    _, text = whole("ž".encode() * (10 << 20))
    assert len(text) < SHOWN_BYTES_MAX + 100
    assert text.endswith("more")
    _, dump = whole(b"\xff" * (10 << 20))
    assert len(dump) < SHOWN_BYTES_MAX * 2
    assert dump.endswith("more")
    assert len(in_a_line("ž".encode() * (1 << 20))) <= LINE_LENGTH + 1


def test_deep_json_is_not_climbed_into() -> None:
    assert whole(b"[" * 100_000 + b"]" * 100_000)[0] == "text"


def test_a_record_cannot_become_part_of_the_page() -> None:
    hostile = b"</pre><script>alert(1)</script>"
    record = Record(0, 0, hostile, hostile, (("<i>", hostile),))
    html = records_html(Found((SeenRecord(0, record, AUTOMATIC),), 1, is_complete=True), "<i>")
    assert "<script" not in html
    assert "<i>" not in html


def test_times_are_read_as_people_write_them() -> None:
    now = 1_700_000_000_000
    assert parse_when("15m", now) == now - 900_000
    assert parse_when("15m ago", now) == now - 900_000
    assert parse_when("2d", now) == now - 2 * 86_400_000
    assert parse_when("1700000000000", 0) == now
    assert parse_when("2026-01-31 14:00", 0) < parse_when("2026-01-31 14:01", 0)
    for wrong in ("", "soon", "-5m", "12", "99999-01-01", "9" * 30, f"{'9' * 20}d"):
        with pytest.raises(ValueError, match="is not a time like"):
            parse_when(wrong, now)


def test_what_is_typed_becomes_bytes_or_a_sentence() -> None:
    assert parse_value("00 ff", "hex") == b"\x00\xff"
    assert parse_value("x", "null") is None
    assert parse_value("ž", "text") == "ž".encode()
    for text, kind, said in (("0", "hex", "not hex"), ("{", "json", "not JSON")):
        with pytest.raises(ValueError, match=said):
            parse_value(text, kind)
    assert parse_headers("a: 1\n\n b:\n") == (("a", b"1"), ("b", b""))
    with pytest.raises(ValueError, match="is not a header"):
        parse_headers("no colon")


def _seen(value: bytes, *headers: tuple[str, bytes | None]) -> SeenRecord:
    return SeenRecord(3, Record(7, 0, b"k", value, list(headers)), AUTOMATIC)


def test_without_a_choice_the_usual_columns_are_shown() -> None:
    assert parse_columns("") == parse_columns(DEFAULT_COLUMNS)
    head = RecordLines(parse_columns("")).head()
    titles = ["Partition:Offset", "Timestamp", "Key", "Value", "Headers", "Size"]
    assert [head.index(f">{title}<") for title in titles] == sorted(head.index(f">{title}<") for title in titles)


def test_columns_are_fields_of_documents_and_headers() -> None:
    lines = RecordLines(parse_columns("value.amount, value.customer.name, header.trace, value.amount"))
    seen = _seen(b'{"amount": 12.5, "customer": {"name": "<Ann>"}}', ("trace", b"a"), ("trace", b"b"))
    line = lines.line(seen)
    assert ">3 : 7<" in line
    assert ">12.5<" in line
    assert ">&lt;Ann&gt;<" in line
    assert ">a, b<" in line
    assert line.count("<span") == 4  # a name that is given twice is one column
    assert lines.line(_seen(b"no document")).count("></span>") == 3


def test_a_phone_shows_the_place_and_one_column() -> None:
    for text, shown in (("key, value, size", "Value"), ("header.a, header.b", "header.a")):
        head = RecordLines(parse_columns(text)).head()
        visible = [part for part in head.split("<span")[1:] if "hide-small" not in part]
        assert len(visible) == 2
        assert f">{shown}<" in visible[1]


@pytest.mark.parametrize("text", ["nothing", "value.a, body", ",".join(f"value.f{n}" for n in range(11)), "x" * 2000])
def test_columns_that_cannot_be_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"field|columns"):
        parse_columns(text)

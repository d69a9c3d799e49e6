"""Standard output, in each format."""

import json

import pytest

from odradek.apps.cli.output import Format, bytes_as_text, cell, json_lines, print_fields, print_rows, progress
from odradek.apps.figures import size_text

ROWS = [
    {"topic": "a", "partitions": 3, "isr": [0, 1], "internal": False, "rate": 1234.5, "extra": "kept"},
    {"topic": "[bold]b", "partitions": 1, "isr": [], "internal": True, "rate": None, "extra": None},
]
COLUMNS = ("topic", "partitions", "isr", "internal", "rate")


def test_json_has_every_key(capsys: pytest.CaptureFixture[str]) -> None:
    print_rows(ROWS, COLUMNS, Format.JSON)
    assert json.loads(capsys.readouterr().out) == ROWS


def test_csv_is_for_programs(capsys: pytest.CaptureFixture[str]) -> None:
    print_rows(ROWS, COLUMNS, Format.CSV)
    assert capsys.readouterr().out == ('topic,partitions,isr,internal,rate\na,3,"0,1",false,1234.5\n[bold]b,1,,true,\n')


def test_a_table_without_a_terminal_has_no_colours_and_no_folding(capsys: pytest.CaptureFixture[str]) -> None:
    print_rows([{"topic": "x" * 200}], ("topic",), Format.TABLE, title="y" * 150)
    out = capsys.readouterr().out
    assert "x" * 200 in out
    assert "y" * 150 in out
    assert "\x1b" not in out


def test_a_table_shows_markup_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    print_rows(ROWS, COLUMNS, Format.TABLE)
    assert "[bold]b" in capsys.readouterr().out


def test_an_empty_table_says_so_beside_the_data(capsys: pytest.CaptureFixture[str]) -> None:
    print_rows([], COLUMNS, Format.TABLE, empty="there are none")
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "there are none\n")


def test_an_empty_list_is_still_json(capsys: pytest.CaptureFixture[str]) -> None:
    print_rows([], COLUMNS, Format.JSON, empty="there are none")
    assert json.loads(capsys.readouterr().out) == []


def test_fields(capsys: pytest.CaptureFixture[str]) -> None:
    print_fields({"records": 3, "per_second": 1.5}, Format.TABLE)
    assert capsys.readouterr().out.split() == ["records", "3", "per", "second", "1.50"]
    print_fields({"records": 3}, Format.CSV)
    assert capsys.readouterr().out == "records\n3\n"


def test_progress_draws_nothing_without_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    with progress("working", 10) as show:
        show(10)
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "")


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, ""), (True, "yes"), (1234.5, "1,234.50"), ({"a": 1}, "a=1"), ((1, 2), "1,2"), (7, "7"), ("x,y", "x,y")],
)
def test_cells(value: object, text: str) -> None:
    assert cell(value) == text


def test_bytes_and_sizes() -> None:
    assert bytes_as_text(b"a\xff\xc3\xbc") == "a\\xffü"
    assert bytes_as_text(None) is None
    assert [size_text(size) for size in (5, 2048, 3 * 2**20, 2**31)] == ["5 B", "2.0 KB", "3.0 MB", "2.0 GB"]


def test_a_wide_table_has_every_key(capsys: pytest.CaptureFixture[str]) -> None:
    print_rows(ROWS, COLUMNS, Format.WIDE)
    assert capsys.readouterr().out.splitlines()[0].split() == [*COLUMNS, "extra"]


def test_watched_json_is_a_line_each(capsys: pytest.CaptureFixture[str]) -> None:
    with json_lines():
        print_rows(ROWS, COLUMNS, Format.JSON)
        print_fields({"a": 1}, Format.JSON)
    assert [json.loads(line) for line in capsys.readouterr().out.splitlines()] == [ROWS, {"a": 1}]

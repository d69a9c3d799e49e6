"""Tables on a terminal: words stay whole, whatever its width."""

from collections.abc import Callable
from io import StringIO

import pytest

from odradek.apps.cli import terminal
from odradek.apps.text_table import Cell, Column, display_width, folded_table

HEADINGS = ("broker", "address", "rack", "role", "leaders", "out of sync", "disk")
NUMERIC = (True, False, False, False, True, True, False)
ROWS = [
    ("0", "127.0.0.1:9092", "", "", "25", "0", "23%"),
    ("1", "127.0.0.1:9093", "", "controller", "25", "0", "23%"),
]


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[[int], list[str]]:
    def show(width: int) -> list[str]:
        monkeypatch.setattr(terminal, "width_of", lambda stream: width)
        terminal.print_folded(HEADINGS, NUMERIC, ROWS, "")
        lines = capsys.readouterr().out.splitlines()
        assert max(map(len, lines)) <= width
        return lines

    return show


@pytest.mark.parametrize("width", [20, 30, 40, 54, 55, 60, 70, 80, 120])
def test_no_word_is_broken(shown: Callable[[int], list[str]], width: int) -> None:
    words = set(" ".join(shown(width)).split())
    assert words >= {"127.0.0.1:9092", "127.0.0.1:9093", "controller", "broker", "23%"}


def test_a_narrow_table_leaves_out_what_is_empty_and_folds_between_words(shown: Callable[[int], list[str]]) -> None:
    assert any("rack" in line for line in shown(120))
    narrow = shown(55)
    assert not any("rack" in line for line in narrow)
    assert sum("127.0.0.1:9093 controller" in line for line in narrow) == 1


def test_where_no_table_fits_each_row_is_a_block(shown: Callable[[int], list[str]]) -> None:
    lines = shown(30)
    assert "address     127.0.0.1:9093" in lines
    assert "role        controller" in lines
    assert sum(line.startswith("role") for line in lines) == 1


def test_wide_characters_take_two_places() -> None:
    columns = [Column("名", (Cell("日本"), Cell("a"))), Column("n", (Cell("1"), Cell("22")), "right")]
    lines = folded_table(columns, [column.width for column in columns], 3, lambda text, style: text)
    assert [display_width(line) for line in lines] == [9, 9, 9, 9]


def test_a_progress_line_is_drawn_and_removed() -> None:
    class Tty(StringIO):
        def isatty(self) -> bool:
            return True

    stream = Tty()
    line = terminal.ProgressLine(stream)
    line.show("writing", 0.5, "5 of 10 records")
    line.close()
    drawn = stream.getvalue()
    assert drawn.startswith("\rwriting ━")
    assert "5 of 10 records" in drawn
    assert drawn.endswith("\r\x1b[K")
    quiet = StringIO()
    terminal.ProgressLine(quiet).show("writing", 0.5)
    assert quiet.getvalue() == ""

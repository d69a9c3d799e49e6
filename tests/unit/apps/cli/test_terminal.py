"""Tables on a terminal: words stay whole, whatever its width."""

import io

import pytest
from rich.console import Console

from odradek.apps.cli import terminal

HEADINGS = ("broker", "address", "rack", "role", "leads", "out of sync", "disk")
NUMERIC = (True, False, False, False, True, True, False)
ROWS = [
    ("0", "127.0.0.1:9092", "", "", "25", "0", "23%"),
    ("1", "127.0.0.1:9093", "", "controller", "25", "0", "23%"),
]


def shown(monkeypatch: pytest.MonkeyPatch, width: int) -> list[str]:
    out = io.StringIO()
    monkeypatch.setattr(terminal, "data_console", lambda: Console(file=out, width=width, highlight=False))
    terminal.print_folded(HEADINGS, NUMERIC, ROWS, "")
    lines = out.getvalue().splitlines()
    assert max(map(len, lines)) <= width
    return lines


@pytest.mark.parametrize("width", [20, 30, 40, 54, 55, 60, 70, 80, 120])
def test_no_word_is_broken(monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    words = set(" ".join(shown(monkeypatch, width)).split())
    assert words >= {"127.0.0.1:9092", "127.0.0.1:9093", "controller", "broker", "23%"}


def test_a_narrow_table_leaves_out_what_is_empty_and_folds_between_words(monkeypatch: pytest.MonkeyPatch) -> None:
    assert any("rack" in line for line in shown(monkeypatch, 120))
    narrow = shown(monkeypatch, 55)
    assert not any("rack" in line for line in narrow)
    assert sum("127.0.0.1:9093 controller" in line for line in narrow) == 1


def test_where_no_table_fits_each_row_is_a_block(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = shown(monkeypatch, 30)
    assert "address     127.0.0.1:9093" in lines
    assert "role        controller" in lines
    assert sum(line.startswith("role") for line in lines) == 1

"""Log lines stay lines, whatever values they show."""

import pytest

from odradek.base.logs import get_logger, logged_exceptions, render_text


def line(**values: object) -> str:
    return render_text(0.0, "info", "part", "event", dict(values))


def test_a_value_is_shown_as_it_is() -> None:
    assert line(topic="orders", offset=7) == "1970-01-01T00:00:00.000Z INFO    part: event topic=orders offset=7\n"


def test_a_value_with_spaces_is_quoted() -> None:
    assert line(why="no room", name="", sum="a=b", who="zoë k").endswith(
        ' why="no room" name="" sum="a=b" who="zoë k"\n'
    )


def test_nothing_that_a_terminal_would_obey() -> None:
    assert line(topic="a\x1b[2J\0\nb\x9b").endswith(' topic="a\\u001b[2J\\u0000\\nb\\u009b"\n')


def test_a_long_value_is_cut() -> None:
    shown = line(topic="n" * 30_000)
    assert len(shown) < 2200
    assert "(30000 characters)" in shown


def test_a_traceback_follows_its_line() -> None:
    assert line(task="flush", traceback="Traceback …\nOSError").endswith(" task=flush\nTraceback …\nOSError\n")


def test_exceptions_are_counted(capsys: pytest.CaptureFixture[str]) -> None:
    before = logged_exceptions()
    try:
        raise LookupError("not foreseen")
    except LookupError:
        get_logger("test").exception("replica fetcher failed, restarting")
    get_logger("test").error("another error")
    assert logged_exceptions() == before + 1
    assert "LookupError" in capsys.readouterr().err

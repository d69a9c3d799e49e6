"""`--watch`, without a cluster: the command is run again until it is interrupted."""

import sys
from typing import Annotated

import pytest

from odradek.apps.cli import main, watch
from odradek.apps.cli.grammar.declaration import Option
from odradek.apps.cli.grammar.noun import command
from odradek.client.broker_client import ConnectionFailed


def run(monkeypatch: pytest.MonkeyPatch, outcomes: list[Exception | None], *arguments: str) -> tuple[int, list[str]]:
    """Runs a command that ends as listed, one after the other; its exit code, and the names it had."""
    called: list[str] = []

    @command()
    @watch.watchable
    def show(name: Annotated[str, Option("--name")] = "x") -> None:
        called.append(name)
        outcome = outcomes.pop(0)
        if outcome:
            raise outcome

    def sleep(_seconds: float) -> None:
        if not outcomes:
            raise KeyboardInterrupt

    monkeypatch.setattr(watch.time, "sleep", sleep)
    monkeypatch.setitem(main.COMMANDS, "show", main.Entry(__name__, "show", ""))
    monkeypatch.setattr(sys.modules[__name__], "show", show, raising=False)
    return main.run(["show", *arguments]), called


def test_without_it_a_command_runs_once(monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(monkeypatch, [None, None], "--name", "a") == (0, ["a"])


def test_with_it_until_it_is_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(monkeypatch, [None, None, None], "--watch", "2", "--name", "a") == (130, ["a", "a", "a"])


def test_a_cluster_that_is_gone_for_a_while_is_asked_again(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, [None, ConnectionFailed("gone"), None], "--watch", "1") == (130, ["x", "x", "x"])
    assert "warning: gone" in capsys.readouterr().err


def test_one_that_was_never_there_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(monkeypatch, [ConnectionFailed("gone")], "--watch", "1") == (1, ["x"])

"""`--watch`, without a cluster: the command is run again until it is interrupted."""

import pytest
import typer

from odradek.cli import watch
from odradek.network.broker_client import ConnectionFailed


def run(monkeypatch: pytest.MonkeyPatch, outcomes: list[Exception | None], *arguments: str) -> list[str]:
    """Runs a command that ends as listed, one after the other; the names it was called with."""
    called: list[str] = []
    app = typer.Typer()

    @app.command()
    @watch.watchable
    def show(name: str = "x") -> None:
        called.append(name)
        outcome = outcomes.pop(0)
        if outcome:
            raise outcome

    def sleep(_seconds: float) -> None:
        if not outcomes:
            raise KeyboardInterrupt

    monkeypatch.setattr(watch.time, "sleep", sleep)
    try:
        app(args=list(arguments), standalone_mode=False)
    except KeyboardInterrupt:
        called.append("interrupted")
    return called


def test_without_it_a_command_runs_once(monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(monkeypatch, [None, None], "--name", "a") == ["a"]


def test_with_it_until_it_is_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(monkeypatch, [None, None, None], "--watch", "2", "--name", "a") == ["a", "a", "a", "interrupted"]


def test_a_cluster_that_is_gone_for_a_while_is_asked_again(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, [None, ConnectionFailed("gone"), None], "--watch", "1")[-1] == "interrupted"
    assert "warning: gone" in capsys.readouterr().err


def test_one_that_was_never_there_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConnectionFailed):
        run(monkeypatch, [ConnectionFailed("gone")], "--watch", "1")

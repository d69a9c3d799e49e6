"""Suggestions of a shell, without a cluster."""

import subprocess

import pytest

from odradek.apps.cli import main
from odradek.apps.cli.completion import suggestions


@pytest.mark.parametrize(
    ("words", "suggested"),
    [
        (["topi"], ["topics"]),
        (["kafka-top"], ["kafka-topics"]),
        (["topics", "de"], ["delete", "delete-records", "describe"]),
        (["groups", "reset", "--to-e"], ["--to-earliest"]),
        (["brokers", "--format", ""], ["csv", "json", "table", "wide"]),
        (["configs", "describe", "to"], ["topics"]),
        (["kafka-topics", "--under-min"], ["--under-min-isr-partitions"]),
        (["nosuch", ""], []),
        (["kafka-nosuch", "--"], []),
    ],
)
def test_suggestions(words: list[str], suggested: list[str]) -> None:
    assert suggestions(words) == suggested


def test_a_cluster_that_is_not_there_suggests_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ODRADEK_BOOTSTRAP_SERVER", "127.0.0.1:1")
    assert suggestions(["consume", "--topic", ""]) == []


def test_bash_takes_its_script(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["completion", "bash"]) == 0
    script = capsys.readouterr().out
    checked = subprocess.run(["bash", "-n"], input=script, capture_output=True, text=True, check=False)
    assert (checked.returncode, checked.stderr) == (0, "")


def test_another_shell_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["completion", "cmd"]) == 2
    assert "'cmd' is not one of bash, zsh, fish" in capsys.readouterr().err

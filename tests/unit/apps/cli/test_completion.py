"""Suggestions of a shell, without a cluster."""

import subprocess
from pathlib import Path

import pytest

from odradek.apps.cli import completion, default_cluster, main
from odradek.apps.cli.completion import suggestions
from odradek.client.broker_client import ConnectionFailed


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
        (["topic", "cr"], ["create"]),
        (["nosuch", ""], []),
        (["-o", "json", "topi"], ["topics"]),
        (["topics", "-b", "127.0.0.1:1", "cr"], ["create"]),
        (["kafka-nosuch", "--"], []),
    ],
)
def test_suggestions(words: list[str], suggested: list[str]) -> None:
    assert suggestions(words) == suggested


def test_a_cluster_that_is_not_there_suggests_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ODRADEK_BOOTSTRAP_SERVER", "127.0.0.1:1")
    assert suggestions(["consume", "--topic", ""]) == []


@pytest.mark.parametrize(
    "words",
    [
        ["consume", ""],
        ["consume", "-t", ""],
        ["topics", "describe", ""],
        ["groups", "reset", "shop", "-t", ""],
        ["reassign", "plan", ""],
    ],
)
def test_names_of_topics_wherever_one_may_stand(words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr(completion, "_names_of", lambda kind, before: asked.append(kind) or [])
    suggestions(words)
    assert asked == ["topic"]


def test_names_are_those_of_the_cluster_that_the_command_would_ask(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.delenv("ODRADEK_BOOTSTRAP_SERVER", raising=False)
    monkeypatch.chdir(tmp_path)
    default_cluster.write_profiles(default_cluster.Profiles().put("far", default_cluster.Profile("far:9092")))
    asked: list[str] = []

    def client(bootstrap: str, **options: object) -> None:
        asked.append(bootstrap)
        raise ConnectionFailed("no broker answers")

    monkeypatch.setattr(completion, "ClusterClient", client)
    assert suggestions(["consume", ""]) == suggestions(["consume", "-b", "near:1", ""]) == []
    assert suggestions(["consume", "--profile", "nosuch", ""]) == []
    assert suggestions(["consume", "--profile", "far", ""]) == []
    assert asked == ["127.0.0.1:9092", "near:1", "far:9092"]


def test_bash_takes_its_script(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["completion", "bash"]) == 0
    script = capsys.readouterr().out
    checked = subprocess.run(["bash", "-n"], input=script, capture_output=True, text=True, check=False)
    assert (checked.returncode, checked.stderr) == (0, "")


def test_another_shell_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["completion", "cmd"]) == 2
    assert "'cmd' is not one of bash, zsh, fish" in capsys.readouterr().err

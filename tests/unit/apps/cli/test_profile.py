"""Profiles, and which cluster a command asks."""

import json
import os
from pathlib import Path

import pytest

from odradek.apps.cli import main
from odradek.apps.cli.default_cluster import DefaultCluster, Profile, Profiles, default_cluster, read_profiles
from odradek.client.command_config import COMMAND_CONFIG_VARIABLE
from odradek.local.cluster_processes import LocalCluster

NOBODY = "127.0.0.1:1"


@pytest.fixture(autouse=True)
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A home without profiles, a directory without a cluster, an environment that the test may change."""
    for name in ("ODRADEK_BOOTSTRAP_SERVER", "ODRADEK_PROFILE", COMMAND_CONFIG_VARIABLE):
        monkeypatch.setenv(name, "")  # so that it is as before at the end, whatever a command sets
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.chdir(tmp_path)


def cluster_in(directory: Path, port: int) -> None:
    (directory / "broker-0").mkdir(parents=True)
    (directory / "broker-0" / "server.properties").write_text(
        f"broker.id=0\nlisteners=PLAINTEXT://127.0.0.1:{port}\nzookeeper.connect=127.0.0.1:2\n"
    )


def test_profiles_are_kept(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    config = tmp_path / "client.properties"
    config.write_text("security.protocol=PLAINTEXT\n")
    assert main.run(["profile", "create", "prod", "-b", "kafka-1:9092", "--command-config", "client.properties"]) == 0
    assert main.run(["profile", "create", "trial", "-b", NOBODY, "--use"]) == 0
    assert read_profiles() == Profiles(
        "trial", {"prod": Profile("kafka-1:9092", str(config)), "trial": Profile(NOBODY)}
    )
    capsys.readouterr()
    assert main.run(["profile", "list", "-o", "json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [(row["profile"], row["in_use"]) for row in rows] == [("prod", False), ("trial", True)]
    assert main.run(["profile", "use", "prod"]) == 0
    assert main.run(["profile", "show"]) == 0
    assert "the profile in use, prod" in capsys.readouterr().out
    assert main.run(["profile", "delete", "prod"]) == 0
    assert read_profiles() == Profiles(None, {"trial": Profile(NOBODY)})


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (["create", "a/b", "-b", NOBODY], 2, "is not a name"),
        (["create", "a", "-b", "x:y"], 2, "is not HOST:PORT"),
        (["create", "a"], 2, "--bootstrap-server is required"),
        (["create", "a", "-b", NOBODY, "--command-config", "nosuch"], 1, "nosuch"),
        (["create", "there", "-b", NOBODY], 1, "--replace changes it"),
        (["use", "nosuch"], 1, "there is no profile 'nosuch'; there are: there"),
        (["use"], 2, "either NAME or --none is required"),
        (["delete", "nosuch"], 1, "there is no profile 'nosuch'"),
    ],
)
def test_what_is_refused(words: list[str], code: int, told: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["profile", "create", "there", "-b", NOBODY]) == 0
    assert main.run(["profile", *words]) == code
    assert told in capsys.readouterr().err
    assert read_profiles().named == {"there": Profile(NOBODY)}


def test_the_first_of_them_holds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert default_cluster().bootstrap == "127.0.0.1:9092"
    main.run(["profile", "create", "used", "-b", "used:1", "--use"])
    main.run(["profile", "create", "other", "-b", "other:1"])
    assert default_cluster() == DefaultCluster("used:1", "the profile in use, used")
    cluster_in(tmp_path / "odradek-data", 3)
    assert default_cluster().bootstrap == "used:1", "a cluster that doesn't run is not asked"
    monkeypatch.setattr(LocalCluster, "running", True)
    assert default_cluster() == DefaultCluster("127.0.0.1:3", "the cluster in odradek-data")
    main.run(["profile", "use", "used"])
    hidden = "commands ask 127.0.0.1:3 here: the cluster in odradek-data comes before the profile in use"
    assert hidden in capsys.readouterr().err
    monkeypatch.setenv("ODRADEK_PROFILE", "other")
    assert default_cluster().bootstrap == "other:1"
    monkeypatch.setenv("ODRADEK_BOOTSTRAP_SERVER", "address:1")
    assert default_cluster().bootstrap == "address:1"


@pytest.mark.parametrize(
    ("words", "asked"),
    [
        (["--profile", "named"], "127.0.0.1:4"),
        (["--data", "three"], "127.0.0.1:5"),
        (["--data", "three", "--profile", "named"], "127.0.0.1:5"),
        (["--profile", "named", "-b", NOBODY], NOBODY),
    ],
)
@pytest.mark.parametrize("before", [False, True])
def test_words_are_stronger_than_the_environment(
    words: list[str],
    asked: str,
    before: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    cluster_in(tmp_path / "three", 5)
    main.run(["profile", "create", "named", "-b", "127.0.0.1:4"])
    monkeypatch.setenv("ODRADEK_BOOTSTRAP_SERVER", "127.0.0.1:6")
    command = [*words, "topics", "list"] if before else ["topics", "list", *words]
    capsys.readouterr()
    assert main.run(command) == 1
    assert f"no broker answers at {asked}" in capsys.readouterr().err


def test_settings_of_a_profile_go_with_its_own_address(tmp_path: Path) -> None:
    (tmp_path / "client.properties").write_text("security.protocol=PLAINTEXT\n")
    main.run(["profile", "create", "p", "-b", NOBODY, "--command-config", "client.properties", "--use"])
    assert main.run(["topics", "list", "-b", "127.0.0.1:7"]) == 1
    assert not os.environ[COMMAND_CONFIG_VARIABLE], "another cluster never sees them"
    assert main.run(["topics", "list"]) == 1
    assert os.environ[COMMAND_CONFIG_VARIABLE] == str(tmp_path / "client.properties")


def test_a_file_that_is_not_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "config" / "odradek").mkdir(parents=True)
    (tmp_path / "config" / "odradek" / "profiles.json").write_text("[]")
    assert main.run(["profile", "list"]) == 1
    assert "profiles.json can't be used" in capsys.readouterr().err

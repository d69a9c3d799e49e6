import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from odradek import __version__
from odradek.apps.cli import main
from odradek.base.errors import ConfigError, ErrorCode, FatalError, KafkaError
from odradek.client.broker_client import ConnectionFailed
from odradek.local.cluster_processes import LocalCluster
from odradek.native.load import description


def _imported_by(code: str) -> set[str]:
    outcome = subprocess.run(
        [sys.executable, "-c", f"{code}\nimport sys; print(*sys.modules)"], capture_output=True, text=True, check=True
    )
    return {name.partition(".")[0] for name in outcome.stdout.splitlines()[-1].split()}


def test_help_lists_every_command_without_loading_any(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["--help"]) == 0
    printed = capsys.readouterr().out
    assert all(f"  {name} " in printed for name in [*main.COMMANDS, "broker"])
    assert not _imported_by("from odradek.apps.cli.main import run; run(['--help'])") & {"rich", "kazoo", "inspect"}


def test_a_command_loads_only_what_it_runs() -> None:
    loaded = _imported_by("from odradek.apps.cli.main import run; run(['topics', 'list', '-b', '127.0.0.1:1'])")
    assert not loaded & {"rich", "kazoo", "asyncio", "pyspark"}


def test_help_and_manual_of_every_command_need_no_extra() -> None:
    """The base install has neither Spark nor NiceGUI."""
    extras = ("pyspark", "pyarrow", "rich", "nicegui", "duckdb", "confluent_kafka")
    absent = f"import sys; sys.modules.update(dict.fromkeys({extras}))"
    code = f"{absent}\nfrom odradek.apps.cli.catalogue import command_pages; print(*[p.name for p in command_pages()])"
    outcome = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert outcome.stdout.split() == list(main.COMMANDS), outcome.stderr


def test_the_broker_loads_no_command_line_library() -> None:
    loaded = _imported_by("import odradek.apps.cli.main, odradek.broker.main")
    assert not loaded & {"rich", "prometheus_client", "pyspark"}


def test_a_cluster_is_started_before_its_clients_are_loaded() -> None:
    """`up` loads what asks a broker while the broker loads its own modules."""
    code = "import sys, odradek.apps.cli.lifecycle; print(*[name.replace('.', '/') for name in sys.modules])"
    outcome = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    early = {"odradek/client/broker_client", "odradek/client/cluster_client", "secrets", "shutil", "ssl", "kazoo"}
    assert not early & set(outcome.stdout.split())


def test_every_command_has_its_module() -> None:
    assert [c.module for c in main.COMMANDS.values() if find_spec(c.module) is None] == []


@pytest.mark.parametrize("word", ["--version", "version"])
def test_the_version(word: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run([word]) == 0
    assert capsys.readouterr().out == f"odradek {__version__}, {description()}\n"


@pytest.mark.parametrize("words", [["help", "topics"], ["topics", "help"], ["topics", "--help"]])
def test_help_of_a_command_may_be_asked_for_in_three_ways(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(words) == 0
    assert capsys.readouterr().out.startswith("usage: odradek topics VERB")


def test_the_name_of_an_error_is_told_once(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    for message, told in (
        ("topic 'a/b': INVALID_TOPIC_EXCEPTION", "error: topic 'a/b': INVALID_TOPIC_EXCEPTION\n"),
        ("topic 'a/b' has a slash", "error: topic 'a/b' has a slash (INVALID_TOPIC_EXCEPTION)\n"),
    ):
        error = KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, message)
        monkeypatch.setattr(main, "_dispatch", lambda arguments, error=error: (_ for _ in ()).throw(error))
        assert main.run([]) == 1
        assert capsys.readouterr().err == told


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["nosuch"], "unknown command 'nosuch'; there are up, down"),
        (["-b", "127.0.0.1:1"], "a command is required after -b, as in: odradek -b 127.0.0.1:1 topics list"),
        (["topics", "ls"], "unknown command 'odradek topics ls'; did you mean list?"),
        (["quotas", "list"], "did you mean describe?"),
        (["users", "rm", "x"], "did you mean delete?"),
        (["stop"], "BROKER is required"),
        (["configs", "describe"], "TYPE is required"),
        (["configs", "describe", "topics", "--topic", "x"], "name one entity"),
        (["reassign", "execute"], "--reassignment-json-file is required"),
        (["broker"], "SERVER.PROPERTIES is required"),
        (["broker", "a", "b"], "unexpected argument 'b'"),
        (["broker", "a", "--override", "x"], "--override: takes KEY=VALUE, not 'x'"),
        (["broker", "a", "--override"], "--override: needs a value (KEY=VALUE)"),
        (["up", "--console", "8080", "--no-console"], "--console and --no-console exclude each other"),
        (["up", "--set", "x"], "'x' is not KEY=VALUE"),
        (["up", "--pipeline", "nosuch"], "--pipeline: there is no pipeline.toml in nosuch; start a project with"),
        (["up", "--nosuch"], "unknown option --nosuch"),
    ],
)
def test_wrong_usage_is_exit_code_2(arguments: list[str], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(arguments) == 2
    printed = capsys.readouterr()
    assert told in " ".join(printed.err.replace("│", " ").split())
    assert printed.out == ""


@pytest.mark.parametrize(
    "arguments",
    [
        ["topics", "list", "-b", "127.0.0.1:1"],
        ["-b", "127.0.0.1:1", "topics", "list"],
        ["--bootstrap-server=127.0.0.1:1", "topic", "list"],
        ["-b", "127.0.0.1:1", "consume", "orders"],
        ["-b", "127.0.0.1:1", "consume", "-t", "orders", "--offset", "@15m ago"],
    ],
)
def test_the_cluster_may_be_named_before_the_command(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(arguments) == 1
    assert "127.0.0.1:1" in capsys.readouterr().err


def test_overrides_may_hold_any_character(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[tuple[Path, dict[str, str]]] = []

    def run_broker(path: Path, overrides: dict[str, str]) -> int:
        started.append((path, overrides))
        return 3

    monkeypatch.setattr("odradek.broker.main.run", run_broker)
    assert main.run(["broker", "--override", "a=b=c", "server.properties", "--override=d="]) == 3
    assert started == [(Path("server.properties"), {"a": "b=c", "d": ""})]


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (FatalError("the disk is full: make room"), "error: the disk is full: make room\n"),
        (ConfigError("broker.id=x is not a number"), "error: broker.id=x is not a number\n"),
        (ConnectionFailed("no broker answers at h:1"), "error: no broker answers at h:1\n"),
        (KafkaError(ErrorCode.INVALID_PARTITIONS, "too many"), "error: too many (INVALID_PARTITIONS)\n"),
        (KafkaError(ErrorCode.NOT_CONTROLLER), "error: NOT_CONTROLLER\n"),
        (PermissionError(13, "Permission denied", "/srv/plan.json"), "error: /srv/plan.json: Permission denied\n"),
        (OSError(28, "No space left on device", b"/srv/x"), "error: /srv/x: No space left on device\n"),
    ],
)
def test_an_error_is_one_line(
    error: Exception, line: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(arguments: object) -> int:
        raise error

    monkeypatch.setattr(main, "_dispatch", fail)
    assert main.run([]) == 1
    assert capsys.readouterr().err == line
    monkeypatch.setenv("ODRADEK_DEBUG", "1")
    assert main.run([]) == 1
    assert "Traceback" in capsys.readouterr().err


def test_an_interrupt_is_quiet(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def interrupt(arguments: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(main, "_dispatch", interrupt)
    assert main.run([]) == 130
    assert capsys.readouterr().err == ""


def test_an_unknown_broker_and_nothing_to_stop(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["kill", "--data", str(tmp_path), "3"]) == 1
    assert f"error: there is no broker 3 in {tmp_path}; start one with: odradek up\n" == capsys.readouterr().err
    assert main.run(["down", "--data", str(tmp_path)]) == 0
    assert "nothing was running" in capsys.readouterr().err


def test_a_directory_that_cannot_be_made_is_told_and_another_advised(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    data = tmp_path / "file" / "data"
    assert main.run(["up", "--data", str(data), "--coordinator", "embedded", "--detach", "--no-console"]) == 1
    told = capsys.readouterr().err
    hint = "Not a directory; choose another directory with: odradek up --data DIR"
    assert told == f"error: {data / 'zookeeper' / 'coordinator'}: {hint}\n"


def test_the_cluster_in_the_current_directory_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("ODRADEK_BOOTSTRAP_SERVER", raising=False)
    monkeypatch.chdir(tmp_path)
    for broker, port in ((0, 1), (1, 2)):
        directory = tmp_path / "odradek-data" / f"broker-{broker}"
        directory.mkdir(parents=True)
        (directory / "server.properties").write_text(f"broker.id={broker}\nlisteners=PLAINTEXT://127.0.0.1:{port}\n")
    monkeypatch.setattr(LocalCluster, "running", True)
    assert main.run(["topics", "list"]) == 1
    assert "127.0.0.1:2: Connection refused, nor do the others given" in capsys.readouterr().err


def test_a_reader_that_goes_is_quiet() -> None:
    """The output is longer than a pipe holds, and the other side reads a line of it."""
    command = [sys.executable, "-m", "odradek", "man", "topics"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        told = process.stderr.read()
    assert (process.returncode, told) == (141, b"")


def test_a_package_that_is_missing_is_named_with_its_extra(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(arguments: object) -> int:
        raise ModuleNotFoundError("No module named 'pyspark'", name="pyspark")

    monkeypatch.setattr(main, "_dispatch", fail)
    assert main.run([]) == 1
    assert "needs pyspark, which is not installed: pip install 'odradek[spark]'" in capsys.readouterr().err

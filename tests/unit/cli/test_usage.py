"""Wrong command lines end with exit code 2 and a line that says what was meant; nothing is asked of a broker."""

import pytest
from typer.testing import CliRunner

from odradek.cli import consume, dump_log, offsets, perf, produce, topics

UNREACHABLE = ["--bootstrap-server", "127.0.0.1:1"]


@pytest.mark.parametrize(
    ("app", "arguments", "complaint"),
    [
        (topics.app, ["--create", "--delete", "--topic", "t"], "only one of"),
        (topics.app, ["--topic", "t"], "say what to do"),
        (topics.app, ["create"], "name the topic"),
        (topics.app, ["create", "a", "--topic", "b"], "two topics are given"),
        (topics.app, ["create", "t", "--partitions", "0"], "0 is less than 1"),
        (topics.app, ["create", "t", "--config", "x"], "'x' is not of the form NAME=VALUE"),
        (topics.app, ["create", "t", "--partitions", "1", "--replica-assignment", "0"], "can't go with"),
        (topics.app, ["--alter", "--topic", "t"], "how many partitions"),
        (topics.app, ["creat", "t"], "No such command"),
        (produce.app, [], "Missing option '--topic'"),
        (produce.app, ["--topic", "t", "--idempotent", "--acks", "1"], "--idempotent needs --acks all"),
        (produce.app, ["--topic", "t", "--header", "x"], "NAME=VALUE"),
        (produce.app, ["--topic", "t", "--property", "a=b"], "'a' is not known"),
        (produce.app, ["--topic", "t", "--compression", "rar"], "is not one of"),
        (consume.app, ["--topic", "t", "--offset", "soon"], "'soon' is not a number"),
        (consume.app, ["--topic", "t", "--offset", "5", "--from-beginning"], "say different things"),
        (consume.app, ["--topic", "t", "--format-string", "%y"], "'%y' is not known"),
        (consume.app, ["--topic", "t", "--format", "json", "--format-string", "%s"], "leave --format out"),
        (offsets.app, ["--time", "noon"], "'noon' is not latest"),
        (offsets.app, ["--partitions", "one"], "not a list of numbers"),
        (perf.app, ["produce", "--topic", "t", "--num-records", "1", "--throughput", "0"], "neither positive nor -1"),
    ],
)
def test_wrong_usage(app: object, arguments: list[str], complaint: str) -> None:
    options = [] if "creat" in arguments or not arguments else UNREACHABLE
    result = CliRunner(env={"COLUMNS": "1000", "TERM": "dumb"}).invoke(app, [*arguments, *options])  # type: ignore[arg-type]
    assert result.exit_code == 2, result.output
    assert complaint in " ".join(result.output.split())


def test_dump_log_needs_a_file() -> None:
    result = CliRunner().invoke(dump_log.app, [])
    assert result.exit_code == 2
    assert "name at least one file" in result.output


@pytest.mark.parametrize(
    ("app", "arguments"),
    [
        (topics.app, ["create"]),
        (topics.app, ["describe"]),
        (produce.app, []),
        (consume.app, []),
        (offsets.app, []),
        (dump_log.app, []),
        (perf.app, ["produce"]),
        (perf.app, ["consume"]),
    ],
)
def test_help(app: object, arguments: list[str]) -> None:
    result = CliRunner().invoke(app, [*arguments, "--help"])  # type: ignore[arg-type]
    assert result.exit_code == 0
    assert "Usage:" in result.output

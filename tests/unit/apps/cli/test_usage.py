"""Wrong command lines end with exit code 2 and a line that says what was meant; nothing is asked of a broker."""

import re
from importlib import import_module

import pytest

from odradek.apps.cli import main
from odradek.apps.cli.catalogue import CommandEntry, command_pages
from odradek.apps.cli.grammar.leading import LEADING
from odradek.apps.cli.grammar.noun import Command, Noun
from odradek.base.errors import ErrorCode, KafkaError

UNREACHABLE = ["--bootstrap-server", "127.0.0.1:1"]


@pytest.mark.parametrize(
    ("noun", "arguments", "complaint"),
    [
        ("topics", ["--create", "--delete", "--topic", "t"], "only one of"),
        ("topics", ["--topic", "t"], "a verb is required"),
        ("topics", ["create"], "name the topic"),
        ("topics", ["create", "a", "--topic", "b"], "two topics are given"),
        ("topics", ["create", "t", "--partitions", "0"], "0 is less than 1"),
        ("topics", ["create", "t", "--config", "x"], "'x' is not of the form NAME=VALUE"),
        ("topics", ["create", "t", "--partitions", "1", "--replica-assignment", "0"], "can't go with"),
        ("topics", ["--alter", "--topic", "t"], "the new number of partitions"),
        ("topics", ["creat", "t"], "did you mean create?"),
        ("produce", [], "--topic is required, as an option or as a word"),
        ("produce", ["--topic", "t", "--idempotent", "--acks", "1"], "--idempotent needs --acks all"),
        ("produce", ["--topic", "t", "--header", "x"], "NAME=VALUE"),
        ("produce", ["--topic", "t", "--property", "a=b"], "'a' is not known"),
        ("produce", ["--topic", "t", "--compression", "rar"], "is not one of"),
        ("consume", ["--topic", "t", "--offset", "soon"], "'soon' is not a number"),
        ("consume", ["--topic", "t", "--offset", "5", "--from-beginning"], "exclude each other"),
        ("consume", ["--topic", "t", "--format-string", "%y"], "'%y' is not known"),
        ("consume", ["--topic", "t", "--format", "json", "--format-string", "%s"], "leave --format out"),
        ("offsets", ["--time", "noon"], "'noon' is not a time"),
        ("offsets", ["--partitions", "one"], "not a list of numbers"),
        ("perf", ["produce", "--topic", "t", "--num-records", "1", "--throughput", "0"], "neither positive nor -1"),
        ("dump-log", ["-b"], "unknown option -b"),
        ("pipeline", ["init", "shop", "-b", "h:x"], "--bootstrap-server: 'h:x' is not HOST:PORT"),
        ("pipeline", ["init", "a b"], "NAME: 'a b' can't name a pipeline"),
        ("pipeline", ["replay", "--from-time", "noon"], "--from-time: 'noon' is not a time: give"),
        ("pipeline", ["replay", "--from-offset", "t:x:1"], "--from-offset: 't:x:1' is not earliest"),
        ("topics", ["list", "--bootstrap-server=h:70000"], "--bootstrap-server: 'h:70000' is not HOST:PORT"),
    ],
)
def test_wrong_usage(noun: str, arguments: list[str], complaint: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run([noun, *arguments, *UNREACHABLE]) == 2
    printed = capsys.readouterr()
    assert (printed.out, printed.err.count("\n")) == ("", 1)
    assert complaint in printed.err


@pytest.mark.parametrize(
    ("noun", "arguments"),
    [
        ("topics", ["create"]),
        ("topics", ["describe"]),
        ("produce", []),
        ("consume", []),
        ("offsets", []),
        ("dump-log", []),
        ("perf", ["produce"]),
        ("perf", ["consume"]),
    ],
)
def test_help(noun: str, arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run([noun, *arguments, "--help"]) == 0
    assert capsys.readouterr().out.startswith(f"usage: {' '.join(['odradek', noun, *arguments])} ")


def test_every_command_is_well_declared() -> None:
    """Names and letters once each; every option explained; defaults of the kind that is parsed."""
    for name, entry in main.COMMANDS.items():
        found = getattr(import_module(entry.module), entry.attribute)
        commands = found.verbs.values() if isinstance(found, Noun) else [found] if isinstance(found, Command) else []
        for command in commands:
            spelled = [word for p in command.parameters if p.option for word in p.option.names]
            assert len(set(spelled)) == len(spelled), name
            assert all(re.fullmatch(r"-[a-zA-Z]|--[a-z][a-z0-9-]+", word) for word in spelled), (name, spelled)
            assert command.purpose, name
            assert all(p.declared.help for p in command.parameters if not p.declared.hidden), name


ALL = [entry for page in command_pages() for entry in page.entries]


@pytest.mark.parametrize("entry", ALL, ids=lambda entry: " ".join(entry.words))
def test_topics_and_groups_are_named_alike_by_every_command(entry: CommandEntry) -> None:
    """`-t` and `-g` are short for --topic and --group, and what a command is about may be a plain word."""
    options = [parameter for parameter in entry.parameters if parameter.option is not None]
    for short, long in (("-t", "--topic"), ("-g", "--group")):
        assert all(short in p.option.names for p in options if p.option and long in p.option.names), entry.words
    words = [p for p in entry.parameters if p.option is None or p.option.placed]
    several_kinds = entry.words[0] == "acls"
    assert words or several_kinds or not any(p.option and "--topic" in p.option.names for p in options), entry.words


def _run(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    code = main.run(arguments)
    printed = capsys.readouterr()
    return code, printed.out, printed.err


@pytest.mark.parametrize("entry", ALL, ids=lambda entry: " ".join(entry.words))
def test_every_command_explains_itself_and_names_what_was_meant(
    entry: CommandEntry, capsys: pytest.CaptureFixture[str]
) -> None:
    words = list(entry.words)
    code, out, err = _run([*words, "--help"], capsys)
    assert (code, err) == (0, "")
    assert out.startswith(f"usage: odradek {' '.join(words)}")

    code, out, err = _run([*words, "--no-such-option"], capsys)
    assert (code, out, err.count("\n")) == (2, "", 1)
    if entry.command is None:
        return  # it has its own grammar
    assert f"unknown option --no-such-option (odradek {' '.join(words)} --help)" in err
    for name in (name for p in entry.parameters if p.option for name in p.option.names if len(name) > len("--abc")):
        misspelt = f"{name[:-2]}{name[-1]}{name[-2]}" if name[-1] != name[-2] else name[:-1]
        if misspelt not in (other for p in entry.parameters if p.option for other in p.option.names):
            code, out, err = _run([*words, misspelt], capsys)
            assert (code, out, err.count("\n")) == (2, "", 1)
            assert f"unknown option {misspelt}; did you mean {name.removesuffix('s')}" in err


@pytest.mark.parametrize("words", [page.entries[0].words[:1] for page in command_pages()] + [e.words for e in ALL])
def test_a_misspelt_command_is_named(words: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    *before, word = words
    code, out, err = _run([*before, f"{word}e"], capsys)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert f"did you mean {word}?" in err


def test_leading_options_take_a_value_in_every_command_that_has_them() -> None:
    for entry in ALL:
        for parameter in entry.parameters:
            if parameter.option is not None and LEADING.intersection(parameter.option.names):
                assert not parameter.is_flag, (entry.words, parameter.name)


@pytest.mark.parametrize(
    "words",
    [
        ["-o", "jsn", "topics", "list"],
        ["topics", "-o", "jsn", "list"],
        ["topics", "--format=jsn", "list"],
        ["-b", "127.0.0.1:1", "topics", "-o", "jsn", "describe", "orders"],
        ["-t", "orders", "consume", "-o", "jsn"],
        ["groups", "-g", "shop", "-o", "jsn", "--describe"],
    ],
)
def test_options_may_stand_before_the_noun_or_the_verb(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = _run(words, capsys)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "--format: 'jsn' is not one of" in err


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (["--versio"], "did you mean --version?"),
        (["-x", "topics", "list"], "unknown option -x; options come after the command"),
        (["status"], "did you mean cluster?"),
        (["nodes"], "did you mean brokers?"),
        (["kafka-topic", "--list"], "did you mean kafka-topics?"),
        (["kafka-nosuch"], "unknown tool kafka-nosuch; there are kafka-"),
        (["topics", "list", "--json"], "did you mean --format json?"),
        (["acls", "add", "--allow", "User:alice"], "did you mean --principal?"),
        (["users", "create", "alice"], "did you mean set?"),
        (["recorder", "show", "--at", "15m ago"], "did you mean --since?"),
        (["perf", "produce", "orders", "--records", "5"], "did you mean --num-records?"),
    ],
)
def test_words_of_other_tools(words: list[str], meant: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = _run(words, capsys)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert meant in err


@pytest.mark.parametrize(
    ("code", "advice"),
    [
        (ErrorCode.SECURITY_DISABLED, "odradek up --secure"),
        (ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED, "delegation.token.secret.key"),
        (ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, "--command-config FILE"),
    ],
)
def test_an_answer_in_kafkas_words_has_a_next_step(
    code: ErrorCode, advice: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(main, "_dispatch", lambda arguments: (_ for _ in ()).throw(KafkaError(code, "words of Kafka")))
    assert main.run([]) == 1
    told = capsys.readouterr().err
    assert told.startswith(f"error: words of Kafka ({code.name}); ")
    assert advice in told

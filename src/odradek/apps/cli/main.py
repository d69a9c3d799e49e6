"""The entry point of `odradek`: finds the command, runs it, turns errors into one line and an exit code.

Imports no large module: a broker starts without the command line's libraries, and each command loads only its own
module. Exit codes: 0 success, 1 failure, 2 wrong usage, 130 interrupted, 141 the reader of the output has closed it.
"""

import gc
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from typing import NamedTuple, NoReturn

from odradek import __version__
from odradek.apps.cli.grammar.leading import LEADING, leading_options
from odradek.apps.cli.usage import Exit, WrongUsage
from odradek.base.errors import ConfigError, ErrorCode, FatalError, KafkaError
from odradek.native.load import description


class Entry(NamedTuple):
    module: str
    attribute: str
    help: str


COMMANDS = {
    "up": Entry("odradek.apps.cli.lifecycle", "up", "start a coordination server and brokers on this machine"),
    "down": Entry("odradek.apps.cli.lifecycle", "down", "stop what `up` started"),
    "kill": Entry("odradek.apps.cli.lifecycle", "kill", "crash one broker, as kill -9 does"),
    "start": Entry("odradek.apps.cli.lifecycle", "start", "start one broker again"),
    "stop": Entry("odradek.apps.cli.lifecycle", "stop", "stop one broker cleanly"),
    "cut": Entry("odradek.apps.cli.lifecycle", "cut", "isolate one broker from the network (with --lab)"),
    "heal": Entry("odradek.apps.cli.lifecycle", "heal", "undo `cut`"),
    "brokers": Entry("odradek.apps.cli.brokers", "brokers", "list the brokers and the controller"),
    "cluster": Entry("odradek.apps.cli.cluster", "cluster", "cluster health on one screen"),
    "topics": Entry("odradek.apps.cli.topics", "app", "create, list, describe, alter and delete topics"),
    "configs": Entry("odradek.apps.cli.configs", "app", "show and change settings of topics, brokers and clients"),
    "quotas": Entry("odradek.apps.cli.quotas", "app", "show and change client quotas"),
    "acls": Entry("odradek.apps.cli.acls", "app", "list, add and delete ACLs"),
    "users": Entry("odradek.apps.cli.users", "app", "list, set and delete SCRAM credentials of users"),
    "tokens": Entry("odradek.apps.cli.tokens", "app", "list, create, renew and expire delegation tokens"),
    "groups": Entry("odradek.apps.cli.groups", "app", "list, describe, reset and delete consumer groups"),
    "transactions": Entry(
        "odradek.apps.cli.transactions", "app", "list, describe and abort transactions, find hanging ones"
    ),
    "produce": Entry("odradek.apps.cli.produce", "produce", "write records from standard input or a file"),
    "consume": Entry("odradek.apps.cli.consume", "consume", "read records"),
    "reassign": Entry("odradek.apps.cli.reassign", "app", "move replicas to other brokers"),
    "migrate": Entry("odradek.apps.cli.migrate", "app", "move a cluster from Apache Kafka to Odradek, or back"),
    "elections": Entry("odradek.apps.cli.elections", "elections", "elect leaders"),
    "log-dirs": Entry("odradek.apps.cli.log_dirs", "log_dirs", "show log directories, their disks and replicas"),
    "offsets": Entry("odradek.apps.cli.offsets", "offsets", "show the offsets of partitions"),
    "dump-log": Entry("odradek.apps.cli.dump_log", "dump_log", "show and check the files of a partition"),
    "audit": Entry("odradek.apps.cli.audit", "audit", "compare all replicas, file by file, as a Spark job"),
    "certs": Entry("odradek.apps.cli.certs", "app", "show and renew certificates of a cluster made with up --secure"),
    "perf": Entry("odradek.apps.cli.perf", "app", "measure producing and consuming"),
    "recorder": Entry(
        "odradek.apps.cli.recorder", "app", "flight recorder: state changes of brokers and partitions, with causes"
    ),
    "console": Entry("odradek.apps.cli.console", "console", "web console: show and run the cluster in a browser"),
    "pipeline": Entry("odradek.apps.cli.pipeline", "app", "data pipelines on Spark: from topics to tables and back"),
    "lab": Entry("odradek.apps.lab.command", "app", "experiments: rebalances, elections, and the benchmark"),
    "sim": Entry("odradek.apps.cli.sim", "sim", "simulate clusters with faults and check their guarantees"),
    "profile": Entry("odradek.apps.cli.profile", "app", "keep clusters by name, for commands without an address"),
    "man": Entry("odradek.apps.cli.man", "man", "show or write the manual pages"),
    "completion": Entry(
        "odradek.apps.cli.completion", "completion", "print the completion script for bash, zsh or fish"
    ),
    "demo": Entry("odradek.apps.demo.command", "demo", "kill a broker under load and verify that no record is lost"),
    "broker": Entry("odradek.apps.cli.broker", "broker", "run one broker from a server.properties file"),
}
ALIASES = {
    "topic": "topics",
    "group": "groups",
    "consumer-groups": "groups",
    "config": "configs",
    "quota": "quotas",
    "election": "elections",
    "acl": "acls",
    "user": "users",
    "token": "tokens",
    "transaction": "transactions",
}
_MEANT = {
    **dict.fromkeys(("status", "health", "info", "ps"), "cluster"),
    **dict.fromkeys(("nodes", "node", "servers"), "brokers"),
    **dict.fromkeys(("partitions", "list", "create", "describe", "delete", "alter"), "topics"),
    **dict.fromkeys(("lag", "consumers", "members"), "groups"),
    **dict.fromkeys(("read", "fetch", "tail", "cat"), "consume"),
    **dict.fromkeys(("write", "send", "publish"), "produce"),
    **dict.fromkeys(("set", "settings"), "configs"),
    **dict.fromkeys(("bench", "benchmark"), "perf"),
    **dict.fromkeys(("context", "login"), "profile"),
    **dict.fromkeys(("ui", "web"), "console"),
    **dict.fromkeys(("serve", "run"), "up"),
    **dict.fromkeys(("quit", "exit"), "down"),
}
"""Words of other tools, and the commands that may be meant."""
_ADVICE = {
    ErrorCode.SECURITY_DISABLED: "`odradek up --secure` starts a cluster with ACLs",
    ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED: "brokers need delegation.token.secret.key",
    ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED: "log in with SASL or a certificate: --command-config FILE",
}
"""Next steps after answers whose words are Kafka's."""


INTERRUPTED = 130
READER_GONE = 141
"""Exit code of a process that SIGPIPE ended, as a shell reports it: `odradek consume … | head` is no failure."""
_EXTRAS = {"pyspark": "spark", "pyarrow": "spark", "rich": "spark", "nicegui": "console", "duckdb": "query"}
"""Packages that come with an extra."""


def main() -> NoReturn:
    # Imports make tens of thousands of objects, all of which stay: Python's frequent garbage collection would take a
    # tenth of the time of a start.
    gc.set_threshold(10_000, 20, 20)
    sys.exit(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    try:
        code = _dispatch(arguments)
        sys.stdout.flush()
        return code
    except WrongUsage as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # the reader has closed the output; Python must not report buffered output at its exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return READER_GONE
    except Exception as error:
        if os.environ.get("ODRADEK_DEBUG"):
            import traceback

            traceback.print_exc()
        print(f"error: {_one_line(error)}", file=sys.stderr)
        return 1


def _dispatch(arguments: Sequence[str]) -> int:
    name, *rest = _command_first(arguments) or ["--help"]
    if name == "help" and rest:
        return _dispatch([*rest, "--help"])
    if name in ("--help", "-h", "help"):
        print(_help())
        return 0
    if name in ("--version", "version"):
        print(f"odradek {__version__}, {description()}")
        return 0
    if name.startswith("kafka-"):
        return _run_kafka_tool(name, rest)
    if name.startswith("-"):
        hint = _similar(name, ("--help", "--version", *LEADING)) or "; options come after the command"
        raise WrongUsage(f"unknown option {name}{hint} (odradek --help)")
    name = ALIASES.get(name, name)
    if name not in COMMANDS:
        hint = _similar(_MEANT.get(name, name), COMMANDS) or f"; there are {', '.join(COMMANDS)}"
        raise WrongUsage(f"unknown command '{name}'{hint}")
    return _run_command(name, rest)


def _command_first(arguments: Sequence[str]) -> list[str]:
    moved, words = leading_options(arguments)
    if moved and not words:
        raise WrongUsage(f"a command is required after {moved[0]}, as in: odradek {' '.join(moved)} topics list")
    return [*words[:1], *moved, *words[1:]]


def _run_command(name: str, words: Sequence[str]) -> int:
    entry = COMMANDS[name]
    command: Callable[[Sequence[str], str], int] = getattr(import_module(entry.module), entry.attribute)
    try:
        return command(words, f"odradek {name}")
    except Exit as end:
        return end.code


def _run_kafka_tool(name: str, arguments: Sequence[str]) -> int:
    from odradek.apps.cli.kafka.tool import TOOLS, run_tool

    if name not in TOOLS:
        hint = _similar(name, TOOLS) or f"; there are {', '.join(TOOLS)}"
        raise WrongUsage(f"unknown tool {name}{hint}")
    return run_tool(name, arguments)


def _help() -> str:
    width = max(map(len, COMMANDS)) + 2
    lines = [
        "usage: odradek COMMAND [OPTIONS]",
        "",
        "A distributed commit log that speaks Apache Kafka's protocol.",
        "",
        *(f"  {name:<{width}}{command.help}" for name, command in COMMANDS.items()),
        f"  {'kafka-…':<{width}}Kafka's own command lines: kafka-topics, kafka-configs and fifteen others",
        "",
        "See `odradek COMMAND --help` for each command; `odradek --version` shows the version.",
    ]
    return "\n".join(lines)


def _similar(name: str, known: Iterable[str]) -> str:
    from odradek.apps.cli.grammar.parsing import like

    return like(name, known)


def _one_line(error: Exception) -> str:
    """Format an error as one line. Our own messages are for people; any other error is a bug to report."""
    if isinstance(error, KafkaError):
        name = error.code.name
        told = str(error) if name in str(error) else f"{error} ({name})"
        return f"{told}; {_ADVICE[error.code]}" if error.code in _ADVICE else told
    if isinstance(error, FatalError | ConfigError) or _is_connection_error(error):
        return str(error)
    if isinstance(error, ModuleNotFoundError) and (extra := _EXTRAS.get((error.name or "").partition(".")[0])):
        return f"this command needs {error.name}, which is not installed: pip install 'odradek[{extra}]'"
    if isinstance(error, OSError) and error.filename is not None and error.strerror:
        return f"{_file_name(error.filename)}: {error.strerror}"
    message = " ".join(str(error).split())
    return f"unexpected {type(error).__name__}: {message} (set ODRADEK_DEBUG=1 to see where it came from)"


def _file_name(name: object) -> str:
    return os.fsdecode(name) if isinstance(name, str | bytes | os.PathLike) else str(name)


def _is_connection_error(error: Exception) -> bool:
    from odradek.client.broker_client import ConnectionFailed, UnsupportedByBroker

    return isinstance(error, ConnectionFailed | UnsupportedByBroker)

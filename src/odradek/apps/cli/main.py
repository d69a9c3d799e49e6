"""The entry point of `odradek`: finds the command, runs it, turns errors into one line and an exit code.

Imports nothing heavy: a broker starts without the command line's libraries, and each command loads only its own
module. Exit codes: 0 done, 1 failed, 2 used wrongly, 130 interrupted.
"""

import os
import sys
from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from typing import NamedTuple, NoReturn

from odradek import __version__
from odradek.apps.cli.usage import Exit, WrongUsage
from odradek.base.errors import ConfigError, FatalError, KafkaError
from odradek.native.load import description


class Entry(NamedTuple):
    module: str
    attribute: str
    help: str


COMMANDS = {
    "up": Entry("odradek.apps.cli.lifecycle", "up", "start ZooKeeper and brokers on this machine"),
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
    "acls": Entry("odradek.apps.cli.acls", "app", "show and change which principal may do what"),
    "users": Entry("odradek.apps.cli.users", "app", "show users with SCRAM passwords, set and delete them"),
    "tokens": Entry("odradek.apps.cli.tokens", "app", "show, create, renew and end delegation tokens"),
    "groups": Entry("odradek.apps.cli.groups", "app", "list, describe, reset and delete consumer groups"),
    "transactions": Entry(
        "odradek.apps.cli.transactions", "app", "list and describe transactions, end those that hang"
    ),
    "produce": Entry("odradek.apps.cli.produce", "produce", "write records from standard input or a file"),
    "consume": Entry("odradek.apps.cli.consume", "consume", "read records"),
    "reassign": Entry("odradek.apps.cli.reassign", "app", "move replicas to other brokers"),
    "migrate": Entry("odradek.apps.cli.migrate", "app", "move a cluster from Apache Kafka to Odradek, or back"),
    "elections": Entry("odradek.apps.cli.elections", "elections", "elect leaders"),
    "log-dirs": Entry("odradek.apps.cli.log_dirs", "log_dirs", "show the brokers' directories and what lies in them"),
    "offsets": Entry("odradek.apps.cli.offsets", "offsets", "show the offsets of partitions"),
    "dump-log": Entry("odradek.apps.cli.dump_log", "dump_log", "show and check the files of a partition"),
    "audit": Entry("odradek.apps.cli.audit", "audit", "compare all replicas, file by file, as a Spark job"),
    "certs": Entry("odradek.apps.cli.certs", "app", "certificates of a cluster that was made with up --secure"),
    "perf": Entry("odradek.apps.cli.perf", "app", "measure producing and consuming"),
    "recorder": Entry("odradek.apps.cli.recorder", "app", "what brokers and the controller did, and why"),
    "console": Entry("odradek.apps.cli.console", "console", "see the cluster in the browser, and run it from there"),
    "pipeline": Entry("odradek.apps.cli.pipeline", "app", "data pipelines on Spark: from topics to tables and back"),
    "lab": Entry("odradek.apps.lab.command", "app", "experiments: rebalances, elections, and the benchmark"),
    "sim": Entry("odradek.apps.cli.sim", "sim", "simulate clusters with faults and check what they promise"),
    "completion": Entry(
        "odradek.apps.cli.completion", "completion", "print the script that makes a shell complete our commands"
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
_BEFORE_COMMAND = frozenset({"-b", "--bootstrap-server", "--command-config"})
"""Options that may also stand before the command, as in `odradek -b HOST:PORT topics list`."""


def main() -> NoReturn:
    sys.exit(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    try:
        return _dispatch(arguments)
    except WrongUsage as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # whoever read our output has had enough; what is still buffered must not be reported when Python exits
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except Exception as error:
        if os.environ.get("ODRADEK_DEBUG"):
            import traceback

            traceback.print_exc()
        print(f"error: {_one_line(error)}", file=sys.stderr)
        return 1


def _dispatch(arguments: Sequence[str]) -> int:
    name, *rest = _command_first(arguments) or ["--help"]
    if name in ("--help", "-h", "help"):
        print(_help())
        return 0
    if name == "--version":
        print(f"odradek {__version__}, {description()}")
        return 0
    if name.startswith("kafka-"):
        return _run_kafka_tool(name, rest)
    name = ALIASES.get(name, name)
    if name not in COMMANDS:
        raise WrongUsage(f"unknown command '{name}'{_like(name, COMMANDS)}")
    return _run_command(name, rest)


def _command_first(arguments: Sequence[str]) -> list[str]:
    words = list(arguments)
    moved: list[str] = []
    while words and words[0].partition("=")[0] in _BEFORE_COMMAND:
        taken = 1 if "=" in words[0] else 2
        moved += words[:taken]
        del words[:taken]
    return [*words, *moved] if words else moved


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
        raise WrongUsage(f"unknown tool {name}{_like(name, TOOLS)}")
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


def _like(name: str, known: Iterable[str]) -> str:
    from odradek.apps.cli.grammar.parsing import like

    return like(name, known) or f"; there are {', '.join(known)}"


def _one_line(error: Exception) -> str:
    """Messages of our own are meant for people as they are; anything else is a fault that should be reported."""
    if isinstance(error, KafkaError):
        return f"{error} ({error.code.name})" if error.message else error.code.name
    if isinstance(error, FatalError | ConfigError) or _is_connection_error(error):
        return str(error)
    told = " ".join(str(error).split())
    return f"unexpected {type(error).__name__}: {told} (set ODRADEK_DEBUG=1 to see where it came from)"


def _is_connection_error(error: Exception) -> bool:
    from odradek.client.broker_client import ConnectionFailed, UnsupportedByBroker

    return isinstance(error, ConnectionFailed | UnsupportedByBroker)

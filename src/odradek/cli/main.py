"""The entry point of `odradek`: finds the command, runs it, turns errors into one line and an exit code.

Imports nothing heavy: a broker starts without the command line's libraries, and each command loads only its own
module. Exit codes: 0 done, 1 failed, 2 used wrongly, 130 interrupted.
"""

import os
import sys
import traceback
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import NamedTuple, NoReturn

from odradek import __version__
from odradek.base.errors import ConfigError, FatalError, KafkaError


class Command(NamedTuple):
    module: str
    attribute: str
    help: str


COMMANDS = {
    "up": Command("odradek.cli.lifecycle", "up", "start ZooKeeper and brokers on this machine"),
    "down": Command("odradek.cli.lifecycle", "down", "stop what `up` started"),
    "kill": Command("odradek.cli.lifecycle", "kill", "crash one broker, as kill -9 does"),
    "start": Command("odradek.cli.lifecycle", "start", "start one broker again"),
    "stop": Command("odradek.cli.lifecycle", "stop", "stop one broker cleanly"),
    "cut": Command("odradek.cli.lifecycle", "cut", "cut one broker off the network, with --lab"),
    "heal": Command("odradek.cli.lifecycle", "heal", "mend what was cut"),
    "brokers": Command("odradek.cli.brokers", "app", "show who is in the cluster and who controls it"),
    "cluster": Command("odradek.cli.cluster", "app", "how the cluster is, on one screen"),
    "topics": Command("odradek.cli.topics", "app", "create, list, describe, alter and delete topics"),
    "configs": Command("odradek.cli.configs", "app", "show and change settings of topics, brokers and clients"),
    "quotas": Command("odradek.cli.quotas", "app", "show and change how much clients may do"),
    "groups": Command("odradek.cli.groups", "app", "list, describe, reset and delete consumer groups"),
    "produce": Command("odradek.cli.produce", "app", "write records from standard input or a file"),
    "consume": Command("odradek.cli.consume", "app", "read records"),
    "reassign": Command("odradek.cli.reassign", "app", "move replicas to other brokers"),
    "elections": Command("odradek.cli.elections", "app", "elect leaders"),
    "log-dirs": Command("odradek.cli.log_dirs", "app", "show the brokers' directories and what lies in them"),
    "offsets": Command("odradek.cli.offsets", "app", "show where partitions begin and end"),
    "dump-log": Command("odradek.cli.dump_log", "app", "show and check the files of a partition"),
    "audit": Command("odradek.cli.audit", "app", "compare all replicas, file by file, as a Spark job"),
    "perf": Command("odradek.cli.perf", "app", "measure producing and consuming"),
    "recorder": Command("odradek.cli.recorder", "app", "what brokers saw and decided, and why"),
    "console": Command("odradek.cli.console", "app", "see the cluster in the browser, and run it from there"),
    "pipeline": Command("odradek.cli.pipeline", "app", "data pipelines on Spark: from topics to tables and back"),
    "lab": Command("odradek.lab.command", "app", "experiments: rebalances, elections, and the benchmark"),
    "completion": Command("odradek.cli.completion", "app", "print the script that makes a shell complete our commands"),
    "demo": Command(
        "odradek.demo.command", "app", "a cluster, a shop and a pipeline; a broker dies; the books are checked"
    ),
}
_BROKER_USAGE = "usage: odradek broker SERVER.PROPERTIES [--override KEY=VALUE ...]"


class UsageError(Exception):
    """The command line can't be understood. The message says how it is meant."""


def main() -> NoReturn:
    sys.exit(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    try:
        return _dispatch(arguments)
    except UsageError as error:
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
            traceback.print_exc()
        print(f"error: {_one_line(error)}", file=sys.stderr)
        return 1


def _dispatch(arguments: Sequence[str]) -> int:
    name, *rest = arguments or ["--help"]
    if name == "broker":
        return _run_broker(rest)
    if name in ("--help", "-h", "help"):
        print(_help())
        return 0
    if name == "--version":
        print(f"odradek {__version__}")
        return 0
    if name.startswith("kafka-"):
        return _run_kafka_tool(name, rest)
    if name not in COMMANDS:
        raise UsageError(f"there is no command {name!r}; `odradek --help` lists them")
    return _run_command(name, rest)


def _run_command(name: str, arguments: Sequence[str]) -> int:
    command = COMMANDS[name]
    app: Callable[..., object] = getattr(import_module(command.module), command.attribute)
    try:
        code = app(args=list(arguments), prog_name=f"odradek {name}", standalone_mode=False)
    except SystemExit as stop:
        code = stop.code
    except Exception as error:
        # typer's own errors, and its ways to end a command, wherever the classes live in the typer that is installed
        if isinstance(error.__cause__, KeyboardInterrupt):
            raise error.__cause__ from None
        if hasattr(error, "format_message") and error.format_message():
            raise UsageError(f"{error.format_message()} (odradek {name} --help)") from error
        if not hasattr(error, "exit_code"):
            raise
        code = error.exit_code
    return code if isinstance(code, int) else 0


def _run_kafka_tool(name: str, arguments: Sequence[str]) -> int:
    from odradek.cli.kafka.tool import TOOLS, run_tool

    if name not in TOOLS:
        raise UsageError(f"there is no {name}; there are {', '.join(TOOLS)}")
    return run_tool(name, arguments)


def _run_broker(arguments: Sequence[str]) -> int:
    path, overrides = parse_broker_arguments(arguments)
    if path is None:
        print(f"{_BROKER_USAGE}\n\nRuns one broker in the foreground, as kafka-server-start does.")
        return 0
    from odradek.broker.main import run as run_broker

    return run_broker(path, overrides)


def parse_broker_arguments(arguments: Sequence[str]) -> tuple[Path | None, dict[str, str]]:
    """The properties file and the settings that go over it; no file when help was asked for."""
    path: Path | None = None
    overrides: dict[str, str] = {}
    remaining = list(arguments)
    while remaining:
        argument = remaining.pop(0)
        if argument in ("--help", "-h"):
            return None, {}
        if argument == "--override" or argument.startswith("--override="):
            setting = argument.partition("=")[2] or (remaining.pop(0) if remaining else "")
            key, separator, value = setting.partition("=")
            if not key or not separator:
                raise UsageError(f"--override takes KEY=VALUE, not {setting!r}\n{_BROKER_USAGE}")
            overrides[key] = value
        elif argument.startswith("-") or path is not None:
            raise UsageError(f"unexpected argument {argument!r}\n{_BROKER_USAGE}")
        else:
            path = Path(argument)
    if path is None:
        raise UsageError(f"which broker? Give its properties file\n{_BROKER_USAGE}")
    return path, overrides


def _help() -> str:
    width = max(map(len, COMMANDS)) + 2
    lines = [
        "usage: odradek COMMAND [OPTIONS]",
        "",
        "A distributed commit log that speaks Apache Kafka's protocol.",
        "",
        *(f"  {name:<{width}}{command.help}" for name, command in COMMANDS.items()),
        f"  {'broker':<{width}}run one broker from a server.properties file",
        f"  {'kafka-…':<{width}}Kafka's own command lines: kafka-topics, kafka-configs and twelve others",
        "",
        "`odradek COMMAND --help` tells more of each; `odradek --version` shows the version.",
    ]
    return "\n".join(lines)


def _one_line(error: Exception) -> str:
    """Messages of our own are meant for people as they are; anything else is a fault that should be reported."""
    if isinstance(error, KafkaError):
        return f"{error.message} ({error.code.name})" if error.message else error.code.name
    if isinstance(error, FatalError | ConfigError) or _is_connection_trouble(error):
        return str(error)
    told = " ".join(str(error).split())
    return f"unexpected {type(error).__name__}: {told} (set ODRADEK_DEBUG=1 to see where it came from)"


def _is_connection_trouble(error: Exception) -> bool:
    from odradek.network.broker_client import ConnectionFailed, UnsupportedByBroker

    return isinstance(error, ConnectionFailed | UnsupportedByBroker)

"""Runs one of Kafka's command lines: finds its module, parses its options, turns errors into Kafka's exit codes.

Every module has a `TABLE` of options and a `run` that takes the given options and returns the exit code. Kafka's tools
end with 0 or 1; Ctrl-C is 130.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from types import MappingProxyType

from odradek import __version__
from odradek.apps.cli.kafka.options import Given, OptionTable, WrongOptions
from odradek.base.config.properties import parse_properties
from odradek.base.errors import ConfigError, KafkaError
from odradek.client.client_security import ClientSecurity
from odradek.client.cluster_client import DEFAULT_TIMEOUT_MS, ClusterClient

TOOLS = {
    "kafka-topics": "topics",
    "kafka-configs": "configs",
    "kafka-reassign-partitions": "reassign_partitions",
    "kafka-leader-election": "leader_election",
    "kafka-consumer-groups": "consumer_groups",
    "kafka-log-dirs": "log_dirs",
    "kafka-acls": "acls",
    "kafka-delegation-tokens": "delegation_tokens",
    "kafka-transactions": "transactions",
    "kafka-get-offsets": "get_offsets",
    "kafka-delete-records": "delete_records",
    "kafka-dump-log": "dump_log",
    "kafka-broker-api-versions": "broker_api_versions",
    "kafka-console-producer": "console_producer",
    "kafka-console-consumer": "console_consumer",
    "kafka-producer-perf-test": "producer_perf_test",
    "kafka-consumer-perf-test": "consumer_perf_test",
}


class ToolError(Exception):
    """Failure that the tool prints on standard error before it ends with 1."""


def table_of(tool: str) -> OptionTable:
    table: OptionTable = import_module(f"odradek.apps.cli.kafka.{TOOLS[tool]}").TABLE
    return table


def run_tool(tool: str, arguments: Sequence[str]) -> int:
    run: Callable[[Given], int] = import_module(f"odradek.apps.cli.kafka.{TOOLS[tool]}").run
    table = table_of(tool)
    try:
        given = table.parse(arguments)
        if given.has("help") or not arguments:
            print(table.usage(tool), file=sys.stdout if arguments else sys.stderr)
            return 0 if arguments else 1
        if given.has("version"):
            print(f"odradek {__version__}")
            return 0
        return run(given)
    except WrongOptions as error:
        print(f"{error} (odradek {tool} --help shows the options)", file=sys.stderr)
    except ToolError as error:
        print(error, file=sys.stderr)
    return 1


def connect(
    given: Given,
    *,
    config_option: str = "command-config",
    server_option: str = "bootstrap-server",
    further: Mapping[str, str] = MappingProxyType({}),
) -> ClusterClient:
    """Connect to the cluster that the options name, with client settings of the properties file and `further`."""
    given.require(server_option)
    properties = {**client_properties(given, config_option), **further}
    timeout_ms = properties.get("default.api.timeout.ms") or properties.get("request.timeout.ms")
    try:
        return ClusterClient(
            given.text(server_option),
            client_id=properties.get("client.id", "odradek-cli"),
            timeout_ms=DEFAULT_TIMEOUT_MS if timeout_ms is None else int(timeout_ms),
            security=security_of(properties),
        )
    except ValueError:
        raise ToolError(f"Invalid value {timeout_ms} for a timeout: not a number") from None


def client_properties(given: Given, option: str) -> dict[str, str]:
    if option not in given.order:
        return {}
    path = Path(given.text(option))
    try:
        properties = parse_properties(path.read_text())
    except OSError as error:
        raise ToolError(f"{path} can't be read: {error.strerror}") from None
    return properties


def security_of(properties: Mapping[str, str]) -> ClientSecurity | None:
    """Return the security settings; None where the properties have none."""
    if "security.protocol" not in properties:
        return None
    try:
        return ClientSecurity(properties)
    except ConfigError as error:
        raise ToolError(str(error)) from None


def in_kafkas_words(error: KafkaError) -> str:
    """Return the cluster's message, without the next step that our own commands add."""
    return error.reason or error.code.name

"""kafka-log-dirs: the content of the brokers' log directories, as JSON."""

import json

from odradek.apps.cli.kafka.exceptions import exception_name
from odradek.apps.cli.kafka.options import (
    BOOTSTRAP,
    COMMAND_CONFIG,
    EVERY_TOOL,
    Given,
    Option,
    OptionTable,
    WrongOptions,
)
from odradek.apps.cli.kafka.tool import ToolError, connect
from odradek.client.log_dir_admin import LogDir, describe_log_dirs

TABLE = OptionTable(
    "This tool helps to query log directory usage on the specified brokers.",
    BOOTSTRAP,
    COMMAND_CONFIG,
    Option("describe", "show them"),
    Option("topic-list", "only replicas of these topics", "TOPIC,…", default=""),
    Option("broker-list", "only these brokers", "N,…", default=""),
    *EVERY_TOOL,
)


def run(given: Given) -> int:
    given.require("bootstrap-server", "describe")
    topics = {name for name in given.text("topic-list").split(",") if name}
    try:
        asked = {int(number) for number in given.text("broker-list").split(",") if number}
    except ValueError:
        raise WrongOptions(f'For input string: "{given.text("broker-list")}"') from None
    with connect(given) as client:
        live = set(client.brokers())
        if missing := asked - live:
            raise ToolError(
                f"ERROR: The given brokers do not exist from --broker-list: {_joined(missing)}. "
                f"Current existent brokers: {_joined(live)}"
            )
        print("Querying brokers for log directories information")
        found = describe_log_dirs(client, asked or live)
    print(f"Received log directory information from brokers {_joined(asked or live)}")
    brokers = [
        {"broker": broker, "logDirs": [_directory(log_dir, topics) for log_dir in found if log_dir.broker == broker]}
        for broker in sorted(asked or live)
    ]
    print(json.dumps({"brokers": brokers, "version": 1}, separators=(",", ":")))
    return 0


def _directory(log_dir: LogDir, topics: set[str]) -> dict[str, object]:
    """The keys in the order of Kafka's tool."""
    return {
        "partitions": [
            {
                "partition": str(replica.tp),
                "size": replica.size,
                "offsetLag": replica.lag,
                "isFuture": replica.is_future,
            }
            for replica in sorted(log_dir.replicas, key=lambda replica: replica.tp)
            if not topics or replica.tp.topic in topics
        ],
        "error": exception_name(log_dir.error) if log_dir.error else None,
        "logDir": log_dir.path,
    }


def _joined(brokers: set[int]) -> str:
    return ",".join(map(str, sorted(brokers)))

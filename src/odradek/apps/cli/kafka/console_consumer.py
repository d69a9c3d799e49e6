"""kafka-console-consumer: prints records, as a member of a group or from one partition."""

import random
import re
import sys
from collections.abc import Callable

from odradek.apps.cli.kafka.options import EVERY_TOOL, Given, Option, OptionTable, WrongOptions
from odradek.apps.cli.kafka.properties import given_properties, is_true
from odradek.apps.cli.kafka.tool import ToolError, connect
from odradek.apps.cli.record_printing import Limits, Printer, Printing
from odradek.apps.cli.record_text import ConsumedRecord
from odradek.base.errors import KafkaError
from odradek.client.cluster_client import ClusterClient, unknown_partition
from odradek.client.group_reader import GroupReader
from odradek.client.partition_offsets import list_offsets
from odradek.client.record_reader import DEFAULT_OPTIONS, FetchOptions, RecordReader
from odradek.model.topology import TopicPartition
from odradek.protocol.isolation import IsolationLevel
from odradek.protocol.messages.list_offsets import EARLIEST, LATEST

_Part = Callable[[ConsumedRecord], bytes]


def formatter(properties: dict[str, str]) -> Printer:
    separator = properties.get("key.separator", "\t").encode()
    line_end = properties.get("line.separator", "\n").encode()
    null = properties.get("null.literal", "null").encode()
    headers_separator = properties.get("headers.separator", ",").encode()

    def headers(record: ConsumedRecord) -> bytes:
        pairs = [name.encode() + b":" + (null if value is None else value) for name, value in record.headers]
        return headers_separator.join(pairs) if pairs else b"NO_HEADERS"

    wanted: list[tuple[str, bool, _Part]] = [
        ("print.timestamp", False, _timestamp),
        ("print.partition", False, lambda record: b"Partition:%d" % record.partition),
        ("print.offset", False, lambda record: b"Offset:%d" % record.offset),
        ("print.headers", False, headers),
        ("print.key", False, lambda record: null if record.key is None else record.key),
        ("print.value", True, lambda record: null if record.value is None else record.value),
    ]
    parts = [part for name, default, part in wanted if is_true(properties, name, default)]
    return lambda record: separator.join([part(record) for part in parts]) + (line_end if parts else b"")


def _timestamp(record: ConsumedRecord) -> bytes:
    if record.timestamp_ms < 0:
        return b"NO_TIMESTAMP"
    return (b"LogAppendTime:%d" if record.is_append_time else b"CreateTime:%d") % record.timestamp_ms


_ONLY_FORMATTER = "org.apache.kafka.tools.consumer.DefaultMessageFormatter"
_FORMATTERS = (_ONLY_FORMATTER, "kafka.tools.DefaultMessageFormatter")
TABLE = OptionTable(
    "This tool helps to read data from Kafka topics and outputs it to standard output.",
    Option("topic", "the topic", "TOPIC"),
    Option("include", "topics by a regular expression", "REGEX"),
    Option("whitelist", "the same as --include", "REGEX"),
    Option("partition", "only this partition, without a group", "N"),
    Option("offset", "with --partition: earliest, latest or a number", "OFFSET", default="latest"),
    Option("consumer-property", "group.id, auto.offset.reset, enable.auto.commit", "KEY=VALUE"),
    Option("consumer.config", "a file with such properties", "FILE"),
    Option("formatter", "only Kafka's default formatter", "CLASS", default=_ONLY_FORMATTER),
    Option("property", "properties of the output: print.key, print.offset, key.separator, …", "KEY=VALUE"),
    Option("formatter-config", "a file with such properties", "FILE"),
    Option("from-beginning", "without an offset of the group: from the beginning"),
    Option("max-messages", "stop after this number of records", "N"),
    Option("timeout-ms", "stop when no record has come for this time", "MS"),
    Option("skip-message-on-error", "accepted"),
    Option("bootstrap-server", "the brokers to ask first", "HOST:PORT,…"),
    Option("isolation-level", "read_uncommitted or read_committed", "LEVEL", default="read_uncommitted"),
    Option("group", "the group to be a member of", "GROUP"),
    *EVERY_TOOL,
)


def run(given: Given) -> int:
    consumer = _check(given)
    printer = formatter(given_properties(given, "property", "formatter-config"))
    timeout_ms, messages = given.number("timeout-ms"), given.number("max-messages")
    limits = Limits(None if messages is None or messages < 0 else messages, timeout_ms)
    printing: Printing | None = None
    try:
        with connect(given, config_option="consumer.config", further=consumer) as client:
            wait_ms = min(DEFAULT_OPTIONS.max_wait_ms, timeout_ms or DEFAULT_OPTIONS.max_wait_ms)
            if given.has("partition"):
                printing = Printing(_one_partition(client, given, wait_ms), printer, limits)
                printing.run()
            else:
                member = _member(client, given, consumer, wait_ms)
                printing = Printing(member, printer, limits)
                try:
                    printing.run()
                finally:
                    member.close(printing.consumed)
    except KafkaError as error:
        raise ToolError(f"Unknown error when running consumer: {error}") from None
    finally:
        if printing is not None:
            sys.stdout.buffer.flush()
            if printing.is_silent and not printing.is_enough:
                print("Error processing message, terminating consumer process: TimeoutException", file=sys.stderr)
            print(f"Processed a total of {printing.printed} messages", file=sys.stderr)
    return 0


def _check(given: Given) -> dict[str, str]:
    """The consumer's properties, with where to begin and the group."""
    if given.has("topic") == bool(given.any_of("include", "whitelist")):
        raise WrongOptions("Exactly one of --include/--topic is required.")
    if given.has("partition"):
        if not given.has("topic"):
            raise WrongOptions("The topic is required when partition is specified.")
        if given.has("from-beginning") and given.has("offset"):
            raise WrongOptions("Options from-beginning and offset cannot be specified together.")
    elif given.has("offset"):
        raise WrongOptions("The partition is required when offset is specified.")
    given.require("bootstrap-server")
    if given.text("formatter") not in _FORMATTERS:
        raise WrongOptions(f"{given.text('formatter')} is not here; only {_ONLY_FORMATTER} is")
    consumer = given_properties(given, "consumer-property", "consumer.config")
    groups = {*given.values("group"), *([consumer["group.id"]] if "group.id" in consumer else [])}
    if len(groups) > 1:
        raise WrongOptions(
            "The group ids provided in different places (directly using '--group', via '--consumer-property', or via "
            f"'--consumer.config') do not match. Detected group ids: {', '.join(map(repr, sorted(groups)))}"
        )
    if groups and given.has("partition"):
        raise WrongOptions("Options group and partition cannot be specified together.")
    reset = consumer.setdefault("auto.offset.reset", "earliest" if given.has("from-beginning") else "latest")
    if given.has("from-beginning") and reset != "earliest":
        raise WrongOptions(
            f"Can't simultaneously specify --from-beginning and 'auto.offset.reset={reset}', please remove one option"
        )
    if groups:
        consumer["group.id"] = groups.pop()
    return consumer


def _one_partition(client: ClusterClient, given: Given, wait_ms: int) -> RecordReader:
    tp = TopicPartition(given.text("topic"), given.number("partition") or 0)
    options = FetchOptions(max_wait_ms=wait_ms, isolation=_isolation(given))
    topic = client.topic(tp.topic)
    if tp.partition not in [state.partition for state in topic.partitions]:
        raise unknown_partition(tp, len(topic.partitions))
    text = "earliest" if given.has("from-beginning") else given.text("offset").lower()
    if text in ("earliest", "latest"):
        found = list_offsets(client, {tp: EARLIEST if text == "earliest" else LATEST}, options.isolation)
        return RecordReader(client, {tp: found[tp].offset or 0}, options)
    if not text.isdecimal():
        raise WrongOptions(
            f"The provided offset value '{text}' is incorrect. Valid values are 'earliest', 'latest', or a "
            "non-negative long."
        )
    return RecordReader(client, {tp: int(text)}, options)


def _member(client: ClusterClient, given: Given, consumer: dict[str, str], wait_ms: int) -> GroupReader:
    has_group = "group.id" in consumer
    return GroupReader(
        client,
        consumer["group.id"] if has_group else f"console-consumer-{random.randrange(100_000)}",
        _topics(client, given),
        begin_at=EARLIEST if consumer["auto.offset.reset"] == "earliest" else LATEST,
        commits=is_true(consumer, "enable.auto.commit", default=has_group),
        options=FetchOptions(max_wait_ms=wait_ms, isolation=_isolation(given)),
    )


def _isolation(given: Given) -> IsolationLevel:
    text = given.text("isolation-level")
    try:
        return IsolationLevel[text.upper()]
    except KeyError:
        raise WrongOptions(
            f"Invalid value {text} for configuration isolation.level: String must be one of: "
            "read_committed, read_uncommitted"
        ) from None


def _topics(client: ClusterClient, given: Given) -> list[str]:
    if given.has("topic"):
        return [client.topic(given.text("topic")).name]
    text = given.text("include" if given.has("include") else "whitelist")
    try:
        pattern = re.compile(text)
    except re.error:
        raise WrongOptions(f"{text} is an invalid regex.") from None
    found = [name for name in client.topics() if pattern.fullmatch(name)]
    if not found:
        raise ToolError(f"No topic matches {text}")
    return found

"""kafka-console-producer: lines of standard input as records."""

import sys

from odradek.apps.cli.kafka.options import EVERY_TOOL, Given, Option, OptionTable
from odradek.apps.cli.kafka.properties import given_properties, is_true
from odradek.apps.cli.kafka.tool import ToolError, connect
from odradek.apps.cli.line_writer import LineWriter, write_lines
from odradek.apps.cli.record_text import LineRules
from odradek.base.errors import FatalError, KafkaError
from odradek.client.record_sender import ACKS_ALL, RecordSender
from odradek.protocol.compression import Codec

TABLE = OptionTable(
    "This tool helps to read data from standard input and publish it to Kafka.",
    Option("topic", "the topic", "TOPIC"),
    Option("broker-list", "the same as --bootstrap-server", "HOST:PORT,…"),
    Option("bootstrap-server", "the brokers to ask first", "HOST:PORT,…"),
    Option("sync", "one record at a time"),
    Option("compression-codec", "none, gzip, snappy, lz4 or zstd", "CODEC", value_is_optional=True),
    Option("batch-size", "bytes of a batch", "BYTES", default="16384"),
    Option("max-partition-memory-bytes", "bytes of a batch", "BYTES"),
    Option("request-required-acks", "0, 1, or -1 for all", "ACKS", default="-1"),
    Option("property", "properties of the input: parse.key, key.separator, parse.headers, null.marker, …", "KEY=VALUE"),
    Option("reader-config", "a file with such properties", "FILE"),
    Option("producer-property", "acks, batch.size, compression.type, enable.idempotence", "KEY=VALUE"),
    Option("producer.config", "a file with such properties", "FILE"),
    *(
        Option(name, "accepted, without effect", "VALUE")
        for name in (
            "message-send-max-retries",
            "retry-backoff-ms",
            "timeout",
            "request-timeout-ms",
            "metadata-expiry-ms",
            "max-block-ms",
            "max-memory-bytes",
            "socket-buffer-size",
        )
    ),
    *EVERY_TOOL,
)
_SEPARATORS = {"headers.delimiter": "\t", "headers.separator": ",", "headers.key.separator": ":"}


def run(given: Given) -> int:
    given.require("topic")
    rules = _rules(given_properties(given, "property", "reader-config"))
    producer = given_properties(given, "producer-property", "producer.config")
    acks = _acks(producer.get("acks") or given.text("request-required-acks"))
    codec = _codec(given, producer)
    batch_size = 1 if given.has("sync") else _batch_size(given, producer)
    server = "bootstrap-server" if given.has("bootstrap-server") or not given.has("broker-list") else "broker-list"
    try:
        with connect(given, config_option="producer.config", server_option=server, further=producer) as client:
            topic = client.topic_made_if_absent(given.text("topic"))
            idempotent = acks == ACKS_ALL and is_true(producer, "enable.idempotence", default=True)
            sender = RecordSender(client, topic.name, acks=acks, compression=codec, idempotent=idempotent)
            prompt = ">" if sys.stdin.isatty() else ""
            write_lines(LineWriter(sender, topic, None, batch_size), [], rules, prompt=prompt)
    except (KafkaError, FatalError) as error:
        raise ToolError(str(error)) from None
    return 0


def _rules(properties: dict[str, str]) -> LineRules:
    marker = properties.get("null.marker")
    separators = {name: properties.get(name, default) for name, default in _SEPARATORS.items()}
    key_separator = properties.get("key.separator", "\t")
    taken = [*separators.items(), ("key.separator", key_separator)]
    for number, (name, value) in enumerate(taken[:3]):
        for other, another in taken[number + 1 : 3]:
            if value == another:
                raise ToolError(f"{name} and {other} may not be equal")
    for name, value in taken:
        if value == marker:
            raise ToolError(f"null.marker and {name} may not be equal")
    return LineRules(
        key_separator=key_separator.encode() if is_true(properties, "parse.key") else None,
        with_headers=is_true(properties, "parse.headers"),
        null_marker=None if marker is None else marker.encode(),
        headers_delimiter=separators["headers.delimiter"].encode(),
        headers_separator=separators["headers.separator"].encode(),
        headers_key_separator=separators["headers.key.separator"].encode(),
        ignores_errors=is_true(properties, "ignore.error"),
    )


def _acks(text: str) -> int:
    try:
        return {"0": 0, "1": 1, "-1": ACKS_ALL, "all": ACKS_ALL}[text]
    except KeyError:
        raise ToolError(f"Invalid value {text} for configuration acks: must be one of all, -1, 0, 1") from None


def _codec(given: Given, producer: dict[str, str]) -> Codec:
    name = (given.value("compression-codec") or "gzip") if given.has("compression-codec") else None
    name = name or producer.get("compression.type", "none")
    try:
        return Codec[name.upper()]
    except KeyError:
        raise ToolError(f"Unknown compression name: {name}") from None


def _batch_size(given: Given, producer: dict[str, str]) -> int:
    text = producer.get("batch.size") or given.value("max-partition-memory-bytes") or given.text("batch-size")
    try:
        return max(1, int(text))
    except ValueError:
        raise ToolError(f"Cannot parse argument '{text}' of option batch-size") from None

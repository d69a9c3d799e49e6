"""`odradek produce`: writes lines of standard input or of files as records (kafka-console-producer)."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated

from odradek.apps.cli.grammar.declaration import Argument, Option
from odradek.apps.cli.grammar.noun import command
from odradek.apps.cli.line_writer import LineWriter, write_lines
from odradek.apps.cli.name_values import parse_name_value_pairs
from odradek.apps.cli.output import DEFAULT_BOOTSTRAP, BootstrapOption, Format, FormatOption, note, print_fields
from odradek.apps.cli.record_text import LineRules, unescape
from odradek.apps.cli.usage import WrongUsage
from odradek.apps.figures import plural
from odradek.base.errors import FatalError
from odradek.client.cluster_client import ClusterClient
from odradek.client.producer_transaction import ProducerTransaction
from odradek.client.record_sender import ACKS_ALL, Headers, RecordSender
from odradek.protocol.compression import Codec

_TRANSACTION_TIMEOUT_MS = 60_000
_KAFKA_PROPERTIES = ("parse.key", "key.separator", "parse.headers", "null.marker")


class Compression(StrEnum):
    NONE = "none"
    GZIP = "gzip"
    SNAPPY = "snappy"
    LZ4 = "lz4"
    ZSTD = "zstd"

    @property
    def codec(self) -> Codec:
        return Codec[self.name]


class Acks(StrEnum):
    NONE = "0"
    LEADER = "1"
    ALL = "all"
    ALL_AS_NUMBER = "-1"

    @property
    def number(self) -> int:
        return ACKS_ALL if self is Acks.ALL else int(self.value)


AcksOption = Annotated[
    Acks, Option("--acks", help="Replicas that acknowledge a record: none, the leader, the whole ISR.")
]
CompressionOption = Annotated[Compression, Option("--compression, --compression-codec", help="Compression of batches.")]


@dataclass(frozen=True, slots=True)
class LineOptions:
    """Form of a line of the input."""

    key_separator: Annotated[
        str | None, Option("--key-separator, -K", help=r"Text between key and value of a line; \t is a tab.")
    ] = None
    headers: Annotated[bool, Option("--headers", help="Each line begins with name:value,name:value and a tab.")] = False
    header: Annotated[list[str] | None, Option("--header", metavar="NAME=VALUE", help="A header for every record.")] = (
        None
    )
    null_marker: Annotated[str | None, Option("--null-marker", help="Text of a key or value that stands for null.")] = (
        None
    )
    properties: Annotated[
        list[str] | None,
        Option("--property", metavar="KEY=VALUE", help=f"As Kafka's tool: {', '.join(_KAFKA_PROPERTIES)}."),
    ] = None

    def rules(self) -> LineRules:
        try:
            given = parse_name_value_pairs(self.properties or [])
        except ValueError as error:
            raise WrongUsage(str(error), "--property") from None
        for name in given:
            if name not in _KAFKA_PROPERTIES:
                raise WrongUsage(f"'{name}' is not known; use {', '.join(_KAFKA_PROPERTIES)}", "--property")
        separator = self.key_separator
        if separator is None and given.get("parse.key") == "true":
            separator = given.get("key.separator", r"\t")
        if separator == "":
            raise WrongUsage("can't be empty", "--key-separator")
        marker = self.null_marker if self.null_marker is not None else given.get("null.marker")
        return LineRules(
            key_separator=None if separator is None else unescape(separator),
            with_headers=self.headers or given.get("parse.headers") == "true",
            null_marker=None if marker is None else unescape(marker),
            fixed_headers=_fixed_headers(self.header or []),
        )


@dataclass(frozen=True, slots=True)
class SendOptions:
    """Settings of the producer."""

    compression: CompressionOption = Compression.NONE
    acks: AcksOption = Acks.ALL
    idempotent: Annotated[
        bool | None,
        Option(
            "--idempotent/--no-idempotent",
            help="Use an idempotent producer: each record is written once.",
            show_default="with acks=all",
        ),
    ] = None
    transactional_id: Annotated[
        str | None,
        Option("--transactional-id", metavar="ID", help="All lines in one transaction, committed at the end."),
    ] = None
    batch_size: Annotated[int, Option("--batch-size", min=1, help="Bytes of a batch.")] = 64 * 1024

    @property
    def is_idempotent(self) -> bool:
        needs_all = self.acks.number == ACKS_ALL
        if self.idempotent and not needs_all:
            raise WrongUsage("--idempotent needs --acks all")
        if self.transactional_id is not None and (self.idempotent is False or not needs_all):
            raise WrongUsage("--transactional-id needs --acks all and --idempotent")
        return needs_all if self.idempotent is None else self.idempotent


@command(
    examples=[
        "odradek produce orders < orders.txt",
        "echo 'k1:hello' | odradek produce orders --key-separator :",
        "odradek produce orders --compression zstd --header source=import a.txt b.txt",
        "odradek produce payments --transactional-id import-7 payments.txt",
    ]
)
def produce(
    topic: Annotated[str, Option("--topic, -t", placed=True, help="The topic, which must exist.")],
    lines: LineOptions,
    sending: SendOptions,
    files: Annotated[
        list[Path] | None, Argument(help="Files with a record on each line.", show_default="standard input")
    ] = None,
    partition: Annotated[
        int | None, Option("--partition, -p", min=0, help="Where to write.", show_default="by key, or in turn")
    ] = None,
    bootstrap_server: BootstrapOption = DEFAULT_BOOTSTRAP,
    output: FormatOption = Format.TABLE,
) -> None:
    """Write one record per line, and print a summary at the end."""
    rules = lines.rules()
    is_idempotent = sending.is_idempotent
    paths = _checked(files or [])
    with ClusterClient(bootstrap_server) as client, _transaction(client, sending.transactional_id) as transaction:
        state = client.topic(topic)
        sender = RecordSender(
            client,
            topic,
            acks=sending.acks.number,
            compression=sending.compression.codec,
            idempotent=is_idempotent,
            transaction=transaction,
        )
        writer = LineWriter(sender, state, partition, sending.batch_size)
        if not paths and sys.stdin.isatty():
            note(f"type records for {topic}, one per line; Ctrl-D ends")
        write_lines(writer, paths, rules)
    if output.is_table:
        note(f"{plural(writer.records, 'record')} written to {topic}")
    else:
        print_fields(writer.summary(), output)


@contextmanager
def _transaction(client: ClusterClient, transactional_id: str | None) -> Iterator[ProducerTransaction | None]:
    """Commit at the end; abort after a failure or Ctrl-C."""
    if transactional_id is None:
        yield None
        return
    transaction = ProducerTransaction(client, transactional_id, _TRANSACTION_TIMEOUT_MS)
    try:
        yield transaction
    except BaseException:
        transaction.end(commit=False)
        raise
    transaction.end(commit=True)


def _fixed_headers(pairs: list[str]) -> Headers:
    try:
        return tuple((name, value.encode()) for name, value in parse_name_value_pairs(pairs).items())
    except ValueError as error:
        raise WrongUsage(str(error), "--header") from None


def _checked(files: list[Path]) -> list[Path]:
    for path in files:
        if not path.is_file() and not path.is_fifo():
            raise FatalError(f"{path} is not a file")
    return files

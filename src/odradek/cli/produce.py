"""`odradek produce`: writes lines of standard input or of files as records (kafka-console-producer)."""

import os
import select
import sys
import time
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from odradek.base.errors import FatalError
from odradek.cli.output import (
    DEFAULT_BOOTSTRAP,
    BootstrapOption,
    Format,
    FormatOption,
    note,
    print_fields,
    progress,
)
from odradek.cli.record_text import LineError, LineRules, parse_line, parse_name_value_pairs, unescape
from odradek.cli.usage import WrongUsage, examples
from odradek.client.cluster_client import ClusterClient, TopicState, unknown_partition
from odradek.client.partitioner import partition_for_key
from odradek.client.record_sender import ACKS_ALL, Headers, NewRecord, RecordSender
from odradek.model.topology import TopicPartition
from odradek.protocol.compression import Codec

app = typer.Typer(add_completion=False)

_READ_BYTES = 256 * 1024
_RECORD_OVERHEAD_BYTES = 12
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


AcksOption = Annotated[Acks, typer.Option("--acks", help="Who must have a record: nobody, its leader, the whole ISR.")]
CompressionOption = Annotated[
    Compression, typer.Option("--compression", "--compression-codec", help="How batches are compressed.")
]


@app.command(
    epilog=examples(
        "odradek produce --topic orders < orders.txt",
        "echo 'k1:hello' | odradek produce --topic orders --key-separator :",
        "odradek produce --topic orders --compression zstd --header source=import a.txt b.txt",
    )
)
def produce(
    topic: Annotated[str, typer.Option("--topic", help="The topic, which must exist.")],
    files: Annotated[
        list[Path] | None, typer.Argument(help="Files with a record on each line.", show_default="standard input")
    ] = None,
    key_separator: Annotated[
        str | None, typer.Option("--key-separator", "-K", help=r"Ends the key in each line; \t is a tab.")
    ] = None,
    headers: Annotated[
        bool, typer.Option("--headers", help="Each line begins with name:value,name:value and a tab.")
    ] = False,
    header: Annotated[
        list[str] | None, typer.Option("--header", metavar="NAME=VALUE", help="A header of every record.")
    ] = None,
    null_marker: Annotated[
        str | None, typer.Option("--null-marker", help="A key or value that is exactly this becomes null.")
    ] = None,
    partition: Annotated[
        int | None, typer.Option("--partition", "-p", min=0, help="Where to write.", show_default="by key, or in turn")
    ] = None,
    compression: CompressionOption = Compression.NONE,
    acks: AcksOption = Acks.ALL,
    idempotent: Annotated[
        bool | None,
        typer.Option("--idempotent/--no-idempotent", help="Each record once.", show_default="with acks=all"),
    ] = None,
    batch_size: Annotated[int, typer.Option("--batch-size", min=1, help="Bytes to gather before sending.")] = 64 * 1024,
    properties: Annotated[
        list[str] | None,
        typer.Option("--property", metavar="KEY=VALUE", help=f"As Kafka's tool: {', '.join(_KAFKA_PROPERTIES)}."),
    ] = None,
    bootstrap_server: BootstrapOption = DEFAULT_BOOTSTRAP,
    output: FormatOption = Format.TABLE,
) -> None:
    """Write one record per line, and say at the end what was written."""
    rules = _rules(key_separator, headers, null_marker, _fixed_headers(header or []), properties or [])
    if idempotent and acks.number != ACKS_ALL:
        raise WrongUsage("--idempotent needs --acks all")
    paths = _checked(files or [])
    with ClusterClient(bootstrap_server) as client:
        state = client.topic(topic)
        sender = RecordSender(
            client,
            topic,
            acks=acks.number,
            compression=compression.codec,
            idempotent=acks.number == ACKS_ALL if idempotent is None else idempotent,
        )
        writer = _Writer(sender, state, partition, batch_size)
        if not paths and sys.stdin.isatty():
            note(f"type records for {topic}, one per line; Ctrl-D ends")
        _write_all(writer, paths, rules)
    print_fields(writer.summary(), output, title=f"wrote to {topic}" if output is Format.TABLE else "")


def _rules(
    key_separator: str | None, headers: bool, null_marker: str | None, fixed: Headers, properties: list[str]
) -> LineRules:
    try:
        given = parse_name_value_pairs(properties)
    except ValueError as error:
        raise WrongUsage(str(error), "--property") from None
    for name in given:
        if name not in _KAFKA_PROPERTIES:
            raise WrongUsage(f"'{name}' is not known; use {', '.join(_KAFKA_PROPERTIES)}", "--property")
    if key_separator is None and given.get("parse.key") == "true":
        key_separator = given.get("key.separator", r"\t")
    if key_separator == "":
        raise WrongUsage("can't be empty", "--key-separator")
    marker = null_marker if null_marker is not None else given.get("null.marker")
    return LineRules(
        key_separator=None if key_separator is None else unescape(key_separator),
        with_headers=headers or given.get("parse.headers") == "true",
        null_marker=None if marker is None else unescape(marker),
        fixed_headers=fixed,
    )


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


class _Writer:
    """Gathers records per partition and sends them when a batch is full or nothing more is waiting."""

    def __init__(self, sender: RecordSender, topic: TopicState, partition: int | None, batch_size: int) -> None:
        self._sender = sender
        self._partition_count = len(topic.partitions)
        if partition is not None and partition >= self._partition_count:
            raise unknown_partition(TopicPartition(topic.name, partition), self._partition_count)
        self._fixed_partition = partition
        self._next_partition = 0
        self._batch_size = batch_size
        self._gathered: dict[int, list[NewRecord]] = {}
        self._gathered_bytes: dict[int, int] = {}
        self._started = time.monotonic()
        self.records = 0
        self.record_bytes = 0

    def add(self, record: NewRecord) -> None:
        size = _RECORD_OVERHEAD_BYTES + len(record.key or b"") + len(record.value or b"")
        partition = self._partition_for(record.key)
        filled = self._gathered_bytes.get(partition, 0)
        if filled and filled + size > self._batch_size:
            self.flush()
            partition = self._partition_for(record.key)
        self._gathered.setdefault(partition, []).append(record)
        self._gathered_bytes[partition] = self._gathered_bytes.get(partition, 0) + size

    def flush(self) -> None:
        if not self._gathered:
            return
        self._sender.send(self._gathered)
        for batch in self._gathered.values():
            self.records += len(batch)
            self.record_bytes += sum(len(record.key or b"") + len(record.value or b"") for record in batch)
        self._gathered.clear()
        self._gathered_bytes.clear()
        self._next_partition = (self._next_partition + 1) % self._partition_count

    def summary(self) -> dict[str, object]:
        seconds = time.monotonic() - self._started
        return {
            "records": self.records,
            "bytes": self.record_bytes,
            "seconds": round(seconds, 3),
            "records_per_second": round(self.records / seconds, 1),
        }

    def _partition_for(self, key: bytes | None) -> int:
        if self._fixed_partition is not None:
            return self._fixed_partition
        if key is not None:
            return partition_for_key(key, self._partition_count)
        return self._next_partition


def _write_all(writer: _Writer, paths: list[Path], rules: LineRules) -> None:
    total = sum(path.stat().st_size for path in paths) if paths else None
    # On a terminal the bar would draw over what is being typed.
    with progress("writing", total, unit="bytes", hidden=not paths and sys.stdin.isatty()) as bar:
        task = bar.task_ids[0]
        for name, number, line in _lines(writer, paths):
            try:
                writer.add(NewRecord(*parse_line(line, rules)))
            except LineError as error:
                writer.flush()
                raise FatalError(f"{name} line {number}: {error}; {writer.records} records were written") from None
            bar.advance(task, len(line) + 1)
        writer.flush()


def _lines(writer: _Writer, paths: list[Path]) -> Iterator[tuple[str, int, bytes]]:
    """Each line with the name of its source and its number. Whenever the source has nothing ready, what is gathered
    goes out, so that lines typed or trickling in are written at once."""
    sources: list[Path | None] = [*paths] or [None]
    for source in sources:
        fd = sys.stdin.fileno() if source is None else os.open(source, os.O_RDONLY)
        name, number, rest = "standard input" if source is None else str(source), 0, b""
        try:
            while chunk := os.read(fd, _READ_BYTES):
                *lines, rest = (rest + chunk).split(b"\n")
                for line in lines:
                    number += 1
                    yield name, number, line.removesuffix(b"\r")
                if not select.select([fd], [], [], 0)[0]:
                    writer.flush()
            if rest:
                yield name, number + 1, rest
        finally:
            if source is not None:
                os.close(fd)

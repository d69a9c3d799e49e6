"""`odradek consume`: prints the records of topics as they come (kafka-console-consumer, kcat -C).

Without --group it reads partitions by itself, so nothing is committed and no group rebalances.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

from odradek.apps.cli.grammar.declaration import Option
from odradek.apps.cli.grammar.noun import command
from odradek.apps.cli.name_values import parse_name_value_pairs
from odradek.apps.cli.output import DEFAULT_BOOTSTRAP, BootstrapOption, note, warn
from odradek.apps.cli.record_formats import Decodings, RecordFormat, print_header, record_printer
from odradek.apps.cli.record_printing import Limits, Printer, Printing, Wanted
from odradek.apps.cli.record_text import FORMAT_TOKENS, Decode, format_from_flags
from odradek.apps.cli.topic_selection import parse_numbers, select_topics
from odradek.apps.cli.usage import WrongUsage
from odradek.apps.figures import plural
from odradek.client.cluster_client import ClusterClient, TopicState, unknown_partition
from odradek.client.group_reader import GroupReader
from odradek.client.moments import parse_moment
from odradek.client.partition_offsets import list_offsets
from odradek.client.record_reader import DEFAULT_OPTIONS, FetchOptions, RecordReader
from odradek.model.topic_names import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from odradek.model.topology import TopicPartition
from odradek.protocol.isolation import IsolationLevel
from odradek.protocol.messages.list_offsets import EARLIEST, LATEST

_TOKENS_HELP = ", ".join(f"%{token} {meaning}" for token, meaning in FORMAT_TOKENS.items())
_PRINT_PROPERTIES = {
    "print.key": "key",
    "print.headers": "headers",
    "print.timestamp": "timestamp",
    "print.offset": "offset",
    "print.partition": "partition",
}
_PROPERTIES = (*_PRINT_PROPERTIES, "key.separator")


class Isolation(StrEnum):
    READ_UNCOMMITTED = "read_uncommitted"
    READ_COMMITTED = "read_committed"

    @property
    def level(self) -> IsolationLevel:
        return IsolationLevel[self.name]


@dataclass(frozen=True, slots=True)
class _At:
    """Begin with the first record that isn't older than this time."""

    ms: int


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """Partitions and records to read."""

    where: Annotated[
        str,
        Option(
            "--filter, --where",
            metavar="EXPRESSION",
            help="Only records that fit: a word, or comparisons of key, value, value.PATH, header.NAME, partition, "
            "offset, timestamp and size by = != < <= > >= has in ~ !~, with and, or, not and parentheses.",
            show_default=False,
        ),
    ] = ""
    group: Annotated[
        str | None,
        Option("--group, -g", help="Share the partitions with this group's members, and commit.", show_default=False),
    ] = None
    from_beginning: Annotated[bool, Option("--from-beginning", help="The same as --offset earliest.")] = False
    offset: Annotated[
        str | None,
        Option(
            "--offset",
            metavar="N|-N|@TIME|earliest|latest",
            help="Where to begin; -N is the last N records of each partition, @TIME a time like '@15m ago'.",
            show_default="latest",
        ),
    ] = None
    partition: Annotated[
        str, Option("--partition, -p", metavar="N,…", help="Only these partitions.", show_default="all")
    ] = ""
    max_messages: Annotated[
        int | None, Option("--max-messages, -c, -n", min=1, help="Stop after this number of records.")
    ] = None
    timeout_ms: Annotated[
        int | None, Option("--timeout-ms", min=1, help="Stop when no record has come for this time.")
    ] = None
    exit_at_end: Annotated[bool, Option("--exit-at-end, -e", help="Stop at the present end of the partitions.")] = False
    isolation: Annotated[
        Isolation,
        Option("--isolation, --isolation-level", help="read_committed: without open and aborted transactions."),
    ] = Isolation.READ_UNCOMMITTED


@dataclass(frozen=True, slots=True)
class PrintOptions:
    """Parts of a record to print."""

    keys: Annotated[bool, Option("--keys", help="Print the key before the value.")] = False
    headers: Annotated[bool, Option("--headers", help="Print headers.")] = False
    timestamps: Annotated[bool, Option("--timestamps", help="Print the timestamp in ms.")] = False
    offsets: Annotated[bool, Option("--offsets", help="Print the offset.")] = False
    partitions: Annotated[bool, Option("--partitions", help="Print the partition.")] = False
    separator: Annotated[
        str | None, Option("--separator", help="Text between the printed parts.", show_default="a tab")
    ] = None
    properties: Annotated[
        list[str] | None,
        Option("--property", metavar="KEY=VALUE", help=f"As Kafka's tool: {', '.join(_PROPERTIES)}."),
    ] = None
    decode: Annotated[
        Decode,
        Option(
            "--decode",
            help="Form of keys and values; auto decodes __consumer_offsets, __transaction_state and topics with "
            "a schema.",
        ),
    ] = Decode.AUTO
    schema: Annotated[
        list[str] | None,
        Option(
            "--schema",
            metavar="[TOPIC=]FILE",
            help="An Avro schema (.avsc) of the values, also in a schema registry's frame; may be repeated.",
        ),
    ] = None
    format_string: Annotated[str | None, Option("--format-string, -f", help=f"{_TOKENS_HELP}; escapes as \\n.")] = None


@command(
    examples=[
        "odradek consume orders --from-beginning",
        "odradek consume orders --partition 0 --offset -10 --exit-at-end",
        "odradek consume orders --offset '@15m ago'",
        r"odradek consume --topic 'orders.*' -f '%t-%p/%o %T %k=%s\n' --max-messages 5",
        "odradek consume orders --group shop --from-beginning",
        "odradek consume payments --from-beginning --isolation read_committed",
        "odradek consume orders --offset -10 --filter 'value.amount > 100 and not key = test'",
        "odradek consume __consumer_offsets --from-beginning --exit-at-end -o json",
        "odradek consume clicks --schema clicks.avsc -o json",
    ]
)
def consume(
    topic: Annotated[
        str,
        Option("--topic, -t, --include", placed=True, help="A topic, several with commas, or a regular expression."),
    ],
    reading: ReadOptions,
    printing: PrintOptions,
    bootstrap_server: BootstrapOption = DEFAULT_BOOTSTRAP,
    output: Annotated[
        RecordFormat,
        Option(
            "--format, -o", help="Values line by line, a table, wide with everything, one JSON object per line, or CSV."
        ),
    ] = RecordFormat.TEXT,
) -> None:
    """Print records, and new ones as they are written, until Ctrl-C."""
    text_format = _text_format(printing)
    start = _parse_start(reading.offset, reading.from_beginning)
    wanted = parse_numbers(reading.partition, "--partition")
    wait_ms = min(DEFAULT_OPTIONS.max_wait_ms, reading.timeout_ms or DEFAULT_OPTIONS.max_wait_ms)
    fetching = FetchOptions(max_wait_ms=wait_ms, isolation=reading.isolation.level)
    record_printer(output, printing.format_string, text_format, None)  # refused before the cluster is asked
    if reading.group is not None:
        _check_group_options(reading.offset, wanted, reading.exit_at_end)
    with ClusterClient(bootstrap_server) as client:
        topics = select_topics(client.topics(), topic)
        decoding = _decoding(printing, reading.where, [state.name for state in topics])
        printer = record_printer(output, printing.format_string, text_format, decoding)
        limits = Limits(reading.max_messages, reading.timeout_ms)
        how = Consuming(printer, limits, fetching, _wanted(reading.where, decoding))
        print_header(output)
        if reading.group is not None:
            _consume_as_member(client, reading.group, topics, start, how)
        else:
            asked = [tp for state in topics for tp in _partitions(state, wanted)]
            _consume_partitions(client, asked, start, reading.exit_at_end, how)
    for name, each in (decoding or {}).items():
        if each.problem:
            warn(f"{name}: records could not be decoded and are shown as text: {each.problem}")


def _decoding(options: PrintOptions, where: str, topics: list[str]) -> Decodings | None:
    """Decoders of the topics, loaded only if they are needed."""
    internal = {OFFSETS_TOPIC, TRANSACTIONS_TOPIC}.intersection(topics)
    if options.decode is Decode.AUTO and not options.schema and not where and not internal:
        return None
    from odradek.apps.cli.record_decoding import decodings, read_schemas

    return decodings(options.decode, read_schemas(options.schema or ()), topics)


def _wanted(where: str, decoding: Decodings | None) -> Wanted | None:
    if not where or decoding is None:
        return None
    from odradek.apps.records.filters import FilterError, SeenRecord, own_search, parse_filter

    try:
        fits = parse_filter(where, own_search)
    except FilterError as error:
        raise WrongUsage(str(error), "--filter") from None
    return lambda tp, record: fits(SeenRecord(tp.partition, record, decoding[tp.topic].decoder))


@dataclass(frozen=True, slots=True)
class Consuming:
    """Options of reading and printing records."""

    printer: Printer
    limits: Limits
    fetching: FetchOptions
    wanted: Wanted | None = None


def _consume_as_member(
    client: ClusterClient, group: str, topics: list[TopicState], start: int | str | _At, how: Consuming
) -> None:
    members = GroupReader(
        client,
        group,
        [state.name for state in topics],
        begin_at=EARLIEST if start == "earliest" else LATEST,
        options=how.fetching,
    )
    printing = Printing(members, how.printer, how.limits, wanted=how.wanted)
    try:
        _run(printing)
    finally:
        members.close(printing.consumed)


def _consume_partitions(
    client: ClusterClient, asked: list[TopicPartition], start: int | str | _At, exit_at_end: bool, how: Consuming
) -> None:
    positions = _positions(client, asked, start, how.fetching.isolation)
    ends = _offsets_at(client, asked, LATEST, how.fetching.isolation) if exit_at_end else {}
    for tp, position in positions.items():
        if position > ends.get(tp, position):
            warn(f"partition {tp} ends at offset {ends[tp]}")
    unread = {tp: position for tp, position in positions.items() if position < ends.get(tp, position + 1)}
    if exit_at_end and start == "latest" and not unread:
        note("consume begins at the latest offset; --from-beginning reads the records that are there")
    reader = RecordReader(client, unread, how.fetching)
    _run(Printing(reader, how.printer, how.limits, ends, how.wanted))


def _check_group_options(offset: str | None, partitions: set[int], exit_at_end: bool) -> None:
    if partitions or offset is not None:
        raise WrongUsage("a group decides about partitions and offsets; leave --partition and --offset out")
    if exit_at_end:
        raise WrongUsage("--exit-at-end and --group exclude each other; use --timeout-ms or --max-messages")


def _run(printing: Printing) -> None:
    try:
        printing.run()
    except KeyboardInterrupt:
        note("")  # the terminal shows ^C on a line of its own
    scanned = f", {plural(printing.scanned, 'record')} scanned" if printing.scanned != printing.printed else ""
    note(f"{plural(printing.printed, 'record')} {'shown' if scanned else 'read'}{scanned}")


def _parse_start(offset: str | None, from_beginning: bool) -> int | str | _At:
    """Return a number, a time, `earliest` or `latest`."""
    if from_beginning and offset not in (None, "earliest"):
        raise WrongUsage("--from-beginning and --offset exclude each other; give one of them")
    if from_beginning:
        return "earliest"
    if offset in (None, "earliest", "latest", "beginning", "end"):
        return {"beginning": "earliest", "end": "latest", None: "latest"}.get(offset, offset or "latest")
    if offset is not None and offset.startswith("@"):
        try:
            return _At(parse_moment(offset[1:]))
        except ValueError as error:
            raise WrongUsage(str(error), "--offset") from None
    try:
        return int(offset or "")
    except ValueError:
        raise WrongUsage(f"'{offset}' is not a number, -N, @TIME, earliest or latest", "--offset") from None


def _partitions(topic: TopicState, wanted: set[int]) -> list[TopicPartition]:
    there = [partition.partition for partition in topic.partitions]
    for number in sorted(wanted - set(there)):
        raise unknown_partition(TopicPartition(topic.name, number), len(there))
    return [TopicPartition(topic.name, number) for number in there if not wanted or number in wanted]


def _positions(
    client: ClusterClient, asked: list[TopicPartition], start: int | str | _At, isolation: IsolationLevel
) -> dict[TopicPartition, int]:
    if start == "earliest":
        return _offsets_at(client, asked, EARLIEST, isolation)
    if start == "latest":
        return _offsets_at(client, asked, LATEST, isolation)
    if isinstance(start, _At):
        found = list_offsets(client, dict.fromkeys(asked, start.ms), isolation)
        ends = _offsets_at(client, asked, LATEST, isolation)
        return {tp: ends[tp] if answer.offset is None else answer.offset for tp, answer in found.items()}
    assert isinstance(start, int), "a start is a number, a time or one of the two words"
    if start >= 0:
        return dict.fromkeys(asked, start)
    first, last = _offsets_at(client, asked, EARLIEST, isolation), _offsets_at(client, asked, LATEST, isolation)
    return {tp: max(first[tp], last[tp] + start) for tp in asked}


def _offsets_at(
    client: ClusterClient, asked: list[TopicPartition], when: int, isolation: IsolationLevel
) -> dict[TopicPartition, int]:
    found = list_offsets(client, dict.fromkeys(asked, when), isolation)
    return {tp: answer.offset or 0 for tp, answer in found.items()}


def _text_format(options: PrintOptions) -> str:
    """Format of a printed record, by our flags and the properties of Kafka's console consumer."""
    try:
        given = parse_name_value_pairs(options.properties or [])
    except ValueError as error:
        raise WrongUsage(str(error), "--property") from None
    for name in given:
        if name not in _PROPERTIES:
            raise WrongUsage(f"'{name}' is not known; use {', '.join(_PROPERTIES)}", "--property")
    on = {part for name, part in _PRINT_PROPERTIES.items() if given.get(name) == "true"}
    return format_from_flags(
        timestamp=options.timestamps or "timestamp" in on,
        partition=options.partitions or "partition" in on,
        offset=options.offsets or "offset" in on,
        headers=options.headers or "headers" in on,
        key=options.keys or "key" in on,
        separator=options.separator if options.separator is not None else given.get("key.separator", r"\t"),
    )

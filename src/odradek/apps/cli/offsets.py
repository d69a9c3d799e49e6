"""`odradek offsets`: the first and the end offsets of partitions, or the offsets at a time (kafka-get-offsets)."""

from typing import Annotated

from odradek.apps.cli.grammar.declaration import Option
from odradek.apps.cli.grammar.noun import command
from odradek.apps.cli.output import DEFAULT_BOOTSTRAP, BootstrapOption, Format, FormatOption, print_rows
from odradek.apps.cli.topic_selection import parse_numbers, select_topics
from odradek.apps.cli.usage import WrongUsage
from odradek.apps.cli.watch import watchable
from odradek.base.errors import FatalError
from odradek.client.cluster_client import ClusterClient
from odradek.client.moments import parse_moment
from odradek.client.partition_offsets import SPECIAL_TIMES, FoundOffset, list_offsets
from odradek.model.topology import TopicPartition
from odradek.protocol.messages.list_offsets import EARLIEST, LATEST


@command(
    examples=[
        "odradek offsets orders",
        "odradek offsets orders --time '1h ago'",
        "odradek offsets --topic 'log-.*' --partitions 0,1 --time 1700000000000 --format json",
    ]
)
@watchable
def offsets(
    topic: Annotated[
        str | None,
        Option(
            "--topic, -t",
            placed=True,
            help="A topic, several with commas, or a regular expression.",
            show_default="all",
        ),
    ] = None,
    partitions: Annotated[
        str, Option("--partitions", metavar="N,…", help="Only these partitions.", show_default="all")
    ] = "",
    time: Annotated[
        str | None,
        Option(
            "--time",
            metavar="latest|earliest|max-timestamp|TIME",
            help="A time: the offset of the first record that isn't older.",
            show_default="earliest and latest",
        ),
    ] = None,
    exclude_internal_topics: Annotated[bool, Option("--exclude-internal-topics", help="Omit internal topics.")] = False,
    bootstrap_server: BootstrapOption = DEFAULT_BOOTSTRAP,
    output: FormatOption = Format.TABLE,
) -> None:
    """Show the offsets of partitions."""
    wanted = parse_numbers(partitions, "--partitions")
    try:
        timestamp = None if time is None else SPECIAL_TIMES.get(time) or parse_moment(time)
    except ValueError as error:
        raise WrongUsage(str(error), "--time") from None
    with ClusterClient(bootstrap_server) as client:
        topics = select_topics(client.topics(), topic, exclude_internal=exclude_internal_topics)
        asked = [
            TopicPartition(state.name, p.partition)
            for state in topics
            for p in state.partitions
            if not wanted or p.partition in wanted
        ]
        if wanted and not asked:
            raise FatalError(f"no topic has partition {', '.join(map(str, sorted(wanted)))}")
        if timestamp is None:
            rows, columns = _range_rows(client, asked), ("topic", "partition", "earliest", "latest", "records")
        else:
            found = list_offsets(client, dict.fromkeys(asked, timestamp))
            rows, columns = _rows_at(found), ("topic", "partition", "offset", "timestamp_ms", "leader_epoch")
    print_rows(rows, columns, output, empty="no partitions match")


def _range_rows(client: ClusterClient, asked: list[TopicPartition]) -> list[dict[str, object]]:
    first = list_offsets(client, dict.fromkeys(asked, EARLIEST))
    last = list_offsets(client, dict.fromkeys(asked, LATEST))
    return [
        {
            "topic": tp.topic,
            "partition": tp.partition,
            "earliest": first[tp].offset,
            "latest": last[tp].offset,
            "records": (last[tp].offset or 0) - (first[tp].offset or 0),
        }
        for tp in asked
    ]


def _rows_at(found: dict[TopicPartition, FoundOffset]) -> list[dict[str, object]]:
    return [
        {
            "topic": tp.topic,
            "partition": tp.partition,
            "offset": answer.offset,
            "timestamp_ms": answer.timestamp_ms,
            "leader_epoch": answer.leader_epoch,
        }
        for tp, answer in found.items()
    ]

"""`odradek elections`: elect the preferred leaders of partitions, or unclean ones (kafka-leader-election)."""

from pathlib import Path
from typing import Annotated

from odradek.apps.cli.grammar.declaration import Option
from odradek.apps.cli.grammar.noun import command
from odradek.apps.cli.output import DEFAULT_BOOTSTRAP, BootstrapOption, Format, FormatOption, print_rows
from odradek.apps.cli.partition_files import read_partitions
from odradek.apps.cli.usage import Exit, WrongUsage
from odradek.base.errors import ErrorCode
from odradek.client.cluster_client import ClusterClient
from odradek.client.elections import ElectionType, elect_leaders
from odradek.model.topology import TopicPartition


@command(
    examples=[
        "odradek elections --all-topic-partitions",
        "odradek elections orders --partition 0",
        "odradek elections --election-type unclean --path-to-json-file partitions.json",
    ]
)
def elections(
    election_type: Annotated[
        ElectionType,
        Option("--election-type", help="An unclean election may lose records."),
    ] = ElectionType.PREFERRED,
    topic: Annotated[
        str | None, Option("--topic, -t", placed=True, help="The topic of the partition.", show_default=False)
    ] = None,
    partition: Annotated[
        int | None, Option("--partition, -p", min=0, help="This one of the topic.", show_default=False)
    ] = None,
    path_to_json_file: Annotated[
        Path | None,
        Option(
            "--path-to-json-file", metavar="FILE", help="Partitions, as Kafka's tool takes them.", show_default=False
        ),
    ] = None,
    all_topic_partitions: Annotated[
        bool, Option("--all-topic-partitions", help="Elect the leaders of all partitions.")
    ] = False,
    bootstrap_server: BootstrapOption = DEFAULT_BOOTSTRAP,
    output: FormatOption = Format.TABLE,
) -> None:
    """Elect leaders of partitions."""
    wanted = _wanted(topic, partition, path_to_json_file, all_topic_partitions)
    with ClusterClient(bootstrap_server) as client:
        outcomes = elect_leaders(client, election_type, wanted)
    rows = [
        {"topic": tp.topic, "partition": tp.partition, "outcome": _outcome(code), "reason": reason}
        for tp, (code, reason) in sorted(outcomes.items())
    ]
    print_rows(rows, ("topic", "partition", "outcome", "reason"), output, empty="all preferred leaders are in place")
    if any(code not in (ErrorCode.NONE, ErrorCode.ELECTION_NOT_NEEDED) for code, _ in outcomes.values()):
        raise Exit(1)


def _wanted(
    topic: str | None, partition: int | None, path: Path | None, all_partitions: bool
) -> list[TopicPartition] | None:
    """Return the named partitions; None for all."""
    if sum([topic is not None, path is not None, all_partitions]) != 1:
        raise WrongUsage("give one of --topic with --partition, --path-to-json-file, --all-topic-partitions")
    if (topic is None) != (partition is None):
        raise WrongUsage("--topic and --partition go together")
    if path is not None:
        return read_partitions(path, "--path-to-json-file")
    return None if topic is None or partition is None else [TopicPartition(topic, partition)]


def _outcome(code: ErrorCode) -> str:
    match code:
        case ErrorCode.NONE:
            return "elected"
        case ErrorCode.ELECTION_NOT_NEEDED:
            return "not needed"
        case _:
            return code.name

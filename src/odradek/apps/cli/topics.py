"""`odradek topics`: list, describe, create, alter and delete topics (kafka-topics).

Each verb is a word (`odradek topics create orders`) or, as in Kafka's tool, an option (`--create --topic orders`).
"""

from dataclasses import dataclass
from typing import Annotated

from odradek.apps.cli.grammar.declaration import Argument, Option
from odradek.apps.cli.grammar.noun import Noun
from odradek.apps.cli.name_values import parse_name_value_pairs
from odradek.apps.cli.output import (
    DEFAULT_BOOTSTRAP,
    BootstrapOption,
    Format,
    FormatOption,
    cell,
    print_json,
    print_rows,
)
from odradek.apps.cli.topic_selection import parse_numbers, parse_replica_assignment, partitions_of, select_topics
from odradek.apps.cli.usage import Exit, WrongUsage
from odradek.apps.cli.watch import watchable
from odradek.base.errors import ErrorCode, KafkaError
from odradek.client.cluster_client import ClusterClient, TopicState
from odradek.client.record_deletion import HIGH_WATERMARK, delete_records
from odradek.client.topic_admin import (
    CLUSTER_DEFAULT,
    add_partitions,
    create_topic,
    delete_topic,
    min_isr,
    topic_configs,
)
from odradek.model.uuid_text import uuid_to_text

app = Noun(
    "List, describe, create, alter and delete topics.",
    examples=[
        "odradek topics create orders --partitions 3 --config retention.ms=3600000",
        "odradek topics describe orders",
        "odradek topics delete-records orders --before 1000",
        "odradek topics --list --exclude-internal --format json",
    ],
)

_PARTITION_COLUMNS = ("topic", "partition", "leader", "replicas", "isr", "offline_replicas")

Name = Annotated[str | None, Argument(metavar="TOPIC", help="The topic; the same as --topic.", show_default=False)]
NameOption = Annotated[str | None, Option("--topic, -t", metavar="TOPIC", help="The topic.", show_default=False)]
Names = Annotated[list[str] | None, Argument(metavar="TOPIC", help="Topics; the same as --topic.", show_default=False)]
PatternOption = Annotated[
    str | None,
    Option("--topic, -t", help="A topic, several with commas, or a regular expression.", show_default=False),
]
Assignment = Annotated[
    str | None,
    Option(
        "--replica-assignment",
        metavar="0:1,1:2,…",
        help="The brokers of each partition in order, the preferred leader first.",
        show_default=False,
    ),
]
IfExists = Annotated[bool, Option("--if-exists", help="Do nothing if the topic does not exist.")]
ExcludeInternal = Annotated[bool, Option("--exclude-internal", help="Omit internal topics.")]


@app.verb("list")
@watchable
def list_topics(
    names: Names = None,
    topic: PatternOption = None,
    exclude_internal: ExcludeInternal = False,
    bootstrap_server: BootstrapOption = DEFAULT_BOOTSTRAP,
    output: FormatOption = Format.TABLE,
) -> None:
    """List the topics."""
    with ClusterClient(bootstrap_server) as client:
        topics = select_topics(client.topics(), _wanted(names, topic), exclude_internal=exclude_internal)
    rows = [
        {
            "topic": state.name,
            "partitions": len(state.partitions),
            "replication_factor": _replication_factor(state),
            "under_replicated": sum(partition.is_under_replicated for partition in state.partitions),
            "internal": state.is_internal,
        }
        for state in topics
    ]
    columns = ("topic", "partitions", "replication_factor", "under_replicated", "internal")
    print_rows(rows, columns, output, empty="there are no topics; make one with: odradek topics create NAME")


@dataclass(frozen=True, slots=True)
class DescribeFilter:
    """Filters of described topics and partitions."""

    under_replicated_partitions: Annotated[
        bool, Option("--under-replicated-partitions", help="Only partitions with a replica out of sync.")
    ] = False
    unavailable_partitions: Annotated[
        bool, Option("--unavailable-partitions", help="Only partitions without a leader.")
    ] = False
    under_min_isr_partitions: Annotated[
        bool, Option("--under-min-isr-partitions", help="Only partitions with too few replicas in sync.")
    ] = False
    at_min_isr_partitions: Annotated[
        bool, Option("--at-min-isr-partitions", help="Only partitions with just enough replicas in sync.")
    ] = False
    topics_with_overrides: Annotated[
        bool, Option("--topics-with-overrides", help="Only topics with configs of their own, without partitions.")
    ] = False

    @property
    def reports(self) -> list[str]:
        """Fields of a partition's row, one of which must be true; none: every partition is shown."""
        flags = {
            "under_replicated": self.under_replicated_partitions,
            "unavailable": self.unavailable_partitions,
            "under_min_isr": self.under_min_isr_partitions,
            "at_min_isr": self.at_min_isr_partitions,
        }
        return [name for name, is_wanted in flags.items() if is_wanted]


@app.verb()
@watchable
def describe(
    only: DescribeFilter,
    names: Names = None,
    topic: PatternOption = None,
    exclude_internal: ExcludeInternal = False,
    if_exists: IfExists = False,
    bootstrap_server: BootstrapOption = DEFAULT_BOOTSTRAP,
    output: FormatOption = Format.TABLE,
) -> None:
    """Show partitions, leaders, replicas and configs of topics."""
    with ClusterClient(bootstrap_server) as client:
        topics = _existing(client, _wanted(names, topic), if_exists, exclude_internal)
        configs = topic_configs(client, [state.name for state in topics])
        needed = min_isr(client, [state.name for state in topics])
    described = [_described(state, configs[state.name], needed[state.name]) for state in topics]
    if only.topics_with_overrides:
        described = [row for row in described if row["configs"]]
        print_rows(described, ("topic", "configs"), output, empty="no topic has overridden configs")
        return
    if flags := only.reports:
        rows = [row for item in described for row in _partition_rows(item) if any(row[flag] for flag in flags)]
        kinds = " or ".join(flag.replace("_", " ") for flag in flags)
        print_rows(rows, _PARTITION_COLUMNS, output, empty=f"no partition is {kinds}")
        return
    _print_described(described, output)


@app.verb()
def create(
    name: Name = None,
    topic: NameOption = None,
    partitions: Annotated[
        int, Option("--partitions", help="How many.", show_default="the cluster's num.partitions")
    ] = CLUSTER_DEFAULT,
    replication_factor: Annotated[
        int,
        Option(
            "--replication-factor",
            help="Replicas of each partition.",
            show_default="the cluster's default.replication.factor",
        ),
    ] = CLUSTER_DEFAULT,
    config: Annotated[
        list[str] | None,
        Option("--config", metavar="KEY=VALUE", help="A config of the topic; may be repeated."),
    ] = None,
    replica_assignment: Assignment = None,
    if_not_exists: Annotated[bool, Option("--if-not-exists", help="Do nothing if the topic exists.")] = False,
    bootstrap_server: BootstrapOption = DEFAULT_BOOTSTRAP,
    output: FormatOption = Format.TABLE,
) -> None:
    """Create a topic."""
    wanted = _required(_one_of(name, topic))
    if replica_assignment is not None and (partitions, replication_factor) != (CLUSTER_DEFAULT, CLUSTER_DEFAULT):
        raise WrongUsage("--replica-assignment can't go with --partitions or --replication-factor")
    _at_least_one(partitions, "--partitions")
    _at_least_one(replication_factor, "--replication-factor")
    configs = _configs(config or [])
    assignment = parse_replica_assignment(replica_assignment) if replica_assignment else []
    done = "created"
    with ClusterClient(bootstrap_server) as client:
        _must_be_there(client, assignment)
        try:
            state = create_topic(
                client,
                wanted,
                partitions=partitions,
                replication_factor=replication_factor,
                configs=configs,
                assignment=assignment,
            )
        except KafkaError as error:
            if not (if_not_exists and error.code is ErrorCode.TOPIC_ALREADY_EXISTS):
                raise
            state, done = client.topic(wanted), "found"
    _tell(output, wanted, done, _shape(state))


@app.verb()
def alter(
    names: Names = None,
    topic: PatternOption = None,
    partitions: Annotated[
        int | None,
        Option("--partitions", min=1, help="The new number of partitions, more than before.", show_default=False),
    ] = None,
    replica_assignment: Assignment = None,
    if_exists: IfExists = False,
    bootstrap_server: BootstrapOption = DEFAULT_BOOTSTRAP,
    output: FormatOption = Format.TABLE,
) -> None:
    """Add partitions to a topic. Keys may go to other partitions after that."""
    wanted = _required(_wanted(names, topic))
    if partitions is None:
        raise WrongUsage("the new number of partitions is required", "--partitions")
    assigned = parse_replica_assignment(replica_assignment) if replica_assignment else []
    with ClusterClient(bootstrap_server) as client:
        for state in _existing(client, wanted, if_exists):
            # Kafka's list begins with the partitions that exist; the request names the new ones only.
            add_partitions(client, state.name, partitions, assigned[len(state.partitions) :])
            _tell(output, state.name, "altered", f"{len(state.partitions)} → {partitions} partitions")


@app.verb()
def delete(
    names: Names = None,
    topic: PatternOption = None,
    if_exists: IfExists = False,
    bootstrap_server: BootstrapOption = DEFAULT_BOOTSTRAP,
    output: FormatOption = Format.TABLE,
) -> None:
    """Delete topics and all their records."""
    wanted = _required(_wanted(names, topic))
    with ClusterClient(bootstrap_server) as client:
        for state in _existing(client, wanted, if_exists):
            delete_topic(client, state.name)
            _tell(output, state.name, "deleted", _shape(state))


@app.verb("delete-records")
def delete_old_records(
    before: Annotated[
        str, Option("--before", metavar="OFFSET|latest", help="Delete records before this offset; latest: all records.")
    ],
    name: Name = None,
    topic: PatternOption = None,
    partitions: Annotated[
        str, Option("--partitions", metavar="N,…", help="Only these partitions.", show_default="all")
    ] = "",
    bootstrap_server: BootstrapOption = DEFAULT_BOOTSTRAP,
    output: FormatOption = Format.TABLE,
) -> None:
    """Delete the oldest records of a topic, for good."""
    wanted = _required(_one_of(name, topic))
    if before != "latest" and not before.isdecimal():
        raise WrongUsage(f"'{before}' is neither an offset nor latest", "--before")
    numbers = parse_numbers(partitions, "--partitions")
    with ClusterClient(bootstrap_server) as client:
        chosen = partitions_of(client.topics(), [f"{wanted}:{number}" for number in sorted(numbers)] or [wanted])
        results = delete_records(client, dict.fromkeys(chosen, HIGH_WATERMARK if before == "latest" else int(before)))
    rows = [
        {
            "topic": tp.topic,
            "partition": tp.partition,
            "first_offset": result if isinstance(result, int) else None,
            "result": "deleted" if isinstance(result, int) else result.message,
        }
        for tp, result in sorted(results.items())
    ]
    print_rows(rows, ("topic", "partition", "first_offset", "result"), output)
    if any(row["first_offset"] is None for row in rows):
        raise Exit(1)


def _existing(
    client: ClusterClient, wanted: str | None, if_exists: bool, exclude_internal: bool = False
) -> list[TopicState]:
    try:
        return select_topics(client.topics(), wanted, exclude_internal=exclude_internal)
    except KafkaError:
        if if_exists:
            return []
        raise


def _described(state: TopicState, configs: dict[str, str | None], min_isr: int) -> dict[str, object]:
    return {
        "topic": state.name,
        "topic_id": uuid_to_text(state.topic_id),
        "internal": state.is_internal,
        "replication_factor": _replication_factor(state),
        "configs": configs,
        "partitions": [
            {
                "partition": partition.partition,
                "leader": partition.leader if partition.is_available else None,
                "leader_epoch": partition.leader_epoch,
                "replicas": list(partition.replicas),
                "isr": list(partition.isr),
                "offline_replicas": list(partition.offline_replicas),
                "under_replicated": partition.is_under_replicated,
                "unavailable": not partition.is_available,
                "under_min_isr": len(partition.isr) < min_isr,
                "at_min_isr": len(partition.isr) == min_isr,
            }
            for partition in state.partitions
        ],
    }


def _partition_rows(described: dict[str, object]) -> list[dict[str, object]]:
    partitions = described["partitions"]
    assert isinstance(partitions, list)
    return [{"topic": described["topic"], **partition} for partition in partitions]


def _print_described(described: list[dict[str, object]], output: Format) -> None:
    if output is Format.JSON:
        print_json(described)
        return
    if output is Format.CSV:
        print_rows([row for item in described for row in _partition_rows(item)], _PARTITION_COLUMNS, output)
        return
    for item in described:
        rows = _partition_rows(item)
        title = f"{item['topic']}  {_count(len(rows))}, replication factor {item['replication_factor']}"
        print_rows(rows, _PARTITION_COLUMNS[1:], output, title=title)
        print(f"topic id {item['topic_id']}   configs {cell(item['configs']) or 'none'}\n")


def _tell(output: Format, topic: str, done: str, detail: str) -> None:
    match output:
        case Format.JSON:
            print_json({"topic": topic, "result": done, "detail": detail})
        case Format.CSV:
            print_rows([{"topic": topic, "result": done, "detail": detail}], ("topic", "result", "detail"), output)
        case Format.TABLE | Format.WIDE:
            print(f"{done} topic {topic}: {detail}")


def _wanted(names: list[str] | None, option: str | None) -> str | None:
    """Topics as `select_topics` takes them."""
    return _one_of(",".join(names) if names else None, option)


def _one_of(name: str | None, option: str | None) -> str | None:
    if name is not None and option is not None and name != option:
        raise WrongUsage(f"two topics are given, '{name}' and '{option}' by --topic; use commas for several")
    return name if name is not None else option


def _required(name: str | None) -> str:
    if not name:
        raise WrongUsage("name the topic, as a word or with --topic")
    return name


def _must_be_there(client: ClusterClient, assignment: list[list[int]]) -> None:
    """Refuse replicas on brokers that don't exist: Kafka's protocol allows them, but on a command line they are
    mistakes."""
    missing = {broker for replicas in assignment for broker in replicas} - client.brokers().keys()
    if missing:
        raise WrongUsage(f"broker {min(missing)} is not in the cluster; see: odradek brokers", "--replica-assignment")


def _at_least_one(value: int, option: str) -> None:
    if value != CLUSTER_DEFAULT and value < 1:
        raise WrongUsage(f"{value} is less than 1", option)


def _configs(pairs: list[str]) -> dict[str, str]:
    try:
        return parse_name_value_pairs(pairs)
    except ValueError as error:
        raise WrongUsage(str(error), "--config") from None


def _shape(state: TopicState) -> str:
    return f"{_count(len(state.partitions))}, replication factor {_replication_factor(state)}"


def _count(partitions: int) -> str:
    return "1 partition" if partitions == 1 else f"{partitions} partitions"


def _replication_factor(state: TopicState) -> int:
    return len(state.partitions[0].replicas) if state.partitions else 0

"""`odradek log-dirs`: the brokers' log directories and their replicas (kafka-log-dirs)."""

from typing import Annotated

from odradek.apps.cli.grammar.declaration import Option
from odradek.apps.cli.grammar.noun import command
from odradek.apps.cli.output import DEFAULT_BOOTSTRAP, BootstrapOption, Format, FormatOption, print_rows
from odradek.apps.cli.topic_selection import parse_numbers, select_topics
from odradek.apps.cli.usage import WrongUsage
from odradek.apps.cli.watch import watchable
from odradek.apps.figures import size_text
from odradek.client.cluster_client import ClusterClient
from odradek.client.log_dir_admin import LogDir, describe_log_dirs

_DIRECTORY_COLUMNS = ("broker", "directory", "state", "replicas", "size", "volume", "free", "used")
_REPLICA_COLUMNS = ("broker", "directory", "topic", "partition", "size", "lag", "future")


@command(
    examples=[
        "odradek log-dirs",
        "odradek log-dirs orders",
        "odradek log-dirs --broker 0,1 --replicas --format csv",
    ]
)
@watchable
def log_dirs(
    topic: Annotated[
        str | None,
        Option(
            "--topic, -t",
            placed=True,
            help="Replicas of a topic, several with commas, or a regular expression.",
        ),
    ] = None,
    broker: Annotated[
        str, Option("--broker, --broker-list", metavar="N,…", help="Only these brokers.", show_default="all")
    ] = "",
    replicas: Annotated[bool, Option("--replicas", help="Show each replica, the largest first.")] = False,
    bootstrap_server: BootstrapOption = DEFAULT_BOOTSTRAP,
    output: FormatOption = Format.TABLE,
) -> None:
    """Show the used space of the brokers' directories, or the replicas in them."""
    asked = parse_numbers(broker, "--broker")
    with ClusterClient(bootstrap_server) as client:
        live = client.brokers().keys()
        for number in sorted(asked - live):
            raise WrongUsage(f"{number} is not in the cluster; it has {', '.join(map(str, sorted(live)))}", "--broker")
        names = None if topic is None else {state.name for state in select_topics(client.topics(), topic)}
        found = describe_log_dirs(client, asked or live)
    as_people_read = output.is_table
    if replicas or names is not None:
        rows = [row for log_dir in found for row in _replica_rows(log_dir, names)]
        rows.sort(key=lambda row: (-int(str(row["bytes"])), str(row["topic"])))
        print_rows(rows, _REPLICA_COLUMNS, output, empty="there are no replicas")
    else:
        print_rows([_directory_row(log_dir, as_people_read) for log_dir in found], _DIRECTORY_COLUMNS, output)


def _directory_row(log_dir: LogDir, as_people_read: bool) -> dict[str, object]:
    used = log_dir.used_percent
    return {
        "broker": log_dir.broker,
        "directory": log_dir.path,
        "state": log_dir.error.name if log_dir.error else "online",
        "replicas": len(log_dir.replicas),
        "size": size_text(log_dir.size) if as_people_read else log_dir.size,
        "volume": _size(log_dir.total_bytes, as_people_read),
        "free": _size(log_dir.usable_bytes, as_people_read),
        "used": None if used is None else f"{used:.1f}%",
    }


def _size(size_bytes: int | None, as_people_read: bool) -> object:
    return size_text(size_bytes) if as_people_read and size_bytes is not None else size_bytes


def _replica_rows(log_dir: LogDir, names: set[str] | None) -> list[dict[str, object]]:
    return [
        {
            "broker": log_dir.broker,
            "directory": log_dir.path,
            "topic": replica.tp.topic,
            "partition": replica.tp.partition,
            "size": size_text(replica.size),
            "bytes": replica.size,
            "lag": replica.lag,
            "future": replica.is_future,
        }
        for replica in log_dir.replicas
        if names is None or replica.tp.topic in names
    ]

"""`odradek groups`: list, describe, reset and delete consumer groups (kafka-consumer-groups)."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

from odradek.apps.cli.grammar.declaration import Option
from odradek.apps.cli.grammar.noun import Noun
from odradek.apps.cli.group_reset import reset
from odradek.apps.cli.group_selection import Groups, TopicsOption
from odradek.apps.cli.output import (
    DEFAULT_BOOTSTRAP,
    BootstrapOption,
    Format,
    FormatOption,
    cell,
    note,
    print_json,
    print_rows,
)
from odradek.apps.cli.topic_selection import partitions_of
from odradek.apps.cli.usage import Exit
from odradek.apps.cli.watch import watchable
from odradek.apps.figures import plural
from odradek.base.errors import KafkaError
from odradek.broker.recorder.rebalances import Rebalances
from odradek.client.cluster_client import ClusterClient
from odradek.client.group_admin import delete_group, delete_offsets, existing_group, list_groups
from odradek.client.group_lag import Lag, group_lags

app = Noun(
    "List, describe, reset and delete consumer groups.",
    examples=[
        "odradek groups list --state Stable,Empty",
        "odradek groups describe shop --watch 2",
        "odradek groups reset shop --topic orders --to-datetime 2026-01-31T12:00:00 --dry-run",
        "odradek groups reset shop --topic orders:0,1 --shift-by -100 --yes",
        "odradek groups delete shop",
    ],
)

_LAG_COLUMNS = (
    "group",
    "topic",
    "partition",
    "current_offset",
    "log_end_offset",
    "lag",
    "consumer_id",
    "host",
    "client_id",
)


@app.verb("list")
@watchable
def list_command(
    state: Annotated[
        str, Option("--state", metavar="STATE,…", help="Only groups in these states, such as Stable or Empty.")
    ] = "",
    bootstrap_server: BootstrapOption = DEFAULT_BOOTSTRAP,
    output: FormatOption = Format.TABLE,
) -> None:
    """List consumer groups."""
    with ClusterClient(bootstrap_server) as client:
        listings = list_groups(client, [item.strip() for item in state.split(",") if item.strip()])
    rows = [
        {"group": item.group, "state": item.state, "type": item.type, "protocol": item.protocol_type}
        for item in listings
    ]
    print_rows(rows, ("group", "state", "type", "protocol"), output, empty="there are no groups")


@app.verb()
@watchable
def describe(
    groups: Groups,
    data: Annotated[
        list[Path] | None,
        Option(
            "--data",
            metavar="DIR",
            help="The directory of `odradek up`, or journals of brokers, for reasons of rebalances; may be repeated.",
        ),
    ] = None,
    bootstrap_server: BootstrapOption = DEFAULT_BOOTSTRAP,
    output: FormatOption = Format.TABLE,
) -> None:
    """Show committed offsets, lag and the assigned member of each partition."""
    rebalances = Rebalances(*(data or ()))
    rebalances.read()
    with ClusterClient(bootstrap_server) as client:
        described = [_described(client, item, rebalances) for item in groups.chosen(client)]
    if output is Format.JSON:
        print_json([{**item, "partitions": rows} for item, rows in described])
        return
    if output is Format.CSV:
        print_rows([row for _, rows in described for row in rows], _LAG_COLUMNS, output)
        return
    for item, rows in described:
        title = f"{item['group']}  {item['state']}, {plural(item['members'], 'member')}, {_lag_text(item)}"
        print_rows(rows, _LAG_COLUMNS[1:], output, title=title, empty=f"{title}: no offsets, no members")
        if "rebalanced" in item:
            note(f"last rebalanced {item['rebalanced']}: {item['rebalanced_because']}")


@app.verb()
@watchable
def members(
    groups: Groups,
    bootstrap_server: BootstrapOption = DEFAULT_BOOTSTRAP,
    output: FormatOption = Format.TABLE,
) -> None:
    """Show the members of groups and their assigned partitions."""
    with ClusterClient(bootstrap_server) as client:
        found = [existing_group(client, item) for item in groups.chosen(client)]
    rows = [
        {
            "group": each.name,
            "consumer_id": member.id,
            "instance_id": member.instance_id,
            "client_id": member.client_id,
            "host": member.host,
            "partitions": len(member.partitions),
            "assignment": [str(tp) for tp in member.partitions],
        }
        for each in found
        for member in each.members
    ]
    columns = ("group", "consumer_id", "instance_id", "client_id", "host", "partitions", "assignment")
    print_rows(rows, columns, output, empty="no active members")


app.verb()(reset)


@app.verb()
def delete(
    groups: Groups,
    topic: TopicsOption = None,
    bootstrap_server: BootstrapOption = DEFAULT_BOOTSTRAP,
    output: FormatOption = Format.TABLE,
) -> None:
    """Delete groups without active members; with --topic, only their offsets in that topic."""
    rows: list[dict[str, object]] = []
    with ClusterClient(bootstrap_server) as client:
        chosen = groups.chosen(client)
        for item in chosen:
            rows += _forget(client, item, topic) if topic else [_deleted(client, item, is_alone=len(chosen) == 1)]
    print_rows(rows, tuple(rows[0]) if rows else ("group", "result"), output, empty="there are no groups")
    if any(row["result"] != "deleted" for row in rows):
        raise Exit(1)


def _described(
    client: ClusterClient, name: str, rebalances: Rebalances
) -> tuple[dict[str, Any], list[dict[str, object]]]:
    """The group, and a row for each partition."""
    group = existing_group(client, name)
    lags = group_lags(client, group)
    known = [lag.lag for lag in lags if lag.lag is not None]
    described: dict[str, Any] = {
        "group": name,
        "state": group.state,
        "coordinator": group.coordinator,
        "assignor": group.assignor,
        "members": len(group.members),
        "lag": sum(known) if known else None,
        "partitions_without_commit": sum(lag.tp is not None and lag.committed is None for lag in lags),
    }
    if last := rebalances.of(name)[-1:]:
        described["rebalanced"] = datetime.fromtimestamp(last[0].time_ms / 1000, UTC).isoformat(timespec="milliseconds")
        described["rebalanced_because"] = last[0].text
    ordered = sorted(lags, key=lambda lag: (lag.tp is None, lag.tp or ("", 0)))
    return described, [_lag_row(name, lag) for lag in ordered]


def _lag_text(item: dict[str, Any]) -> str:
    lag, without = f"lag {cell(item['lag']) or 'unknown'}", item["partitions_without_commit"]
    return f"{lag}, {plural(without, 'partition')} without a committed offset" if without else lag


def _lag_row(group: str, lag: Lag) -> dict[str, object]:
    member = lag.member
    return {
        "group": group,
        "topic": lag.tp.topic if lag.tp else None,
        "partition": lag.tp.partition if lag.tp else None,
        "current_offset": lag.committed,
        "log_end_offset": lag.end,
        "lag": lag.lag,
        "consumer_id": member.id if member else None,
        "host": member.host if member else None,
        "client_id": member.client_id if member else None,
    }


def _deleted(client: ClusterClient, group: str, *, is_alone: bool) -> dict[str, object]:
    """Delete each group; a failure does not keep the others from being deleted."""
    try:
        delete_group(client, group)
    except KafkaError as error:
        if is_alone:
            raise
        return {"group": group, "result": str(error)}
    return {"group": group, "result": "deleted"}


def _forget(client: ClusterClient, group: str, topics: list[str]) -> list[dict[str, object]]:
    partitions = partitions_of(client.topics(), topics)
    return [
        {"group": group, "topic": tp.topic, "partition": tp.partition, "result": code.name if code else "deleted"}
        for tp, code in sorted(delete_offsets(client, group, partitions).items())
    ]

"""`odradek groups`: list, describe, reset and delete consumer groups (kafka-consumer-groups)."""

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from odradek.base.errors import FatalError, KafkaError
from odradek.cli.output import (
    DEFAULT_BOOTSTRAP,
    BootstrapOption,
    Format,
    FormatOption,
    cell,
    note,
    print_json,
    print_rows,
    warn,
)
from odradek.cli.partition_files import read_plan
from odradek.cli.topic_selection import partitions_of
from odradek.cli.usage import WrongUsage, examples
from odradek.cli.verbs import VerbGroup
from odradek.cli.watch import watchable
from odradek.client.cluster_client import ClusterClient
from odradek.client.group_admin import (
    commit_offsets,
    committed_offsets,
    delete_group,
    delete_offsets,
    describe_group,
    existing_group,
    list_groups,
)
from odradek.client.group_lag import Lag, group_lags
from odradek.client.offset_reset import (
    Goal,
    Move,
    by_duration,
    from_file,
    parse_datetime,
    parse_duration,
    plan,
    shift_by,
    to_current,
    to_earliest,
    to_latest,
    to_offset,
    to_time,
)
from odradek.recorder.rebalances import Rebalances

app = typer.Typer(
    cls=VerbGroup,
    no_args_is_help=True,
    add_completion=False,
    help="List, describe, reset and delete consumer groups.",
    epilog=examples(
        "odradek groups list --state Stable,Empty",
        "odradek groups describe shop --watch 2",
        "odradek groups reset shop --topic orders --to-datetime 2026-01-31T12:00:00 --dry-run",
        "odradek groups reset shop --topic orders:0,1 --shift-by -100 --yes",
        "odradek groups delete shop",
    ),
)

Name = Annotated[
    str | None, typer.Argument(metavar="GROUP", help="The group; the same as --group.", show_default=False)
]
GroupOption = Annotated[
    list[str] | None, typer.Option("--group", metavar="GROUP", help="A group; may be given again.", show_default=False)
]
AllGroups = Annotated[bool, typer.Option("--all-groups", help="Every group.")]
Topics = Annotated[
    list[str] | None,
    typer.Option("--topic", metavar="TOPIC[:0,1]", help="A topic, or some partitions of it; may be given again."),
]
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
_MOVE_COLUMNS = ("group", "topic", "partition", "old_offset", "new_offset", "old_lag", "new_lag", "note")


@app.command("list")
@watchable
def list_command(
    state: Annotated[
        str, typer.Option("--state", metavar="STATE,…", help="Only groups in these, like Stable or Empty.")
    ] = "",
    bootstrap_server: BootstrapOption = DEFAULT_BOOTSTRAP,
    output: FormatOption = Format.TABLE,
) -> None:
    """Show which groups there are."""
    with ClusterClient(bootstrap_server) as client:
        listings = list_groups(client, [item.strip() for item in state.split(",") if item.strip()])
    rows = [
        {"group": item.group, "state": item.state, "type": item.type, "protocol": item.protocol_type}
        for item in listings
    ]
    print_rows(rows, ("group", "state", "type", "protocol"), output, empty="there are no groups")


@app.command()
@watchable
def describe(
    name: Name = None,
    group: GroupOption = None,
    all_groups: AllGroups = False,
    data: Annotated[
        list[Path] | None,
        typer.Option(
            "--data",
            metavar="DIR",
            help="Of `odradek up`, or with brokers' journals: tells why groups last rebalanced; may be repeated.",
        ),
    ] = None,
    bootstrap_server: BootstrapOption = DEFAULT_BOOTSTRAP,
    output: FormatOption = Format.TABLE,
) -> None:
    """Show where groups stand in each partition, how far behind, and who reads it."""
    rebalances = Rebalances(*(data or ()))
    rebalances.read()
    with ClusterClient(bootstrap_server) as client:
        described = [_described(client, item, rebalances) for item in _chosen(client, name, group, all_groups)]
    if output is Format.JSON:
        print_json([{**item, "partitions": rows} for item, rows in described])
        return
    if output is Format.CSV:
        print_rows([row for _, rows in described for row in rows], _LAG_COLUMNS, output)
        return
    for item, rows in described:
        title = f"{item['group']}  {item['state']}, {item['members']} members, lag {cell(item['lag']) or 'not known'}"
        print_rows(rows, _LAG_COLUMNS[1:], output, title=title, empty=f"{title}: no offsets, no members")
        if "rebalanced" in item:
            note(f"last rebalanced {item['rebalanced']}: {item['rebalanced_because']}")


@app.command()
@watchable
def members(
    name: Name = None,
    group: GroupOption = None,
    all_groups: AllGroups = False,
    bootstrap_server: BootstrapOption = DEFAULT_BOOTSTRAP,
    output: FormatOption = Format.TABLE,
) -> None:
    """Show who is in groups, and which partitions each one reads."""
    with ClusterClient(bootstrap_server) as client:
        groups = [existing_group(client, item) for item in _chosen(client, name, group, all_groups)]
    rows = [
        {
            "group": found.name,
            "consumer_id": member.id,
            "instance_id": member.instance_id,
            "client_id": member.client_id,
            "host": member.host,
            "partitions": len(member.partitions),
            "assignment": [str(tp) for tp in member.partitions],
        }
        for found in groups
        for member in found.members
    ]
    columns = ("group", "consumer_id", "instance_id", "client_id", "host", "partitions", "assignment")
    print_rows(rows, columns, output, empty="nobody is in it")


@app.command()
def reset(
    name: Name = None,
    group: GroupOption = None,
    all_groups: AllGroups = False,
    topic: Topics = None,
    all_topics: Annotated[bool, typer.Option("--all-topics", help="Every topic the group has offsets in.")] = False,
    earliest: Annotated[bool, typer.Option("--to-earliest", help="To the beginning.")] = False,
    latest: Annotated[bool, typer.Option("--to-latest", help="To the end.")] = False,
    current: Annotated[bool, typer.Option("--to-current", help="To where it stands.")] = False,
    offset: Annotated[int | None, typer.Option("--to-offset", min=0, help="To this offset.")] = None,
    shift: Annotated[int | None, typer.Option("--shift-by", help="By so many, back if negative.")] = None,
    moment: Annotated[
        str | None, typer.Option("--to-datetime", metavar="TIME", help="To a time like 2026-01-31T12:00:00.")
    ] = None,
    duration: Annotated[
        str | None, typer.Option("--by-duration", metavar="DURATION", help="To so long ago, like PT1H or P7D.")
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option("--from-file", metavar="CSV", help="To the offsets in lines of [group,]topic,partition,offset."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would change; the default.")] = False,
    execute: Annotated[bool, typer.Option("--execute", "--yes", help="Do it.")] = False,
    bootstrap_server: BootstrapOption = DEFAULT_BOOTSTRAP,
    output: FormatOption = Format.TABLE,
) -> None:
    """Move groups in which nobody is to other offsets. Shows old and new first; --execute does it."""
    if dry_run and execute:
        raise WrongUsage("--dry-run and --execute say different things; give one of them")
    goal = _goal(earliest, latest, current, offset, shift, moment, duration, file)
    if bool(topic) == all_topics and file is None:
        raise WrongUsage("say in which topics: --topic TOPIC[:0,1] or --all-topics")
    planned: list[tuple[str, list[Move]]] = []
    with ClusterClient(bootstrap_server) as client:
        for item in _chosen(client, name, group, all_groups):
            _must_be_idle(client, item)
            planned.append((item, _moves(client, item, topic or [], all_topics, goal, file)))
        if execute:
            for item, moves in planned:
                commit_offsets(client, item, {move.tp: move.new for move in moves})
    rows = [_move_row(item, move) for item, moves in planned for move in moves]
    print_rows(rows, _MOVE_COLUMNS, output, empty="there is nothing to move")
    if not execute:
        note("nothing was changed; --execute does it")


@app.command()
def delete(
    name: Name = None,
    group: GroupOption = None,
    all_groups: AllGroups = False,
    topic: Topics = None,
    bootstrap_server: BootstrapOption = DEFAULT_BOOTSTRAP,
    output: FormatOption = Format.TABLE,
) -> None:
    """Delete groups in which nobody is; with --topic, only their offsets in that topic."""
    rows: list[dict[str, object]] = []
    with ClusterClient(bootstrap_server) as client:
        chosen = _chosen(client, name, group, all_groups)
        for item in chosen:
            rows += _forget(client, item, topic) if topic else [_deleted(client, item, is_alone=len(chosen) == 1)]
    print_rows(rows, tuple(rows[0]) if rows else ("group", "result"), output, empty="there are no groups")
    if any(row["result"] != "deleted" for row in rows):
        raise typer.Exit(1)


def _chosen(client: ClusterClient, name: str | None, group: list[str] | None, all_groups: bool) -> list[str]:
    named = list(dict.fromkeys([*([name] if name else []), *(group or [])]))
    if bool(named) == all_groups:
        raise WrongUsage("name the group, as a word or with --group, or give --all-groups")
    return [item.group for item in list_groups(client) if item.is_consumers] if all_groups else named


def _described(
    client: ClusterClient, name: str, rebalances: Rebalances
) -> tuple[dict[str, object], list[dict[str, object]]]:
    """The group, and a row for each partition."""
    group = existing_group(client, name)
    lags = group_lags(client, group)
    known = [lag.lag for lag in lags if lag.lag is not None]
    described: dict[str, object] = {
        "group": name,
        "state": group.state,
        "coordinator": group.coordinator,
        "assignor": group.assignor,
        "members": len(group.members),
        "lag": sum(known) if known else None,
    }
    if last := rebalances.of(name)[-1:]:
        described["rebalanced"] = datetime.fromtimestamp(last[0].time_ms / 1000, UTC).isoformat(timespec="milliseconds")
        described["rebalanced_because"] = last[0].text
    return described, [_lag_row(name, lag) for lag in lags]


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


def _goal(
    earliest: bool,
    latest: bool,
    current: bool,
    offset: int | None,
    shift: int | None,
    moment: str | None,
    duration: str | None,
    file: Path | None,
) -> Goal | None:
    """None: as the file says, which is about each group its own."""
    try:
        goals: list[Goal | None] = [
            *([to_earliest] if earliest else []),
            *([to_latest] if latest else []),
            *([to_current] if current else []),
            *([to_offset(offset)] if offset is not None else []),
            *([shift_by(shift)] if shift is not None else []),
            *([to_time(parse_datetime(moment))] if moment is not None else []),
            *([by_duration(parse_duration(duration))] if duration is not None else []),
            *([None] if file is not None else []),
        ]
    except ValueError as error:
        raise WrongUsage(str(error), "--to-datetime" if moment else "--by-duration") from None
    if len(goals) != 1:
        raise WrongUsage(
            "say where to, in one way: --to-earliest, --to-latest, --to-current, --to-offset, --shift-by, "
            "--to-datetime, --by-duration or --from-file"
        )
    return goals[0]


def _must_be_idle(client: ClusterClient, group: str) -> None:
    found = describe_group(client, group)
    if not found.is_idle:
        raise FatalError(
            f"group '{group}' is {found.state} with {len(found.members)} members; stop them first "
            f"(odradek groups members {group} shows them)"
        )


def _moves(
    client: ClusterClient, group: str, topics: Sequence[str], all_topics: bool, goal: Goal | None, file: Path | None
) -> list[Move]:
    there = client.topics()
    if file is not None:
        offsets = read_plan(file, group, "--from-file").get(group, {})
        partitions_of(there, [f"{tp.topic}:{tp.partition}" for tp in offsets], "--from-file")
        return plan(client, group, offsets, from_file(offsets))
    assert goal is not None, "without a file there is another goal"
    wanted = topics
    if all_topics:
        wanted = sorted({tp.topic for tp in committed_offsets(client, group)} & there.keys())
    return plan(client, group, partitions_of(there, wanted), goal)


def _move_row(group: str, move: Move) -> dict[str, object]:
    if move.is_clamped:
        warn(f"{move.tp} doesn't reach so far: {move.new} is the nearest offset it has")
    return {
        "group": group,
        "topic": move.tp.topic,
        "partition": move.tp.partition,
        "old_offset": move.old,
        "new_offset": move.new,
        "old_lag": move.old_lag,
        "new_lag": move.new_lag,
        "note": "nearest there is" if move.is_clamped else "",
    }


def _deleted(client: ClusterClient, group: str, *, is_alone: bool) -> dict[str, object]:
    """One that can't be deleted doesn't keep the others from it."""
    try:
        delete_group(client, group)
    except KafkaError as error:
        if is_alone:
            raise
        return {"group": group, "result": error.message or error.code.name}
    return {"group": group, "result": "deleted"}


def _forget(client: ClusterClient, group: str, topics: list[str]) -> list[dict[str, object]]:
    partitions = partitions_of(client.topics(), topics)
    return [
        {"group": group, "topic": tp.topic, "partition": tp.partition, "result": code.name if code else "deleted"}
        for tp, code in sorted(delete_offsets(client, group, partitions).items())
    ]

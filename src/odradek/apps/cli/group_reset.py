"""`odradek groups reset`: resets offsets of groups, and shows old and new offsets first."""

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated

from odradek.apps.cli.grammar.declaration import Option
from odradek.apps.cli.group_selection import Groups, TopicsOption
from odradek.apps.cli.output import DEFAULT_BOOTSTRAP, BootstrapOption, Format, FormatOption, note, print_rows, warn
from odradek.apps.cli.partition_files import read_plan
from odradek.apps.cli.topic_selection import partitions_of
from odradek.apps.cli.usage import WrongUsage
from odradek.apps.figures import plural
from odradek.base.errors import FatalError
from odradek.client.cluster_client import ClusterClient
from odradek.client.group_admin import commit_offsets, describe_group
from odradek.client.offset_reset import GOALS, Goal, Move, from_file, plan, topics_with_offsets

_COLUMNS = ("group", "topic", "partition", "old_offset", "new_offset", "old_lag", "new_lag", "note")


@dataclass(frozen=True, slots=True)
class Aim:
    """Target of a reset, given in one of these ways; the fields have Kafka's names."""

    to_earliest: Annotated[bool, Option("--to-earliest", help="Reset to the first offset.")] = False
    to_latest: Annotated[bool, Option("--to-latest", help="Reset to the end offset.")] = False
    to_current: Annotated[bool, Option("--to-current", help="Keep the committed offset.")] = False
    to_offset: Annotated[int | None, Option("--to-offset", min=0, help="Reset to this offset.")] = None
    shift_by: Annotated[int | None, Option("--shift-by", help="Shift by this number of offsets; negative: back.")] = (
        None
    )
    to_datetime: Annotated[
        str | None,
        Option("--to-datetime", metavar="TIME", help="Reset to a time: 15m ago, 2026-01-31T12:00:00, or milliseconds."),
    ] = None
    by_duration: Annotated[
        str | None,
        Option("--by-duration", metavar="DURATION", help="Reset to this time before now: 1h, 15m, PT1H30M or P7D."),
    ] = None
    from_file: Annotated[
        Path | None,
        Option("--from-file", metavar="CSV", help="Reset to the offsets in lines of [group,]topic,partition,offset."),
    ] = None

    def goal(self) -> Goal | None:
        """Goal of the reset; None where the file has an offset for each group."""
        values = {field.name.replace("_", "-"): getattr(self, field.name) for field in fields(self)}
        given = {name: value for name, value in values.items() if value is not None and value is not False}
        if len(given) != 1:
            raise WrongUsage(f"exactly one target is required: {', '.join(f'--{name}' for name in values)}")
        [(name, value)] = given.items()
        if name not in GOALS:
            return None
        try:
            return GOALS[name](str(value))
        except ValueError as error:
            raise WrongUsage(str(error), f"--{name}") from None


def reset(
    groups: Groups,
    aim: Aim,
    topic: TopicsOption = None,
    all_topics: Annotated[bool, Option("--all-topics", help="All topics with committed offsets of the group.")] = False,
    dry_run: Annotated[bool, Option("--dry-run", help="Only show the changes; the default.")] = False,
    execute: Annotated[bool, Option("--execute, --yes", help="Do it.")] = False,
    bootstrap_server: BootstrapOption = DEFAULT_BOOTSTRAP,
    output: FormatOption = Format.TABLE,
) -> None:
    """Reset offsets of groups without active members. Shows old and new offsets; --execute commits the new ones."""
    if dry_run and execute:
        raise WrongUsage("--dry-run and --execute exclude each other; give one of them")
    goal = aim.goal()
    if bool(topic) == all_topics and goal is not None:
        raise WrongUsage("topics are required: --topic TOPIC[:0,1] or --all-topics")
    planned: list[tuple[str, list[Move]]] = []
    with ClusterClient(bootstrap_server) as client:
        for group in groups.chosen(client):
            _must_be_idle(client, group)
            if aim.from_file is not None:
                moves = _moves_of_file(client, group, aim.from_file)
            else:
                assert goal is not None, "without a file there is another goal"
                moves = _moves(client, group, topic, goal)
            planned.append((group, moves))
        if execute:
            for group, moves in planned:
                commit_offsets(client, group, {move.tp: move.new for move in moves})
    rows = [_row(group, move) for group, moves in planned for move in moves]
    print_rows(rows, _COLUMNS, output, empty="there is nothing to move")
    if not execute:
        note("nothing was changed; --execute does it")


def _must_be_idle(client: ClusterClient, group: str) -> None:
    found = describe_group(client, group)
    if not found.is_idle:
        raise FatalError(
            f"group '{group}' is {found.state} with {plural(len(found.members), 'member')}; stop them first "
            f"(odradek groups members {group} shows them)"
        )


def _moves_of_file(client: ClusterClient, group: str, file: Path) -> list[Move]:
    offsets = read_plan(file, group, "--from-file").get(group, {})
    partitions_of(client.topics(), [f"{tp.topic}:{tp.partition}" for tp in offsets], "--from-file")
    return plan(client, group, offsets, from_file(offsets))


def _moves(client: ClusterClient, group: str, topics: list[str] | None, goal: Goal) -> list[Move]:
    """New offsets in the named topics, or in all topics with offsets of the group."""
    there = client.topics()
    wanted = topics or topics_with_offsets(client, group, there)
    if not wanted:
        raise FatalError(f"group '{group}' has no offsets anywhere; name the topics with --topic TOPIC[:0,1]")
    return plan(client, group, partitions_of(there, wanted), goal)


def _row(group: str, move: Move) -> dict[str, object]:
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

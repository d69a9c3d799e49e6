"""kafka-consumer-groups: list, describe, reset and delete consumer groups."""

import csv
import io
import sys
from collections.abc import Sequence
from pathlib import Path

from odradek.apps.cli.kafka.exceptions import exception_text
from odradek.apps.cli.kafka.options import (
    BOOTSTRAP,
    COMMAND_CONFIG,
    EVERY_TOOL,
    Given,
    Option,
    OptionTable,
    WrongOptions,
)
from odradek.apps.cli.kafka.tool import connect, in_kafkas_words
from odradek.apps.cli.partition_files import read_plan
from odradek.apps.cli.topic_selection import partitions_of
from odradek.apps.cli.usage import WrongUsage
from odradek.base.errors import ErrorCode, KafkaError
from odradek.client.broker_client import ConnectionFailed
from odradek.client.cluster_client import ClusterClient
from odradek.client.group_admin import (
    Group,
    Member,
    commit_offsets,
    delete_group,
    delete_offsets,
    describe_group,
    list_groups,
)
from odradek.client.group_lag import Lag, group_lags
from odradek.client.offset_reset import GOALS, Goal, Move, from_file, plan, topics_with_offsets
from odradek.model.topology import TopicPartition

TABLE = OptionTable(
    "This tool helps to list all consumer groups, describe a consumer group, delete consumer group info, or reset "
    "consumer group offsets.",
    BOOTSTRAP,
    COMMAND_CONFIG,
    Option("list", "list all groups"),
    Option("describe", "show committed offsets and lag"),
    Option("delete", "delete groups without active members"),
    Option("reset-offsets", "reset offsets of groups without active members"),
    Option("delete-offsets", "delete committed offsets of topics"),
    Option("group", "the group; may be repeated", "GROUP"),
    Option("all-groups", "every group"),
    Option("topic", "a topic, or TOPIC:0,1; may be repeated", "TOPIC"),
    Option("all-topics", "all topics with offsets of the group"),
    Option("members", "with --describe: members of the group"),
    Option("offsets", "with --describe: committed offsets and lag, the default"),
    Option(
        "state",
        "with --describe: its state; with --list: show states, or only groups in these",
        "STATE,…",
        value_is_optional=True,
    ),
    Option("type", "with --list: show types, or only groups of these", "TYPE,…", value_is_optional=True),
    Option("verbose", "with --members: also their partitions"),
    Option("dry-run", "only show the new offsets"),
    Option("execute", "commit the new offsets"),
    Option("export", "print the new offsets as CSV"),
    Option("to-offset", "to this offset", "N"),
    Option("from-file", "to the offsets of a CSV file", "FILE"),
    Option("to-datetime", "to a time", "YYYY-MM-DDTHH:mm:SS.sss"),
    Option("by-duration", "to this duration ago", "PnDTnHnMnS"),
    Option("to-earliest", "to the beginning"),
    Option("to-latest", "to the end"),
    Option("to-current", "to the committed offset"),
    Option("shift-by", "by this number, back if negative", "N"),
    Option("timeout", "ms to wait for the cluster", "MS", default="5000"),
    *EVERY_TOOL,
)
_ACTIONS = ("list", "describe", "delete", "reset-offsets", "delete-offsets")
_GOALS = (*GOALS, "from-file")
_MISSING = "-"
_EXECUTION = "java.util.concurrent.ExecutionException"


def run(given: Given) -> int:
    action = given.one_action(*_ACTIONS)
    given.require("bootstrap-server")
    _check(given, action)
    try:
        with connect(given) as client:
            _RUN[action](client, given)
    except KafkaError as error:
        _error(f"Executing consumer group command failed due to {in_kafkas_words(error)}")
        return 1
    except ConnectionFailed as error:
        _error(f"Executing consumer group command failed due to {error}")
        return 1
    except WrongUsage as error:
        raise WrongOptions(str(error)) from None
    return 0


def _check(given: Given, action: str) -> None:
    if action in ("describe", "delete", "reset-offsets") and not given.any_of("group", "all-groups"):
        raise WrongOptions(f"Option [{action}] takes one of these options: [group], [all-groups]")
    if action == "describe" and len(given.any_of("members", "offsets", "state")) > 1:
        raise WrongOptions("Option [describe] takes at most one of these options: [members], [offsets], [state]")
    if action == "delete" and given.has("topic"):
        raise WrongOptions("The consumer does not support topic-specific offset deletion from a consumer group.")
    if action == "delete-offsets" and len(given.any_of("group", "topic")) != 2:
        raise WrongOptions("Option [delete-offsets] takes the following options: [group], [topic]")
    given.forbid_with("group", "all-groups", "list")
    if action == "reset-offsets":
        given.forbid_with("dry-run", "execute")
        goals = given.any_of(*_GOALS)
        if len(goals) != 1:
            raise WrongOptions(
                "Option [reset-offsets] requires one of the following scenarios: "
                + ", ".join(f"[{goal}]" for goal in _GOALS)
            )
        if not given.any_of("topic", "all-topics", "from-file"):
            raise WrongOptions("One of the reset scopes should be defined: --all-topics, --topic.")


def _error(text: str) -> None:
    print(f"\nError: {text}")


def _list(client: ClusterClient, given: Given) -> None:
    states = [state.strip() for state in (given.value("state") or "").split(",") if state.strip()]
    types = [kind.strip() for kind in (given.value("type") or "").lower().split(",") if kind.strip()]
    listings = [item for item in list_groups(client, states, types) if item.is_consumers]
    if not given.any_of("state", "type"):
        sys.stdout.write("".join(f"{item.group}\n" for item in listings))
        return
    width = max([15, *(len(item.group) for item in listings)]) + 10
    shown = given.any_of("type", "state")
    for group, kind, state in [("GROUP", "TYPE", "STATE"), *((i.group, i.type.title(), i.state) for i in listings)]:
        columns = {"type": kind, "state": state}
        print(f"{group:<{width}}" + "".join(f" {columns[column]:<20}" for column in shown))


def _chosen(client: ClusterClient, given: Given) -> list[str]:
    if given.has("all-groups"):
        return [item.group for item in list_groups(client) if item.is_consumers]
    return sorted(set(given.values("group")))


def _describe(client: ClusterClient, given: Given) -> None:
    groups = [describe_group(client, name) for name in _chosen(client, given)]
    for group in groups:
        if given.has("members"):
            _print_members(group, given.has("verbose"))
        elif given.has("state"):
            _print_state(group)
        else:
            _print_lags(client, group)


def _tell_state(group: Group) -> bool:
    """Print the first lines of Kafka's tool; return whether there is anything else to print."""
    match group.state:
        case "Dead":
            _error(f"Consumer group '{group.name}' does not exist.")
            return False
        case "Empty":
            print(f"\nConsumer group '{group.name}' has no active members.", file=sys.stderr)
        case "PreparingRebalance" | "CompletingRebalance" | "Assigning" | "Reconciling":
            print(f"\nWarning: Consumer group '{group.name}' is rebalancing.", file=sys.stderr)
    return True


def _print_lags(client: ClusterClient, group: Group) -> None:
    if not _tell_state(group):
        return
    lags = [lag for lag in group_lags(client, group) if lag.tp is not None]
    if not lags:
        return
    rows = [_lag_row(group.name, lag) for lag in lags]
    head = (
        "GROUP",
        "TOPIC",
        "PARTITION",
        "CURRENT-OFFSET",
        "LOG-END-OFFSET",
        "LAG",
        "CONSUMER-ID",
        "HOST",
        "CLIENT-ID",
    )
    widths = [10 if name == "PARTITION" else 15 for name in head[:-1]]
    for column in (0, 1, 6, 7):
        widths[column] = max(widths[column], *(len(row[column]) for row in rows))
    sys.stdout.write("".join("\n" + _padded(row[:-1], widths) + row[-1] for row in [head, *rows]))


def _lag_row(group: str, lag: Lag) -> tuple[str, ...]:
    assert lag.tp is not None
    numbers = [_MISSING if value is None else str(value) for value in (lag.committed, lag.end, lag.lag)]
    member = lag.member
    who = (member.id, member.host, member.client_id) if member else (_MISSING,) * 3
    return (group, lag.tp.topic, str(lag.tp.partition), *numbers, *who)


def _print_members(group: Group, verbose: bool) -> None:
    _tell_state(group)
    with_instances = any(member.instance_id for member in group.members)
    head = ["GROUP", "CONSUMER-ID", *(["GROUP-INSTANCE-ID"] if with_instances else []), "HOST", "CLIENT-ID"]
    rows = [
        [group.name, m.id, *([m.instance_id or ""] if with_instances else []), m.host, m.client_id]
        for m in group.members
    ]
    least = [17 if name == "GROUP-INSTANCE-ID" else 15 for name in head]
    widths = [max([width, *(len(row[n]) for row in rows)]) for n, width in enumerate(least)]
    print()
    print(_padded(head, widths) + f"{'#PARTITIONS':<15} " + ("ASSIGNMENT" if verbose else ""))
    for row, member in zip(rows, group.members, strict=True):
        print(_padded(row, widths) + f"{len(member.partitions):<15} " + (_assignment(member) if verbose else ""))


def _padded(cells: Sequence[str], widths: Sequence[int]) -> str:
    return "".join(f"{cell:<{width}} " for cell, width in zip(cells, widths, strict=True))


def _assignment(member: Member) -> str:
    topics: dict[str, list[str]] = {}
    for tp in member.partitions:
        topics.setdefault(tp.topic, []).append(str(tp.partition))
    return ", ".join(sorted(f"({','.join(sorted(numbers))})" for numbers in topics.values())) or _MISSING


def _print_state(group: Group) -> None:
    if not _tell_state(group):
        return
    host, port = group.coordinator_address
    coordinator = f"{host}:{port}  ({group.coordinator})"
    width = max(25, len(coordinator))
    for row in (
        ("GROUP", "COORDINATOR (ID)", "ASSIGNMENT-STRATEGY", "STATE", "#MEMBERS"),
        (group.name, coordinator, group.assignor, group.state, str(len(group.members))),
    ):
        sys.stdout.write(f"\n{row[0]:<{width}} {row[1]:<25} {row[2]:<20} {row[3]:<15} {row[4]}")
    print()


def _delete(client: ClusterClient, given: Given) -> None:
    done: list[str] = []
    failed: dict[str, KafkaError] = {}
    for name in _chosen(client, given):
        try:
            delete_group(client, name)
            done.append(name)
        except KafkaError as error:
            failed[name] = error
    if not failed:
        print(f"Deletion of requested consumer groups ('{', '.join(done)}') was successful.")
        return
    _error("Deletion of some consumer groups failed:")
    for name, reason in failed.items():
        print(f"* Group '{name}' could not be deleted due to: {_EXECUTION}: {exception_text(reason.code)}")
    if done:
        print(f"\nThese consumer groups were deleted successfully: '{', '.join(done)}'")


def _reset(client: ClusterClient, given: Given) -> None:
    if not given.any_of("dry-run", "execute"):
        print("WARN: No action will be performed as the --execute option is missing.", file=sys.stderr)
    goal = _goal(given)
    moves: dict[str, list[Move]] = {}
    for name in _chosen(client, given):
        group = describe_group(client, name)
        if group.is_idle:
            moves[name] = _moves(client, name, given, goal)
        else:
            _error(
                f"Assignments can only be reset if the group '{name}' is inactive, "
                f"but the current state is {group.state}."
            )
            moves[name] = []
    if given.has("execute"):
        for name, planned in moves.items():
            commit_offsets(client, name, {move.tp: move.new for move in planned})
    if given.has("export"):
        print(_as_csv(moves))
        return
    lines = [f"{'GROUP':<30} {'TOPIC':<30} {'PARTITION':<10} {'NEW-OFFSET':<15}"]
    lines += [
        f"{name:<30} {move.tp.topic:<30} {move.tp.partition:<10} {move.new:<15}"
        for name, planned in moves.items()
        for move in planned
    ]
    # Kafka's tool forgets the ends of these lines; a reader of its output cuts at columns, not at lines
    sys.stdout.write("\n" + "".join(lines) if moves else "")


def _goal(given: Given) -> Goal | None:
    """Return the goal of the reset; None where the file has the offsets."""
    [name] = given.any_of(*_GOALS)
    if name not in GOALS:
        return None
    if name in ("to-offset", "shift-by"):
        given.number(name)  # or Kafka's words about it
    try:
        return GOALS[name](given.value(name) or "")
    except ValueError as error:
        raise WrongOptions(str(error)) from None


def _moves(client: ClusterClient, group: str, given: Given, goal: Goal | None) -> list[Move]:
    if goal is None:
        offsets = read_plan(Path(given.text("from-file")), group, "from-file").get(group, {})
        if not offsets:
            _error(f"No reset plan for group {group} found")
        return plan(client, group, offsets, from_file(offsets))
    topics = given.values("topic")
    there = client.topics()
    if given.has("all-topics"):
        topics = topics_with_offsets(client, group, there)
    return plan(client, group, partitions_of(there, topics), goal)


def _as_csv(moves: dict[str, list[Move]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    for name, planned in moves.items():
        for move in planned:
            row: list[object] = [move.tp.topic, move.tp.partition, move.new]
            writer.writerow(row if len(moves) == 1 else [name, *row])
    return text.getvalue()


def _delete_offsets(client: ClusterClient, given: Given) -> None:
    group, topics = given.text("group"), given.values("topic")
    outcomes: dict[TopicPartition, ErrorCode] = {}
    try:
        outcomes = delete_offsets(client, group, partitions_of(client.topics(), topics))
    except KafkaError as error:
        match error.code:
            case ErrorCode.GROUP_ID_NOT_FOUND:
                _error(f"'{group}' does not exist.")
            case ErrorCode.NON_EMPTY_GROUP:
                _error(f"Deleting offsets of a consumer group '{group}' is forbidden if the group is not empty.")
            case _:
                _error(f"Encounter some unknown error: {error.code.name}")
    else:
        if any(outcomes.values()):
            _error("Encounter some partition level error, see the follow-up details:")
        else:
            print(f"Request succeed for deleting offsets with topic {', '.join(topics)} group {group}")
    lines = [f"{'TOPIC':<30} {'PARTITION':<15} {'STATUS':<15}"]
    lines += [
        f"{tp.topic:<30} {tp.partition:<15} {'Error: :' + code.name if code else 'Successful':<15}"
        for tp, code in sorted(outcomes.items())
    ]
    sys.stdout.write("\n" + "".join(lines))


_RUN = {
    "list": _list,
    "describe": _describe,
    "delete": _delete,
    "reset-offsets": _reset,
    "delete-offsets": _delete_offsets,
}

"""`odradek reassign`: move replicas to other brokers, and follow the moves (kafka-reassign-partitions)."""

from pathlib import Path
from typing import Annotated

from odradek.apps.cli import reassign_plan, reassign_run
from odradek.apps.cli.grammar.declaration import Option
from odradek.apps.cli.grammar.noun import Noun
from odradek.apps.cli.output import (
    DEFAULT_BOOTSTRAP,
    BootstrapOption,
    Format,
    FormatOption,
    note,
    print_json,
    print_rows,
)
from odradek.apps.cli.partition_files import read_assignments
from odradek.apps.cli.usage import Exit
from odradek.base.errors import ErrorCode
from odradek.client.cluster_client import ClusterClient
from odradek.client.reassignments import alter_reassignments, ongoing_reassignments
from odradek.model.topology import TopicPartition

app = Noun(
    "Move replicas to other brokers: plan, run, status, cancel, undo; and the verbs of Kafka's tool.",
    examples=[
        "odradek reassign plan --drain 2 --out plan.json",
        "odradek reassign plan --brokers 0,1,2,3 --balance leaders --throttle 20MB --out plan.json",
        "odradek reassign run plan.json --throttle 20MB",
        "odradek reassign status",
        "odradek reassign undo",
        "odradek reassign execute plan.json > back.json",
    ],
)

PlanOption = Annotated[
    Path,
    Option(
        "--reassignment-json-file", metavar="FILE", help="Partitions with their replicas, as Kafka's tool.", placed=True
    ),
]
_PLAN = "--reassignment-json-file"
_OUTCOMES = ("topic", "partition", "outcome", "reason")


for verb in (reassign_plan.plan, reassign_run.run, reassign_run.status, reassign_run.undo):
    app.verb()(verb)


@app.verb()
def execute(
    reassignment_json_file: PlanOption,
    bootstrap_server: BootstrapOption = DEFAULT_BOOTSTRAP,
    output: FormatOption = Format.TABLE,
) -> None:
    """Start the moves of the file. Print the plan that undoes them as JSON; results go to standard error."""
    plan = read_assignments(reassignment_json_file, _PLAN)
    with ClusterClient(bootstrap_server) as client:
        rollback = _as_plan(client, plan)
        answers = alter_reassignments(client, dict(plan))
    if not output.is_table:
        _report(answers, "begun", output)
        return
    print_json(rollback)
    for tp, (code, reason) in sorted(answers.items()):
        note(f"{tp}: {f'{code.name} {reason or str()}'.rstrip() if code else 'reassignment begun'}")
    if any(code for code, _ in answers.values()):
        raise Exit(1)


@app.verb()
def cancel(
    reassignment_json_file: Annotated[
        Path | None, Option(_PLAN, metavar="FILE", help="These partitions'.", show_default="the last run's")
    ] = None,
    bootstrap_server: BootstrapOption = DEFAULT_BOOTSTRAP,
    output: FormatOption = Format.TABLE,
) -> None:
    """Cancel moves: the partitions get their former replicas. The throttles of a run are removed."""
    if reassignment_json_file is None:
        reassign_run.cancel_last_run(bootstrap_server, output)
        return
    plan = read_assignments(reassignment_json_file, _PLAN)
    with ClusterClient(bootstrap_server) as client:
        _report(alter_reassignments(client, dict.fromkeys(plan)), "cancelled", output)


@app.verb("list")
def list_moves(bootstrap_server: BootstrapOption = DEFAULT_BOOTSTRAP, output: FormatOption = Format.TABLE) -> None:
    """Show the moves in progress."""
    with ClusterClient(bootstrap_server) as client:
        ongoing = ongoing_reassignments(client)
    rows = [
        {
            "topic": tp.topic,
            "partition": tp.partition,
            "replicas": move.replicas,
            "adding": move.adding,
            "removing": move.removing,
        }
        for tp, move in sorted(ongoing.items())
    ]
    print_rows(rows, ("topic", "partition", "replicas", "adding", "removing"), output, empty="nothing is being moved")


@app.verb()
def verify(
    reassignment_json_file: PlanOption,
    bootstrap_server: BootstrapOption = DEFAULT_BOOTSTRAP,
    output: FormatOption = Format.TABLE,
) -> None:
    """Show the progress of the moves of the file. Exit code 1: some are not done."""
    plan = read_assignments(reassignment_json_file, _PLAN)
    with ClusterClient(bootstrap_server) as client:
        ongoing, now = ongoing_reassignments(client), _replicas_now(client, plan)
    rows = [
        {"topic": tp.topic, "partition": tp.partition, "outcome": _progress(wanted, now.get(tp), tp in ongoing)}
        for tp, wanted in plan.items()
    ]
    print_rows(rows, ("topic", "partition", "outcome"), output)
    if any(row["outcome"] != "completed" for row in rows):
        raise Exit(1)


def _progress(wanted: list[int], now: list[int] | None, is_moving: bool) -> str:
    if now is None:
        return "no such partition"
    if is_moving:
        return "in progress"
    return "completed" if now == wanted else f"not as planned: {','.join(map(str, now))}"


def _as_plan(client: ClusterClient, plan: dict[TopicPartition, list[int]]) -> dict[str, object]:
    now = _replicas_now(client, plan)
    partitions = [{"topic": tp.topic, "partition": tp.partition, "replicas": now[tp]} for tp in plan if tp in now]
    return {"version": 1, "partitions": partitions}


def _replicas_now(client: ClusterClient, plan: dict[TopicPartition, list[int]]) -> dict[TopicPartition, list[int]]:
    return {
        TopicPartition(topic.name, partition.partition): list(partition.replicas)
        for topic in client.topics(sorted({tp.topic for tp in plan})).values()
        for partition in topic.partitions
    }


def _report(answers: dict[TopicPartition, tuple[ErrorCode, str | None]], done: str, output: Format) -> None:
    rows = [
        {
            "topic": tp.topic,
            "partition": tp.partition,
            "outcome": code.name if code else done,
            "reason": reason,
        }
        for tp, (code, reason) in sorted(answers.items())
    ]
    print_rows(rows, _OUTCOMES, output)
    if any(code for code, _ in answers.values()):
        raise Exit(1)

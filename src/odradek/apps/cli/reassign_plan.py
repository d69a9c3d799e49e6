"""`odradek reassign plan`: makes a plan in Kafka's JSON for a goal, with its cost and risks. Changes nothing."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

from odradek.apps.cli.grammar.declaration import Option
from odradek.apps.cli.output import (
    DEFAULT_BOOTSTRAP,
    BootstrapOption,
    Format,
    FormatOption,
    note,
    print_json,
    print_rows,
)
from odradek.apps.cli.reassign_picture import print_forecast
from odradek.apps.cli.topic_selection import parse_numbers, select_topics
from odradek.apps.cli.usage import WrongUsage
from odradek.apps.reassign.core.forecast import Forecast, foresee
from odradek.apps.reassign.core.goal import Balance, Goal
from odradek.apps.reassign.core.plan import Plan, PlanError
from odradek.apps.reassign.core.planner import make_plan
from odradek.apps.reassign.reading import read_view
from odradek.base.errors import FatalError
from odradek.client.cluster_client import ClusterClient

ThrottleOption = Annotated[
    str,
    Option(
        "--throttle", metavar="BYTES", help="Bytes a second for each broker, such as 50MB or 500KB; none: no limit."
    ),
]
DEFAULT_THROTTLE = "50MB"
TopicsOption = Annotated[
    str | None,
    Option(
        "--topics, --topic, -t",
        metavar="NAMES",
        placed=True,
        help="Only these topics; may be a regular expression.",
        show_default=False,
    ),
]
_UNITS = {"": 1, "B": 1, "KB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30}


def plan(
    brokers: Annotated[
        str | None,
        Option("--brokers", metavar="0,1,2", help="Spread the replicas over these brokers only.", show_default=False),
    ] = None,
    add: Annotated[
        str | None,
        Option("--add", metavar="3", help="Move a share of the replicas to these new brokers.", show_default=False),
    ] = None,
    drain: Annotated[
        str | None,
        Option("--drain", metavar="2", help="Move all replicas away from these brokers.", show_default=False),
    ] = None,
    replication_factor: Annotated[
        int | None,
        Option("--replication-factor", min=1, help="Number of replicas of every partition.", show_default=False),
    ] = None,
    balance: Annotated[
        list[Balance] | None,
        Option("--balance", help="A quantity to balance over the brokers; may be repeated.", show_default=False),
    ] = None,
    topics: TopicsOption = None,
    throttle: ThrottleOption = DEFAULT_THROTTLE,
    out: Annotated[Path | None, Option("--out", metavar="FILE", help="File for the plan.", show_default=False)] = None,
    bootstrap_server: BootstrapOption = DEFAULT_BOOTSTRAP,
    output: FormatOption = Format.TABLE,
) -> None:
    """Plan a reassignment for a goal, and show its moves, cost and risks. Nothing is changed."""
    only, newcomers, drained = (
        frozenset(parse_numbers(text or "", option))
        for text, option in ((brokers, "--brokers"), (add, "--add"), (drain, "--drain"))
    )
    if not any((brokers, add, drain, replication_factor, balance)):
        raise WrongUsage("no goal is given: use --brokers, --add, --drain, --replication-factor or --balance")
    rate = parse_throttle(throttle)
    with ClusterClient(bootstrap_server) as client:
        view = read_view(client)
        names = None if topics is None else frozenset(t.name for t in select_topics(client.topics(), topics))
    missing = newcomers - view.brokers.keys()
    if missing:
        raise FatalError(f"broker {', '.join(map(str, sorted(missing)))} is not in the cluster; start it first")
    wanted = frozenset(balance or ()) | (frozenset({Balance.REPLICAS}) if brokers or add else frozenset())
    goal = Goal(only | newcomers if brokers else None, drained, replication_factor, wanted, names)
    try:
        made = make_plan(view, goal)
    except PlanError as error:
        raise FatalError(str(error)) from None
    forecast = foresee(made, view, rate)
    if out is not None:
        out.write_text(json.dumps(made.as_json(), indent=2) + "\n")
    _print(made, forecast, rate, output)
    if out is not None and made.targets:
        note(f"written to {out}; carry it out with: odradek reassign run {out}")
    elif output.is_table and made.targets:
        note("nothing was changed; write the plan with --out plan.json")


def parse_throttle(text: str) -> int | None:
    """Parse a rate in bytes a second; None for no limit."""
    if text.lower() == "none":
        return None
    number = text.rstrip("BKMGbkmg/s")
    unit = text[len(number) :].upper().removesuffix("/S")
    if not number.isdecimal() or int(number) < 1 or unit not in _UNITS:
        raise WrongUsage(f"'{text}' is not a rate: give bytes a second as in 50MB or 500KB, or none", "--throttle")
    return int(number) * _UNITS[unit]


def _print(plan: Plan, forecast: Forecast, rate: int | None, output: Format) -> None:
    match output:
        case Format.TABLE | Format.WIDE:
            print_forecast(forecast, rate)
        case Format.JSON:
            print_json(
                {
                    "plan": plan.as_json(),
                    "copied_replicas": forecast.copied_replicas,
                    "copied_bytes": forecast.copied_bytes,
                    "removed_replicas": forecast.removed_replicas,
                    "freed_bytes": forecast.freed_bytes,
                    "seconds": forecast.seconds,
                    "brokers": [asdict(broker) for broker in forecast.brokers],
                    "risks": [asdict(risk) for risk in forecast.risks],
                }
            )
        case Format.CSV:
            rows = [
                {
                    "topic": move.partition.topic,
                    "partition": move.partition.partition,
                    "before": move.before,
                    "after": move.after,
                    "size_bytes": move.size_bytes,
                }
                for move in forecast.moves
            ]
            print_rows(rows, ("topic", "partition", "before", "after", "size_bytes"), output)

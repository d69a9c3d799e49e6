"""`odradek migrate`: move a running cluster from Apache Kafka brokers to Odradek brokers, or back.

No state is kept between commands: each command reads the cluster and finds the remaining steps. A stopped
migration is continued by the same command, and reversed with --from and --to exchanged.
"""

import time
from typing import Annotated

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
    warn,
)
from odradek.apps.cli.reassign_plan import DEFAULT_THROTTLE, ThrottleOption, parse_throttle
from odradek.apps.cli.reassign_run import Pace, clear_and_tell, execute_plan, open_cluster
from odradek.apps.cli.topic_selection import parse_numbers
from odradek.apps.cli.usage import Exit
from odradek.apps.figures import size_text, time_left_text
from odradek.apps.migrate.core.checks import Finding, findings
from odradek.apps.migrate.core.route import COORDINATOR_TOPICS, Step, pair_brokers, steps_of
from odradek.apps.migrate.reading import read_brokers, read_controller, read_survey
from odradek.apps.reassign.core.forecast import foresee
from odradek.apps.reassign.core.plan import PlanError
from odradek.apps.reassign.core.view import ClusterView
from odradek.apps.reassign.reading import read_view
from odradek.base.errors import ErrorCode, FatalError
from odradek.client.cluster_client import ClusterClient
from odradek.client.elections import ElectionType, elect_leaders

app = Noun(
    "Move a running cluster from Apache Kafka brokers to Odradek brokers, or back: plan, run, status.",
    examples=[
        "odradek migrate plan --from 0,1,2 --to 10,11,12",
        "odradek migrate run --from 0,1,2 --to 10,11,12 --throttle 50MB",
        "odradek migrate status --from 0,1,2 --to 10,11,12",
        "odradek migrate run --from 10,11,12 --to 0,1,2",
    ],
)

FromOption = Annotated[str, Option("--from", metavar="0,1,2", help="The old brokers.")]
ToOption = Annotated[
    str, Option("--to", metavar="10,11,12", help="Their successors, which are in the cluster already.")
]
AcceptOption = Annotated[
    str,
    Option("--accept", metavar="KEYS", help="Settings whose loss or difference is accepted.", show_default=False),
]
_STEPS = ("step", "what", "partitions", "bytes", "at_least")
_STATUS = ("broker", "kind", "replicas", "leaders", "coordinators", "role")
_SETTLED_S_MAX = 120
_POLL_S = 0.5


@app.verb()
def plan(
    leaving: FromOption,
    coming: ToOption,
    accept: AcceptOption = "",
    throttle: ThrottleOption = DEFAULT_THROTTLE,
    bootstrap_server: BootstrapOption = DEFAULT_BOOTSTRAP,
    output: FormatOption = Format.TABLE,
) -> None:
    """Check the cluster and show the steps of the migration. Nothing is changed."""
    rate = parse_throttle(throttle)
    with ClusterClient(bootstrap_server) as client:
        view, pairs, found = _checked(client, leaving, coming, accept)
    rows = []
    for number, step in enumerate(_steps(view, pairs), 1):
        forecast = foresee(step.plan, view, rate)
        least = None if forecast.seconds is None else time_left_text(forecast.seconds)
        rows.append(
            {
                "step": number,
                "what": str(step),
                "partitions": len(step.plan.targets),
                "bytes": forecast.copied_bytes if output is Format.JSON else size_text(forecast.copied_bytes),
                "at_least": least,
            }
        )
    checks = [{"severity": finding.kind, "text": finding.text} for finding in found]
    if output is Format.JSON:
        print_json({"successors": {str(old): new for old, new in pairs.items()}, "checks": checks, "steps": rows})
    else:
        _tell(found)
        print_rows(rows, _STEPS, output, empty="nothing is left to move")
    if any(finding.is_problem for finding in found):
        raise Exit(1)


@app.verb()
def run(
    leaving: FromOption,
    coming: ToOption,
    pace: Pace,
    accept: AcceptOption = "",
    bootstrap_server: BootstrapOption = DEFAULT_BOOTSTRAP,
) -> None:
    """Carry out the migration step by step; stop at the first problem."""
    options = pace.options()
    with open_cluster(bootstrap_server) as (client, admin, journals):
        if any(item.under_way for item in clear_and_tell(journals, admin)):
            raise FatalError(
                "reassignments of an interrupted run are in progress: finish them with `odradek reassign run`, or "
                "cancel them with `odradek reassign cancel`"
            )
        done = 0
        while True:
            view, pairs, found = _checked(client, leaving, coming, accept)
            problems = [finding for finding in found if finding.is_problem]
            if problems or not done:
                _tell(found)
            if problems:
                raise FatalError(f"stopped after {done} steps: nothing is moved before the problems are solved")
            steps = list(_steps(view, pairs))
            if not steps:
                break
            step = steps[0]
            note(f"step {done + 1} of {done + len(steps)}: {step}")
            outcome = execute_plan(client, admin, journals, step.plan, options)
            if outcome.how != "completed":
                given_up = "; ".join(f"{tp}: {why}" for tp, why in sorted(outcome.given_up.items()))
                raise FatalError(f"stopped after {done} steps: {outcome.how}. {given_up}")
            _elect_and_await(client, step)
            done += 1
        _tell_rest(client, pairs)


@app.verb()
def status(
    leaving: FromOption,
    coming: ToOption,
    bootstrap_server: BootstrapOption = DEFAULT_BOOTSTRAP,
    output: FormatOption = Format.TABLE,
) -> None:
    """Show the partitions that the old brokers still have, and the next step."""
    olds, news = parse_numbers(leaving, "--from"), parse_numbers(coming, "--to")
    with ClusterClient(bootstrap_server) as client:
        view, controller = read_view(client), read_controller(client)
        settings = read_brokers(client, view, [*olds, *news])
    rows = []
    for broker in sorted({*olds, *news}):
        held = {tp: p for tp, p in view.partitions.items() if broker in p.replicas}
        led = [tp for tp, p in held.items() if p.leader == broker]
        known = settings.get(broker)
        kind = "not running" if known is None else "Odradek" if known.is_odradek else "Apache Kafka"
        rows.append(
            {
                "broker": broker,
                "kind": kind,
                "replicas": len(held),
                "leaders": len(led),
                "coordinators": sum(tp.topic in COORDINATOR_TOPICS for tp in led),
                "role": " ".join(
                    ["leaves" if broker in olds else "comes", *(["controller"] if broker == controller else [])]
                ),
            }
        )
    print_rows(rows, _STATUS, output)
    if output.is_table:
        note(_next(rows, olds, controller))


def _next(rows: list[dict[str, object]], olds: set[int], controller: int) -> str:
    left = [row for row in rows if row["broker"] in olds and row["replicas"]]
    running = [row["broker"] for row in rows if row["broker"] in olds and row["kind"] != "not running"]
    if left:
        return f"{sum(int(str(row['replicas'])) for row in left)} replicas are to be moved: odradek migrate run"
    if running:
        order = sorted(running, key=lambda broker: broker == controller)
        return f"all replicas are moved; stop broker {', then '.join(map(str, order))}"
    return "the migration is complete"


def _checked(
    client: ClusterClient, leaving: str, coming: str, accept: str
) -> tuple[ClusterView, dict[int, int], list[Finding]]:
    olds, news = parse_numbers(leaving, "--from"), parse_numbers(coming, "--to")
    survey = read_survey(client, [*olds, *news])
    try:
        pairs = pair_brokers(olds, news, survey.view.racks)
    except PlanError as error:
        raise FatalError(str(error)) from None
    accepted = {key.strip() for key in accept.split(",") if key.strip()}
    return survey.view, pairs, findings(survey, pairs, accepted)


def _steps(view: ClusterView, pairs: dict[int, int]) -> list[Step]:
    try:
        return list(steps_of(view, pairs))
    except PlanError as error:
        raise FatalError(str(error)) from None


def _tell(found: list[Finding]) -> None:
    for finding in found:
        (warn if finding.is_problem else note)(f"{finding.kind}: {finding.text}")


def _elect_and_await(client: ClusterClient, step: Step) -> None:
    """Elect the preferred leaders and wait until every replica is in sync, before the next step."""
    moved = sorted(step.plan.targets)
    refused = {
        tp: reason or code.name
        for tp, (code, reason) in elect_leaders(client, ElectionType.PREFERRED, moved).items()
        if code not in (ErrorCode.NONE, ErrorCode.ELECTION_NOT_NEEDED)
    }
    if refused:
        reasons = "; ".join(f"{tp}: {why}" for tp, why in sorted(refused.items())[:3])
        raise FatalError(f"stopped: the preferred leader could not be elected: {reasons}")

    deadline = time.monotonic() + _SETTLED_S_MAX
    while unsettled := _unsettled(read_view(client), step):
        if time.monotonic() > deadline:
            raise FatalError(
                f"stopped: {', '.join(unsettled[:3])}: the preferred leader does not lead, or not all replicas are "
                f"in sync after {_SETTLED_S_MAX} s"
            )
        time.sleep(_POLL_S)


def _unsettled(view: ClusterView, step: Step) -> list[str]:
    return [
        str(tp)
        for tp, replicas in step.plan.targets.items()
        if (partition := view.partitions.get(tp)) is not None
        and (partition.leader != replicas[0] or len(partition.isr) < len(replicas))
    ]


def _tell_rest(client: ClusterClient, pairs: dict[int, int]) -> None:
    running = [broker for broker in pairs if broker in client.brokers()]
    controller = read_controller(client)
    order = sorted(running, key=lambda broker: broker == controller)
    note("all replicas are moved, and the successors lead them")
    if order:
        last = ", the controller last" if controller in order else ""
        note(f"stop the brokers that leave, one after the other{last}: {', '.join(map(str, order))}")

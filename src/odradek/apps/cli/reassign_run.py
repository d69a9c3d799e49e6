"""`odradek reassign run|status|undo`: carry out a plan, show its progress, restore the former replicas.

`run` removes its throttles however it ends; the next of these commands clears throttles that a killed run has left.
"""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Annotated, Any

from odradek.apps.cli.grammar.declaration import Argument, Option
from odradek.apps.cli.output import (
    DEFAULT_BOOTSTRAP,
    BootstrapOption,
    Format,
    FormatOption,
    note,
    print_fields,
    print_rows,
    warn,
)
from odradek.apps.cli.reassign_picture import removals, summary
from odradek.apps.cli.reassign_plan import DEFAULT_THROTTLE, ThrottleOption, parse_throttle
from odradek.apps.cli.usage import Exit, WrongUsage
from odradek.apps.figures import size_text, time_left_text
from odradek.apps.reassign.admin import Unreachable, WireAdmin
from odradek.apps.reassign.core.checks import problems_of
from odradek.apps.reassign.core.forecast import foresee, moves_of
from odradek.apps.reassign.core.plan import Plan, PlanError
from odradek.apps.reassign.core.throttles import Settings
from odradek.apps.reassign.journal import RunIsGoingOn, RunJournals, RunRecord, state_directory
from odradek.apps.reassign.leftovers import Leftover, clear_leftovers, foreign_throttles
from odradek.apps.reassign.reading import read_view
from odradek.apps.reassign.risks import Severity
from odradek.apps.reassign.run import Outcome, Progress, Run, RunOptions, ThrottleRefused, cancel_moves
from odradek.base.errors import FatalError
from odradek.client.cluster_admin import cluster_id
from odradek.client.cluster_client import ClusterClient

_CLIENT_TIMEOUT_MS = 10_000
_PROBLEMS_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Pace:
    throttle: ThrottleOption = DEFAULT_THROTTLE
    at_once: Annotated[
        int, Option("--concurrency, --at-once", min=1, help="Number of partitions that move at the same time.")
    ] = 10
    dead_broker_seconds: Annotated[
        int,
        Option("--dead-broker-seconds", min=1, help="Time that a move waits for a dead broker before it is cancelled."),
    ] = 60

    def options(self) -> RunOptions:
        return RunOptions(parse_throttle(self.throttle), self.at_once, self.dead_broker_seconds * 1000)


def run(
    pace: Pace,
    plan: Annotated[
        Path | None,
        Argument(
            metavar="PLAN.json",
            help="File of `plan` or Kafka's tool. Without one: resume the interrupted run.",
            show_default=False,
        ),
    ] = None,
    bootstrap_server: BootstrapOption = DEFAULT_BOOTSTRAP,
    output: FormatOption = Format.TABLE,
) -> None:
    """Carry out a plan with a throttle, a few partitions at a time. Ctrl-C cancels the moves in progress."""
    options = pace.options()
    wanted = None if plan is None else _read_plan(plan)
    with open_cluster(bootstrap_server) as (client, admin, journals):
        left = clear_and_tell(journals, admin)
        interrupted = next((item for item in left if item.under_way), None)
        if wanted is None:
            if interrupted is None:
                raise FatalError("no run was interrupted; name a plan: odradek reassign run PLAN.json")
            outcome = _go_on(client, admin, journals, interrupted.record, options)
        else:
            if interrupted is not None:
                raise FatalError(
                    f"run {interrupted.record.id} was interrupted, {len(interrupted.under_way)} of its moves are in "
                    "progress: finish it with `odradek reassign run`, or cancel it with `odradek reassign cancel`"
                )
            outcome = execute_plan(client, admin, journals, wanted, options)
    _report(outcome, output)


def undo(
    pace: Pace,
    run_id: Annotated[
        str | None, Argument(metavar="RUN", help="The run to undo; `status` names the runs.", show_default="the last")
    ] = None,
    bootstrap_server: BootstrapOption = DEFAULT_BOOTSTRAP,
    output: FormatOption = Format.TABLE,
) -> None:
    """Move the partitions of a run back to the replicas that they had before it."""
    options = pace.options()
    with open_cluster(bootstrap_server) as (client, admin, journals):
        if any(item.under_way for item in clear_and_tell(journals, admin)):
            raise FatalError(
                "reassignments of an interrupted run are in progress; cancel them with: odradek reassign cancel"
            )
        record = _record(journals, run_id)
        view = read_view(client)
        back = {
            tp: replicas
            for tp, replicas in record.before.targets.items()
            if tp in view.partitions and view.partitions[tp].replicas != replicas
        }
        if not back:
            note(f"nothing to undo: the replicas are those from before run {record.id}")
            return
        outcome = execute_plan(client, admin, journals, Plan(back), options)
    _report(outcome, output)


def status(
    clear_throttles: Annotated[
        bool, Option("--clear-throttles", help="Also clear throttles that odradek did not set.")
    ] = False,
    bootstrap_server: BootstrapOption = DEFAULT_BOOTSTRAP,
    output: FormatOption = Format.TABLE,
) -> None:
    """Show the last run, the moves in progress and the throttles; clear throttles that a killed run has left."""
    with open_cluster(bootstrap_server) as (client, admin, journals):
        clear_and_tell(journals, admin)
        ongoing = admin.ongoing()
        throttles = foreign_throttles(admin, client.topics())
        if throttles and clear_throttles and not ongoing:
            _clear_foreign(admin, throttles)
            throttles = {}
    record = journals.latest()
    fields: dict[str, Any] = {} if record is None else _record_fields(record)
    fields["in_progress"] = [f"{tp} +{_ids(a.adding)} -{_ids(a.removing)}" for tp, a in sorted(ongoing.items())]
    fields["throttles"] = [f"{entity}" for entity in sorted(throttles)]
    if output.is_table:
        fields = {name: value for name, value in fields.items() if value not in ([], "none")}
    if fields:
        print_fields(fields, output)
    else:
        note("no run is remembered here, no move is in progress, no throttle is set")
    if throttles and not ongoing and output.is_table:
        warn(
            "nothing is being moved, but throttles are set; clear them with: odradek reassign status --clear-throttles"
        )


def cancel_last_run(bootstrap_server: str, output: Format) -> None:
    """Cancel the ongoing moves of the last run and remove its throttles; a run that still goes on is asked to stop."""
    with open_cluster(bootstrap_server) as (_, admin, journals):
        record = _record(journals, None)
        if record.is_running():
            record.cancel_mark.touch()
            note(f"run {record.id} is asked to stop; it cancels the moves in progress and clears its throttles")
            return
        under_way = sorted(admin.ongoing().keys() & record.plan.targets.keys())
        refused = cancel_moves(admin, {tp: record.before.targets[tp] for tp in under_way})
        clear_and_tell(journals, admin, "cancelled")
    rows = [{"topic": tp.topic, "partition": tp.partition, "outcome": refused.get(tp, "cancelled")} for tp in under_way]
    print_rows(rows, ("topic", "partition", "outcome"), output, empty="no move of the last run is in progress")
    if refused:
        raise Exit(1)


# --- execution ---------------------------------------------------------------------------------------------------


def execute_plan(
    client: ClusterClient, admin: WireAdmin, journals: RunJournals, wanted: Plan, options: RunOptions
) -> Outcome:
    view = read_view(client)
    problems = problems_of(wanted, view)
    if problems:
        more = len(problems) - _PROBLEMS_SHOWN
        shown = "; ".join(problems[:_PROBLEMS_SHOWN]) + (f"; and {more} problems more" if more > 0 else "")
        raise FatalError(f"invalid plan, nothing was changed: {shown}")
    moves = moves_of(wanted, view)
    if not moves:
        note("no changes needed: every partition has its planned replicas already")
        return Outcome("completed", frozenset(wanted.targets), {}, frozenset())
    forecast = foresee(wanted, view, options.throttle_bytes)
    note(summary(forecast, options.throttle_bytes))
    if removed := removals(forecast):
        note(removed)
    for risk in forecast.risks:
        if risk.severity is not Severity.NOTE:
            warn(risk.text)
    with _progress() as show:
        return Run(moves, admin, journals, options).execute(show)


def _go_on(
    client: ClusterClient, admin: WireAdmin, journals: RunJournals, record: RunRecord, options: RunOptions
) -> Outcome:
    view = read_view(client)
    rest = Plan({tp: after for tp, after in record.plan.targets.items() if tp not in record.done})
    note(f"run {record.id} resumes: {len(rest.targets)} of {len(record.plan.targets)} partitions are left")
    with _progress() as show:
        return Run(moves_of(rest, view), admin, journals, options).go_on(journals.go_on(record), show)


@contextmanager
def open_cluster(bootstrap_server: str) -> Iterator[tuple[ClusterClient, WireAdmin, RunJournals]]:
    """Connect to the cluster. Failures become one-line errors; SIGTERM acts as Ctrl-C."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, stop)
    try:
        with ClusterClient(bootstrap_server, timeout_ms=_CLIENT_TIMEOUT_MS) as client:
            yield client, WireAdmin(client), RunJournals(state_directory(cluster_id(client)))
    except (Unreachable, RunIsGoingOn, ThrottleRefused) as error:
        raise FatalError(str(error)) from None
    finally:
        signal.signal(signal.SIGTERM, before)


def _read_plan(path: Path) -> Plan:
    try:
        return Plan.from_text(path.read_text())
    except OSError as error:
        raise WrongUsage(f"{path} can't be read: {error.strerror}") from None
    except (UnicodeDecodeError, PlanError) as error:
        raise WrongUsage(f"{path}: {error}") from None


def _record(journals: RunJournals, run_id: str | None) -> RunRecord:
    records = [record for record in journals.all() if run_id in (None, record.id)]
    if not records:
        what = "no run is remembered here" if run_id is None else f"no run {run_id} is remembered here"
        raise FatalError(f"{what}; runs are kept for each cluster by the machine and user that began them")
    return records[-1]


def clear_and_tell(journals: RunJournals, admin: WireAdmin, how: str = "killed") -> list[Leftover]:
    left = clear_leftovers(journals, admin, how)
    for item in left:
        if item.cleared:
            note(f"run {item.record.id} had left throttles, cleared now: {_names(item.cleared)}")
        if item.uncleared and not item.under_way:
            warn(
                f"throttles of run {item.record.id} can't be cleared yet, the broker is dead: {_names(item.uncleared)}"
            )
        if item.under_way:
            warn(f"run {item.record.id} was interrupted; still in progress: {_names(item.under_way)}")
    return left


def _clear_foreign(admin: WireAdmin, throttles: Settings) -> None:
    failed = admin.set({entity: dict.fromkeys(entity.throttle_keys) for entity in throttles})
    note(f"cleared: {_names(set(throttles) - failed.keys())}")
    for entity, why in failed.items():
        warn(f"{entity}: {why}")


# --- output ------------------------------------------------------------------------------------------------------


@contextmanager
def _progress() -> Iterator[Callable[[Progress], None]]:
    """Show a bar on a terminal; elsewhere print a line when a partition is done."""
    from odradek.apps.cli.terminal import ProgressLine

    line = ProgressLine()
    settled = -1

    def show(progress: Progress) -> None:
        nonlocal settled
        text = _progress_text(progress)
        line.show("moving", progress.copied_bytes / max(1, progress.total_bytes), text)
        if not line.is_shown and progress.done + progress.given_up != settled:
            note(text)
        settled = progress.done + progress.given_up

    try:
        yield show
    except KeyboardInterrupt:
        line.close()
        note("stopped: moves in progress are cancelled; `odradek reassign status` shows what is left")
        raise
    finally:
        line.close()


def _progress_text(progress: Progress) -> str:
    of = progress.waiting + len(progress.moving) + progress.done + progress.given_up
    parts = [f"{progress.done} of {of} partitions"]
    if progress.given_up:
        parts.append(f"{progress.given_up} cancelled")
    parts.append(f"{size_text(progress.copied_bytes)} of {size_text(progress.total_bytes)}")
    if progress.bytes_per_second:
        parts.append(f"{size_text(progress.bytes_per_second)}/s")
    if progress.eta_seconds is not None and progress.eta_seconds > 0:
        parts.append(f"{time_left_text(progress.eta_seconds)} left")
    return ", ".join(parts) + (f"  ({progress.note})" if progress.note else "")


def _report(outcome: Outcome, output: Format) -> None:
    rows = [{"topic": tp.topic, "partition": tp.partition, "outcome": "moved"} for tp in sorted(outcome.done)]
    rows += [
        {"topic": tp.topic, "partition": tp.partition, "outcome": "cancelled", "reason": why}
        for tp, why in sorted(outcome.given_up.items())
    ]
    print_rows(rows, ("topic", "partition", "outcome", "reason"), output)
    if outcome.uncleared:
        warn(
            "brokers down, so their throttles stay until `odradek reassign status` can clear them: "
            f"{_names(outcome.uncleared)}"
        )
    elif output.is_table:
        note(f"{outcome.how}; throttles are cleared")
    if outcome.how != "completed":
        raise Exit(1)


def _record_fields(record: RunRecord) -> dict[str, Any]:
    how = record.ended or ("in progress" if record.is_running() else "interrupted")
    return {
        "run": record.id,
        "state": how,
        "partitions": len(record.plan.targets),
        "moved": len(record.done),
        "cancelled": [f"{tp}: {why}" for tp, why in sorted(record.given_up.items())],
        "throttle": "none" if record.throttle_bytes is None else f"{size_text(record.throttle_bytes)}/s",
        "throttles_still_set": sorted(map(str, record.uncleared)),
    }


def _names(things: Any) -> str:
    return ", ".join(sorted(map(str, things)))


def _ids(brokers: tuple[int, ...]) -> str:
    return ",".join(map(str, brokers))

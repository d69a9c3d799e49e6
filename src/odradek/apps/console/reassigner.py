"""Reassignments that this console runs: one at a time, on a thread, with a journal as on the command line.

The console starts, watches and stops them; `odradek.apps.reassign` carries them out.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass

from odradek.apps.console.access import Access
from odradek.apps.reassign.admin import WireAdmin
from odradek.apps.reassign.core.checks import problems_of
from odradek.apps.reassign.core.forecast import Forecast, foresee
from odradek.apps.reassign.core.goal import Goal
from odradek.apps.reassign.core.plan import Plan
from odradek.apps.reassign.core.planner import make_plan
from odradek.apps.reassign.journal import RunJournals, RunRecord, state_directory
from odradek.apps.reassign.reading import read_view
from odradek.apps.reassign.run import Progress, Run, RunOptions
from odradek.base.logs import get_logger
from odradek.client.cluster_admin import cluster_id
from odradek.client.cluster_client import ClusterClient
from odradek.client.reassignments import ongoing_reassignments
from odradek.model.topology import ReplicaAssignment, TopicPartition

log = get_logger(__name__)

_TIMEOUT_MS = 15_000
_RUNS_SHOWN = 12


@dataclass(frozen=True, slots=True)
class Draft:
    """A plan that is not begun."""

    plan: Plan
    forecast: Forecast
    problems: tuple[str, ...]
    throttle_bytes: int | None


@dataclass(frozen=True, slots=True)
class RunsState:
    ongoing: dict[TopicPartition, ReplicaAssignment]
    runs: tuple[tuple[RunRecord, bool], ...]
    """Runs, the youngest first, each with a flag for a running one."""
    progress: Progress | None
    """Progress of the run that this console conducts."""
    fault: str | None


class Reassigner:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._progress: Progress | None = None
        self._fault: str | None = None

    def draft(self, access: Access, make: Callable[[ClusterClient], Plan] | Goal, throttle_bytes: int | None) -> Draft:
        """Make a plan from a goal, with its moves and their cost. PlanError: it can't be."""

        def work(client: ClusterClient) -> Draft:
            view = read_view(client)
            plan = make_plan(view, make) if isinstance(make, Goal) else make(client)
            problems = tuple(problems_of(plan, view)) if plan.targets else ()
            return Draft(plan, foresee(plan, view, throttle_bytes), problems, throttle_bytes)

        with access.client(_TIMEOUT_MS) as client:
            return work(client)

    def undo_draft(self, access: Access, run_id: str, throttle_bytes: int | None) -> Draft:
        def back(client: ClusterClient) -> Plan:
            record = self._find(client, run_id)
            now = {
                TopicPartition(topic.name, p.partition): p.replicas
                for topic in client.topics({tp.topic for tp in record.before.targets}).values()
                for p in topic.partitions
            }
            return Plan({tp: to for tp, to in record.before.targets.items() if tp in now and now[tp] != to})

        return self.draft(access, back, throttle_bytes)

    def start(self, access: Access, draft: Draft) -> None:
        with self._lock:
            if self._thread is not None:
                raise ValueError("a reassignment of this console is going on; wait for it, or cancel it")
            self._fault = None
            self._thread = threading.Thread(
                target=self._carry_out, args=(access, draft), name="reassignment", daemon=True
            )
            self._thread.start()

    def cancel(self, client: ClusterClient, run_id: str) -> None:
        self._find(client, run_id).cancel_mark.touch()

    def read(self, client: ClusterClient, before: RunsState | None) -> RunsState:
        records = self._journals(client).all()[::-1][:_RUNS_SHOWN]
        runs = tuple((record, record.ended is None and record.is_running()) for record in records)
        return RunsState(ongoing_reassignments(client), runs, self._progress, self._fault)

    def _carry_out(self, access: Access, draft: Draft) -> None:
        try:
            with access.client(_TIMEOUT_MS) as client:
                log.info("reassignment begins", partitions=len(draft.forecast.moves))
                run = Run(
                    draft.forecast.moves,
                    WireAdmin(client),
                    self._journals(client),
                    RunOptions(throttle_bytes=draft.throttle_bytes),
                )
                outcome = run.execute(self._note)
                log.info("reassignment ended", how=outcome.how, done=len(outcome.done), given_up=len(outcome.given_up))
        except Exception as error:
            log.exception("reassignment failed")
            self._fault = str(error)
        finally:
            with self._lock:
                self._thread, self._progress = None, None

    def _note(self, progress: Progress) -> None:
        self._progress = progress

    def _journals(self, client: ClusterClient) -> RunJournals:
        return RunJournals(state_directory(cluster_id(client)))

    def _find(self, client: ClusterClient, run_id: str) -> RunRecord:
        found = next((record for record in self._journals(client).all() if record.id == run_id), None)
        if found is None:
            raise ValueError("that run is no longer known")
        return found

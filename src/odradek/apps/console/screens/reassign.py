"""Reassign: from a goal to a plan and a forecast, run it, watch it, cancel or undo it."""

from collections.abc import Callable
from functools import partial

from nicegui import ui

from odradek.apps.console.changes import NotDone
from odradek.apps.console.console import Console
from odradek.apps.console.consoles import Consoles
from odradek.apps.console.dialogs import ChangeDialog
from odradek.apps.console.feeds import UNREADABLE, Reading, plainly
from odradek.apps.console.fields import WrongInput, meaning
from odradek.apps.console.live import Act, Live
from odradek.apps.console.markup import Html, tag
from odradek.apps.console.page import follow, notify, off_loop, page, perform
from odradek.apps.console.reassigner import Draft, RunsState
from odradek.apps.console.views.reassign import draft_html, run_sentence, runs_html
from odradek.apps.reassign.core.goal import Balance, Goal
from odradek.apps.reassign.core.plan import Plan, PlanError
from odradek.client.cluster_client import ClusterClient
from odradek.model.acls import AclOperation

_GOALS = {
    "drain": "Drain brokers",
    "spread": "Spread evenly over these brokers",
    "factor": "Change the number of replicas",
    "leaders": "Balance preferred leaders",
    "disks": "Balance disks",
    "racks": "Rack awareness",
    "json": "A plan in Kafka's JSON",
}
_NEEDS_BROKERS = ("drain", "spread")
_BALANCES = {"leaders": Balance.LEADERS, "disks": Balance.DISKS, "racks": Balance.RACKS}
_THROTTLE = "50"


def register(consoles: Consoles) -> None:
    @ui.page("/reassign")
    async def reassign_page() -> None:
        console = consoles.here()
        with page(console, "Reassign"):
            await _Planner(console).show()


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _brokers(text: str) -> frozenset[int]:
    names = _names(text)
    if not names or not all(name.isdecimal() for name in names):
        raise ValueError("name brokers by their numbers, like 0, 2")
    return frozenset(map(int, names))


def _factor(text: str) -> int:
    if not text.isdecimal() or not 0 < int(text) < 100:
        raise ValueError("how many replicas shall each partition have?")
    return int(text)


def _given_plan(text: str) -> Plan:
    try:
        return Plan.from_text(text)
    except PlanError as error:
        raise ValueError(str(error)) from error


def _throttle_bytes(text: str) -> int | None:
    if not text:
        return None
    try:
        value = float(text)
    except ValueError:
        value = 0
    if not 0 < value <= 100_000:
        raise ValueError("a number of MB/s, or nothing")
    return int(value * 1024 * 1024)


class _Planner:
    def __init__(self, console: Console) -> None:
        self._console = console
        self._draft: Draft | None = None
        self._page = 1
        ui.html("<div class='top'><h1>Reassign</h1></div>", sanitize=False)
        with ui.element("div").classes("card row-of").style("margin-bottom: 16px"):
            self._goal = ui.select(_GOALS, label="Goal", value="drain", on_change=self._shape).style("min-width: 250px")
            self._brokers = ui.input("Brokers: 0, 2").style("width: 150px")
            self._factor = ui.input("Replicas").style("width: 90px")
            self._topics = ui.input("Topics (empty: all)").style("width: 220px")
            self._throttle = ui.input("Throttle, MB/s (empty: none)", value=_THROTTLE).style("width: 190px")
            self._json = ui.textarea("Plan").style("width: 100%")
            for field in (self._goal, self._brokers, self._factor, self._topics, self._throttle, self._json):
                field.props("outlined dense hide-bottom-space")
            for typed in (self._brokers, self._factor, self._topics, self._throttle):
                typed.on("keydown.enter", self._plan)
            ui.button("Plan", on_click=self._plan).props("unelevated no-caps")
        self._shown = Live(on_act=self._act)
        self._runs = Live(on_act=self._act)

    async def show(self) -> None:
        self._shape()

        def render(runs: Reading[RunsState]) -> None:
            if runs.value is not None:
                self._runs.show(runs_html(runs.value, read_only=self._console.changes.read_only))
            elif runs.problem:
                self._runs.show(tag("div", runs.problem, cls="card empty"))

        await follow([self._console.runs], render)

    def _shape(self) -> None:
        self._brokers.set_visibility(self._goal.value in _NEEDS_BROKERS)
        self._factor.set_visibility(self._goal.value == "factor")
        self._topics.set_visibility(self._goal.value != "json")
        self._json.set_visibility(self._goal.value == "json")

    def _wanted(self) -> Goal | Plan:
        """Return the goal that the form describes. WrongInput: a field lacks something, and says what."""
        topics = frozenset(_names(self._topics.value or "")) or None
        match self._goal.value:
            case "json":
                return meaning(self._json, _given_plan)
            case "drain":
                return Goal(drain=meaning(self._brokers, _brokers), topics=topics)
            case "spread":
                balance = frozenset({Balance.REPLICAS, Balance.LEADERS})
                return Goal(brokers=meaning(self._brokers, _brokers), balance=balance, topics=topics)
            case "factor":
                return Goal(replication_factor=meaning(self._factor, _factor), topics=topics)
            case other:
                return Goal(balance=frozenset({_BALANCES[other]}), topics=topics)

    async def _plan(self) -> None:
        try:
            wanted = self._wanted()
            throttle = meaning(self._throttle, _throttle_bytes)
        except WrongInput:
            return
        make = wanted if isinstance(wanted, Goal) else lambda client: wanted
        await self._show_draft(partial(self._console.reassigner.draft, self._console.access, make, throttle))

    async def _undo(self, run_id: str) -> None:
        try:
            throttle = meaning(self._throttle, _throttle_bytes)
        except WrongInput:
            return
        await self._show_draft(partial(self._console.reassigner.undo_draft, self._console.access, run_id, throttle))

    async def _show_draft(self, draw_up: Callable[[], Draft]) -> None:
        try:
            self._draft = await off_loop(draw_up)
        except (PlanError, ValueError, *UNREADABLE) as error:
            self._draft = None
            self._shown.show(tag("div", plainly(error), cls="card empty bad", role="alert"))
            return
        self._page = 1
        self._redraw()

    def _redraw(self) -> None:
        html = Html("")
        if self._draft is not None:
            html = draft_html(self._draft, self._page, read_only=self._console.changes.read_only)
        self._shown.show(html)

    async def _act(self, act: Act) -> None:
        match act["act"]:
            case "page":
                self._page = int(act["to"])
                self._redraw()
            case "discard":
                self._draft = None
                self._redraw()
            case "run" if self._draft is not None:
                await self._run(self._draft)
            case "undo":
                await self._undo(act["id"])
            case "cancel":
                await self._cancel(act["id"])

    async def _run(self, draft: Draft) -> None:
        dialog = ChangeDialog("Run the plan", "Run")
        dialog.says(lambda: run_sentence(draft))

        async def work() -> str:
            what = f"reassign {len(draft.plan.targets)} partitions"
            await perform(
                self._console, what, lambda client: self._console.reassigner.start(self._console.access, draft)
            )
            return "The moves have begun."

        if await dialog.run(work):
            self._draft = None
            self._redraw()

    async def _cancel(self, run_id: str) -> None:
        dialog = ChangeDialog("Cancel the run", "Cancel the run", danger=True)
        dialog.says(lambda: "Stops moving: moves in progress go back, finished ones stay.")

        async def work() -> str:
            await perform(
                self._console,
                f"cancel reassignment {run_id}",
                lambda client: cancel_run(self._console, client, run_id),
            )
            return "The run will stop."

        try:
            await dialog.run(work)
        except NotDone as error:
            notify(str(error), bad=True)


def cancel_run(console: Console, client: ClusterClient, run_id: str) -> None:
    """Cancel a run of this machine, of any user: no broker is involved, so the user's right is checked here."""
    console.require(AclOperation.ALTER, "To cancel a run")
    console.reassigner.cancel(client, run_id)

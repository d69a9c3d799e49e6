"""Groups: all of them; one with members, lag and what happened; reset with a preview, delete."""

from contextlib import suppress
from functools import partial
from typing import Any

from nicegui import ui

from odradek.apps.console.access import Access
from odradek.apps.console.console import Console
from odradek.apps.console.consoles import Consoles
from odradek.apps.console.dialogs import ChangeDialog
from odradek.apps.console.feeds import UNREADABLE, Feed, Reading, plainly
from odradek.apps.console.fields import WrongInput, meaning
from odradek.apps.console.live import Act, Live
from odradek.apps.console.markup import tag, together
from odradek.apps.console.page import follow, off_loop, page, perform, remember
from odradek.apps.console.readings.groups import GroupDetail, GroupsState
from odradek.apps.console.views.banner import gap, not_found
from odradek.apps.console.views.groups import (
    group_figures,
    groups_table,
    lags_table,
    members_table,
    moves_table,
    rebalances_table,
    seen_table,
)
from odradek.apps.console.views.parts import day_html
from odradek.apps.console.views.records import parse_when
from odradek.apps.figures import count, plural
from odradek.broker.recorder.rebalances import Rebalances
from odradek.client.group_admin import commit_offsets, delete_group
from odradek.client.offset_reset import Goal, Move, plan, shift_by, to_earliest, to_latest, to_offset, to_time
from odradek.model.topology import TopicPartition

_TIMEOUT_MS = 10_000
_IDLE_ONLY = "Possible only while the group has no active members."
_GOALS = {
    "earliest": "the beginning",
    "latest": "the end",
    "time": "a time",
    "offset": "an offset",
    "shift": "forward or back by",
}


def register(consoles: Consoles) -> None:
    @ui.page("/groups")
    async def groups_page(q: str = "", at: int = 1) -> None:
        console = consoles.here()
        with page(console, "Groups"):
            await _show_all(console, q, at)

    @ui.page("/groups/{name:path}")
    async def group_page(name: str) -> None:
        console = consoles.here()
        with page(console, "Groups", name):
            await _show_one(console, name)


async def _show_all(console: Console, text: str, number: int) -> None:
    def look(wanted: str, at: int) -> None:
        nonlocal text, number
        text, number = wanted, at
        remember(console, "groups", q=text, at=None if at == 1 else at)
        render(console.groups.want(), console.rebalances.want())

    def act(what: Act) -> None:
        look(text, int(what["to"]))

    with ui.element("div").classes("top"):
        ui.html("<h1>Consumer groups</h1>", sanitize=False).classes("grow")
        ui.input(placeholder="Search  ( / )", value=text, on_change=lambda e: look(e.value or "", 1)).props(
            'outlined dense clearable debounce=120 aria-label="Search groups"'
        )
    problem = Live()
    rows = Live(on_act=act)

    def render(groups: Reading[GroupsState], rebalances: Reading[Rebalances]) -> None:
        problem.show(gap("The groups can't all be read at the moment.", groups))
        if groups.value is not None:
            rows.show(groups_table(groups.value, rebalances.value, console.group_lags, text, number))

    await follow([console.groups, console.rebalances], render)


async def _show_one(console: Console, name: str) -> None:
    pages = {"members": 1, "lags": 1}

    def turn(which: str, act: Act) -> None:
        pages[which] = int(act["to"])
        render(feed.want(), console.rebalances.want())

    problem = Live()
    with ui.element("div") as body:
        with ui.element("div").classes("top"):
            crumb = tag("div", tag("a", "Groups", href="/groups"), " /", cls="crumb")
            Live(together(crumb, tag("h1", name))).classes("grow")
            if not console.changes.read_only:
                ui.button("Reset offsets", on_click=partial(_reset, console, name)).props("outline no-caps")
                ui.button("Delete", on_click=partial(_delete, console, name)).props("outline no-caps color=negative")
        figures = Live()
        ui.html("<h2>Lag</h2>", sanitize=False)
        lags, day = Live(on_act=partial(turn, "lags")), Live()
        ui.html("<h2>Members</h2>", sanitize=False)
        members = Live(on_act=partial(turn, "members"))
        ui.html("<h2>Rebalances, and why</h2>", sanitize=False)
        seen = Live()

    def render(reading: Reading[GroupDetail], rebalances: Reading[Rebalances]) -> None:
        body.set_visibility(not reading.is_missing)
        if reading.is_missing:
            problem.show(not_found("group", name, "/groups", "Groups"))
            return
        problem.show(gap("This group can't be read at the moment.", reading))
        detail = reading.value
        if detail is not None:
            now_ms = console.feeds.clock.now_ms()
            total = float(sum(lag.lag or 0 for lag in detail.lags))
            console.group_lags.note(now_ms, {name: total})
            day.show(day_html("Lag in records", console.group_lags.over_a_day(name, now_ms), count))
            figures.show(group_figures(detail))
            lags.show(lags_table(detail, pages["lags"]))
            members.show(members_table(detail.group, pages["members"]))
            recorded = rebalances.value.of(name) if rebalances.value else ()
            seen.show(rebalances_table(recorded) if recorded else seen_table(detail.seen))

    feed: Feed[Any] = console.group(name)
    await follow([feed, console.rebalances], render)


async def _reset(console: Console, name: str) -> None:
    detail = console.group(name).want().value
    partitions = sorted({lag.tp for lag in detail.lags if lag.tp is not None}) if detail else []
    moves: list[Move] = []
    dialog = ChangeDialog("Reset offsets", "Reset", danger=True, wide=True)
    topics = sorted({tp.topic for tp in partitions})
    topic = dialog.choice("Of", {"": "all its topics", **{t: t for t in topics}}, "")
    goal = dialog.choice("To", _GOALS, "earliest")
    at = dialog.field("Offset, time (15m ago, 2026-01-31 14:00) or number of records", full=True)
    with dialog.below:
        preview = Live()
        ui.button("Preview", on_click=lambda: show()).props("outline no-caps")
    dialog.says(
        lambda: (
            f"Moves group {name} to {_GOALS[goal.value]} {at.value or ''} in {topic.value or 'all its topics'}. "
            f"Records are read again or skipped. {_active(console, name) or _IDLE_ONLY}"
        )
    )

    async def look() -> list[Move]:
        wanted = [tp for tp in partitions if topic.value in ("", tp.topic)]
        now_ms = console.feeds.clock.now_ms()
        try:
            chosen = meaning(at, lambda text: _goal(goal.value, text, now_ms))
            moves[:] = await off_loop(partial(_plan, console.access, name, wanted, chosen))
        except WrongInput:
            raise ValueError("Nothing was changed: see the message at the field.") from None
        except (ValueError, *UNREADABLE) as error:
            preview.show(tag("div", plainly(error), cls="card empty bad", role="alert"))
            raise ValueError(plainly(error)) from error
        preview.show(moves_table(moves))
        return moves

    async def show() -> None:
        with suppress(ValueError):  # the field shows the fault
            await look()

    async def work() -> str:
        if active := _active(console, name):
            raise ValueError(active)
        found = await look()
        offsets = {move.tp: move.new for move in found}
        what = f"reset group {name} to {_GOALS[goal.value]} {at.value or ''} in {len(offsets)} partitions"
        await perform(console, what, lambda client: commit_offsets(client, name, offsets))
        return f"Group {name} is reset."

    await dialog.run(work)


def _active(console: Console, name: str) -> str:
    """Return the reason why the group can't be changed now; empty if it can."""
    detail = console.group(name).want().value
    if detail is None or detail.group.is_idle:
        return ""
    members = plural(len(detail.group.members), "active member")
    return f"Not possible now: the group is {detail.group.state} with {members}. Stop them first."


def _plan(access: Access, group: str, partitions: list[TopicPartition], goal: Goal) -> list[Move]:
    with access.client(_TIMEOUT_MS) as client:
        return plan(client, group, partitions, goal)


def _goal(kind: str, text: str, now_ms: int) -> Goal:
    match kind:
        case "earliest":
            return to_earliest
        case "latest":
            return to_latest
        case "time":
            return to_time(parse_when(text, now_ms))
    if not text.removeprefix("-").isdecimal() or (kind == "offset" and text.startswith("-")):
        raise ValueError(f"'{text}' is not a number" if text else "a number is wanted here")
    return to_offset(int(text)) if kind == "offset" else shift_by(int(text))


async def _delete(console: Console, name: str) -> None:
    dialog = ChangeDialog("Delete the group", "Delete", danger=True)
    dialog.says(lambda: f"Deletes group {name} with all its committed offsets. {_active(console, name) or _IDLE_ONLY}")

    async def work() -> str:
        if active := _active(console, name):
            raise ValueError(active)
        await perform(console, f"delete group {name}", lambda client: delete_group(client, name))
        return f"Group {name} is deleted."

    if await dialog.run(work):
        ui.navigate.to(console.address("groups"))

"""Topic: its partitions as strips, its settings, its consumers; alter, add partitions, delete."""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from nicegui import ui

from odradek.apps.console.console import Console
from odradek.apps.console.consoles import Consoles
from odradek.apps.console.dialogs import ChangeDialog, number_between
from odradek.apps.console.feeds import Feed, Reading
from odradek.apps.console.live import Act, Live
from odradek.apps.console.markup import Html, link, tag, together
from odradek.apps.console.page import follow, page, perform, remember
from odradek.apps.console.readings.groups import GroupsState
from odradek.apps.console.readings.storage import StorageState
from odradek.apps.console.readings.topic import TopicDetail
from odradek.apps.console.readings.traffic import TrafficState
from odradek.apps.console.screens.settings_panel import SettingsPanel
from odradek.apps.console.screens.topic_create import clone
from odradek.apps.console.screens.topic_purge import purge
from odradek.apps.console.screens.transactions import abort_here
from odradek.apps.console.views.banner import gap, not_found
from odradek.apps.console.views.parts import day_html
from odradek.apps.console.views.topic import (
    consumers_html,
    partitions_html,
    strips_html,
    topic_figures,
)
from odradek.apps.console.views.transactions import held_back_html
from odradek.apps.figures import rate
from odradek.client.config_admin import Resource
from odradek.client.elections import ElectionType, elect_leaders
from odradek.client.topic_admin import add_partitions, delete_topic
from odradek.model.topology import TopicPartition
from odradek.protocol.messages.describe_configs import ConfigResourceType

_PARTITIONS_MAX = 10_000


def register(consoles: Consoles) -> None:
    @ui.page("/topics/{name}")
    async def topic_page(name: str, bars: str = "") -> None:
        console = consoles.here()
        with page(console, "Topics", name):
            await _show(console, name, bool(bars))


async def _show(console: Console, name: str, bars: bool) -> None:
    page_number = 1

    def choose(wanted: bool) -> None:
        nonlocal bars
        bars = wanted
        remember(console, "topics", name, bars="1" if wanted else None)
        render(*(feed.want() for feed in feeds))

    async def abort(act: Act) -> None:
        await abort_here(console, act)

    def turn(act: Act) -> None:
        nonlocal page_number
        if act["act"] == "page":
            page_number = int(act["to"])
            render(*(feed.want() for feed in feeds))

    problem = Live()
    with ui.element("div") as body:
        with ui.element("div").classes("top"):
            Live(_heading(name)).classes("grow")
            _acts(console, name)
        figures = Live()
        with ui.element("div").classes("top").style("margin: 28px 0 10px"):
            ui.html("<h2 style='margin:0'>Partitions</h2>", sanitize=False).classes("grow")
            ui.switch("bars of replicas", value=bars, on_change=lambda e: choose(e.value)).props("dense")
        partitions, transactions = Live(on_act=turn), Live(on_act=abort)
        ui.html("<h2>Consumers</h2>", sanitize=False)
        consumers = Live()
        day = Live()
        SettingsPanel(console, Resource(ConfigResourceType.TOPIC, name))

    def render(
        detail: Reading[TopicDetail],
        storage: Reading[StorageState],
        traffic: Reading[TrafficState],
        groups: Reading[GroupsState],
    ) -> None:
        body.set_visibility(not detail.is_missing)
        if detail.is_missing:
            problem.show(not_found("topic", name, "/topics", "Topics"))
            return
        problem.show(gap("This topic can't be read at the moment.", detail))
        if detail.value is None:
            return
        rates = traffic.value.topic_rates.get(name, ()) if traffic.value else ()
        figures.show(topic_figures(detail.value, storage.value, rate(rates[-1] if rates else None)))
        draw = strips_html if bars else partitions_html
        partitions.show(draw(detail.value, storage.value, page_number))
        now_ms = console.feeds.clock.now_ms()
        transactions.show(held_back_html(detail.value, now_ms, read_only=console.changes.read_only))
        day.show(day_html("Records in", console.topic_rates.over_a_day(name, now_ms), rate))
        if groups.value is not None:
            states = {group.group: group.state for group in groups.value.groups}
            lags = groups.value.topic_lags.get(name, {})
            consumers.show(consumers_html({group: (states.get(group, ""), lag) for group, lag in lags.items()}))

    feeds: list[Feed[Any]] = [console.topic(name), console.storage, console.traffic, console.groups]
    await follow(feeds, render)


def _heading(name: str) -> Html:
    return together(
        tag("div", tag("a", "Topics", href="/topics"), " /", cls="crumb"),
        tag("h1", name),
    )


def _acts(console: Console, name: str) -> None:
    with ui.element("div").classes("row-of"):
        Live(tag("a", "Messages", cls="btn", href=link("messages", topic=name)))
        if console.changes.read_only:
            return
        _button("Elect preferred", partial(_elect, console, name))
        _button("Add partitions", partial(_add_partitions, console, name))
        _button("Clone", partial(clone, console, name))
        _button("Delete records", partial(purge, console, name)).classes("danger")
        _button("Delete", partial(_delete, console, name)).classes("danger")


def _button(text: str, do: Callable[[], Awaitable[object]]) -> ui.element:
    button = ui.element("button").classes("btn").on("click", do)
    with button:
        ui.label(text)
    return button


async def _add_partitions(console: Console, name: str) -> None:
    detail = console.topic(name).want().value
    now = len(detail.topic.partitions) if detail else 1
    dialog = ChangeDialog("Add partitions", "Add")
    wanted = dialog.field(
        "Partitions afterwards",
        str(now + 1),
        check=number_between(now + 1, _PARTITIONS_MAX, "the number of partitions"),
        full=True,
    )
    dialog.says(
        lambda: (
            f"Topic {name} has {now} partitions and gets {wanted.value or '?'}. This can't be undone, and keys "
            "will go to other partitions than before."
        )
    )

    async def work() -> str:
        count = int(wanted.value)
        await perform(console, f"make topic {name} {count} partitions", lambda c: add_partitions(c, name, count))
        return f"Topic {name} has {count} partitions."

    await dialog.run(work)


async def _delete(console: Console, name: str) -> None:
    dialog = ChangeDialog("Delete the topic", "Delete for good", danger=True)
    dialog.field(
        f"Type the topic's name to go on: {name}",
        check=lambda text: None if text == name else "that is not its name",
        full=True,
    )
    dialog.says(lambda: f"Deletes topic {name} with all its records on all brokers. This can't be undone.")

    async def work() -> str:
        await perform(console, f"delete topic {name}", lambda c: delete_topic(c, name))
        return f"Topic {name} is deleted."

    if await dialog.run(work):
        ui.navigate.to(console.address("topics"))


async def _elect(console: Console, name: str) -> None:
    detail = console.topic(name).want().value
    moving = [p for p in detail.topic.partitions if p.leader != p.replicas[0]] if detail else []
    dialog = ChangeDialog("Elect preferred leaders", "Elect")
    numbers = ", ".join(str(p.partition) for p in moving[:20]) or "none"
    dialog.says(
        lambda: (
            f"Partitions of {name} not led by their preferred replica: {numbers}. Where it is in sync, it takes over."
        )
    )

    async def work() -> str:
        wanted = [TopicPartition(name, p.partition) for p in moving]
        if wanted:
            await perform(
                console,
                f"elect preferred leaders of {name} {numbers}",
                lambda c: elect_leaders(c, ElectionType.PREFERRED, wanted),
            )
        return "Elected." if wanted else "Every partition has its preferred leader already."

    await dialog.run(work)

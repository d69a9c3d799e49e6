"""Topics: all of them, searched, sorted, paged; create one."""

from dataclasses import replace
from functools import partial
from typing import Any

from nicegui import ui

from odradek.apps.console.console import Console
from odradek.apps.console.consoles import Consoles
from odradek.apps.console.feeds import Feed, Reading
from odradek.apps.console.live import Act, Live
from odradek.apps.console.page import follow, page, remember
from odradek.apps.console.readings.cluster import ClusterState
from odradek.apps.console.readings.settings import TopicSettings
from odradek.apps.console.readings.storage import StorageState
from odradek.apps.console.readings.traffic import TrafficState
from odradek.apps.console.screens.topic_create import create
from odradek.apps.console.views.banner import nothing_yet
from odradek.apps.console.views.health import PROBLEMS
from odradek.apps.console.views.topics import Search, topic_rows, topics_table


def register(consoles: Consoles) -> None:
    @ui.page("/topics")
    async def topics_page(q: str = "", problem: str = "", sort: str = "name", at: int = 1, internal: str = "") -> None:
        console = consoles.here()
        with page(console, "Topics"):
            chosen = problem if problem in PROBLEMS else ""
            await _show(console, Search(q, bool(internal or chosen), sort, at, chosen))


async def _show(console: Console, search: Search) -> None:
    text = search.text

    def look(**changed: object) -> None:
        nonlocal search
        search = replace(search, **changed)  # type: ignore[arg-type]
        remember(console, "topics", **search.address)
        render(*(feed.want() for feed in feeds))

    def act(what: Act) -> None:
        if what["act"] == "sort":
            look(sort=what["by"], page=1)
        elif what["act"] == "page":
            look(page=int(what["to"]))

    with ui.element("div").classes("top"):
        ui.html("<h1>Topics</h1>", sanitize=False).classes("grow")
        ui.switch("internal", value=search.internal, on_change=lambda e: look(internal=e.value, page=1)).props(
            "dense"
        ).classes("soft")
        ui.input(placeholder="Search  ( / )", value=text, on_change=lambda e: look(text=e.value or "", page=1)).props(
            'outlined dense clearable debounce=120 aria-label="Search topics"'
        )
        ui.select(PROBLEMS, value=search.problem, on_change=lambda e: look(problem=e.value, page=1)).props(
            'outlined dense aria-label="Health"'
        )
        if not console.changes.read_only:
            ui.button("Create topic", on_click=partial(create, console)).props("unelevated no-caps")
    rows = Live(on_act=act)

    def render(
        cluster: Reading[ClusterState],
        settings: Reading[TopicSettings],
        storage: Reading[StorageState],
        traffic: Reading[TrafficState],
    ) -> None:
        if cluster.value is None:
            rows.show(nothing_yet(cluster))
            return
        found = topic_rows(cluster.value, settings.value, storage.value, traffic.value, search)
        rows.show(topics_table(found, search))

    feeds: list[Feed[Any]] = [console.cluster, console.settings, console.storage, console.traffic]
    await follow(feeds, render)

"""Topics: all of them, searched, sorted, paged; create one."""

from dataclasses import replace
from functools import partial
from typing import Any

from nicegui import ui

from odradek.apps.console.console import Console
from odradek.apps.console.consoles import Consoles
from odradek.apps.console.dialogs import ChangeDialog, fault_of, number_between
from odradek.apps.console.feeds import Feed, Reading
from odradek.apps.console.live import Act, Live
from odradek.apps.console.markup import link
from odradek.apps.console.page import follow, page, perform
from odradek.apps.console.readings.cluster import ClusterState
from odradek.apps.console.readings.settings import TopicSettings
from odradek.apps.console.readings.storage import StorageState
from odradek.apps.console.readings.traffic import TrafficState
from odradek.apps.console.views.banner import nothing_yet
from odradek.apps.console.views.topics import PROBLEMS, Search, topic_rows, topics_table
from odradek.client.config_admin import parse_changes
from odradek.client.topic_admin import CLUSTER_DEFAULT, create_topic
from odradek.model.topic_names import name_fault

_PARTITIONS_MAX = 10_000


def register(consoles: Consoles) -> None:
    @ui.page("/topics")
    async def topics_page(q: str = "", problem: str = "") -> None:
        console = consoles.here()
        with page(console, "Topics"):
            chosen = problem if problem in PROBLEMS else ""
            await _show(console, Search(q, internal=bool(chosen), problem=chosen))


async def _show(console: Console, search: Search) -> None:
    text = search.text

    def look(**changed: object) -> None:
        nonlocal search
        search = replace(search, **changed)  # type: ignore[arg-type]
        ui.navigate.history.replace(link("topics", q=search.text, problem=search.problem))
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
            ui.button("Create topic", on_click=partial(_create, console)).props("unelevated no-caps")
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


async def _create(console: Console) -> None:
    state = console.cluster.want().value
    brokers = len(state.brokers) if state else 0
    known = set(state.topics) if state else set()

    def check_name(text: str) -> str | None:
        problem = name_fault(text.strip())
        return problem or (f"topic '{text.strip()}' exists already" if text.strip() in known else None)

    dialog = ChangeDialog("Create a topic", "Create")
    name = dialog.field("Name", check=check_name, full=True)
    partitions = dialog.field("Partitions", "3", check=number_between(1, _PARTITIONS_MAX, "the number of partitions"))
    replicas = dialog.field(
        "Replicas of each",
        str(min(3, brokers) or 1),
        check=number_between(1, max(brokers, 1), "the number of replicas"),
    )
    configs = dialog.field(
        "Settings: key=value, key=value", check=fault_of(lambda text: parse_changes(text) if text else None), full=True
    )

    def sentence() -> str:
        p, r = partitions.value or "?", replicas.value or "?"
        total = int(p) * int(r) if p.isdecimal() and r.isdecimal() else "?"
        return f"Creates topic {name.value or '…'}: {p} partitions × {r} replicas = {total} logs on {brokers} brokers."

    dialog.says(sentence)

    async def work() -> str:
        wanted = name.value.strip()
        size = f"{partitions.value} partitions × {replicas.value} replicas"
        await perform(
            console,
            f"create topic {wanted} with {size} {configs.value}".strip(),
            lambda client: create_topic(
                client,
                wanted,
                partitions=int(partitions.value or CLUSTER_DEFAULT),
                replication_factor=int(replicas.value or CLUSTER_DEFAULT),
                configs=_settings(configs.value),
            ),
        )
        return f"Topic {wanted} is there."

    await dialog.run(work)


def _settings(text: str) -> dict[str, str]:
    return parse_changes(text) if text.strip() else {}

"""Broker: its load, log directories, partitions and settings."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from nicegui import ui

from odradek.apps.console.console import Console
from odradek.apps.console.consoles import Consoles
from odradek.apps.console.feeds import Feed, Reading
from odradek.apps.console.live import Act, Live
from odradek.apps.console.markup import tag, together
from odradek.apps.console.page import follow, page, remember, wait_for_first_paint
from odradek.apps.console.readings.cluster import ClusterState
from odradek.apps.console.readings.coordination import CoordinationState
from odradek.apps.console.readings.storage import StorageState
from odradek.apps.console.readings.traffic import TrafficState
from odradek.apps.console.screens.settings_panel import SettingsPanel
from odradek.apps.console.views.banner import not_found
from odradek.apps.console.views.broker import ROLE_CHOICES, broker_figures, directories_html, held_html
from odradek.apps.console.views.cluster import broker_rows
from odradek.client.config_admin import Resource
from odradek.protocol.messages.describe_configs import ConfigResourceType


def register(consoles: Consoles) -> None:
    @ui.page("/brokers/{number}")
    async def broker_page(number: str, role: str = "") -> None:
        console = consoles.here()
        with page(console, "Cluster", f"Broker {number}"):
            await wait_for_first_paint(console.cluster)
            state = console.cluster.want().value
            if not number.isdecimal() or (state is not None and int(number) not in state.known_brokers):
                Live(not_found("broker", number, "/", "Cluster"))
                return
            await _show(console, int(number), role if role in ROLE_CHOICES else "")


async def _show(console: Console, broker: int, role: str) -> None:
    page_number = 1

    def turn(act: Act) -> None:
        nonlocal page_number
        page_number = int(act["to"])
        render(*(feed.want() for feed in feeds))

    def choose(chosen: str) -> None:
        nonlocal role, page_number
        role, page_number = chosen, 1
        remember(console, "brokers", str(broker), role=role)
        render(*(feed.want() for feed in feeds))

    crumb = tag("div", tag("a", "Cluster", href="/"), " /", cls="crumb")
    with ui.element("div").classes("top"):
        Live(together(crumb, tag("h1", f"Broker {broker}"))).classes("grow")
    figures = Live()
    ui.html("<h2>Log directories</h2>", sanitize=False)
    directories = Live()
    with ui.element("div").classes("top").style("margin: 28px 0 10px"):
        ui.html("<h2 style='margin:0'>Partitions</h2>", sanitize=False).classes("grow")
        ui.select(ROLE_CHOICES, value=role, on_change=lambda e: choose(e.value)).props(
            'outlined dense aria-label="Role"'
        )
    partitions = Live(on_act=turn)
    SettingsPanel(console, Resource(ConfigResourceType.BROKER, str(broker)))

    def render(
        cluster: Reading[ClusterState],
        storage: Reading[StorageState],
        traffic: Reading[TrafficState],
        coordination: Reading[CoordinationState],
        certificates: Reading[Mapping[int, datetime]],
    ) -> None:
        if cluster.value is None:
            return
        rows = broker_rows(cluster.value, storage.value, traffic.value, coordination.value)
        row = next((row for row in rows if row.id == broker), None)
        if row is not None:
            figures.show(broker_figures(row, certificates.value))
        directories.show(directories_html(storage.value, broker))
        partitions.show(held_html(cluster.value, storage.value, broker, role, page_number))

    feeds: list[Feed[Any]] = [console.cluster, console.storage, console.traffic, console.coordination]
    feeds.append(console.certificates)
    await follow(feeds, render)

"""Cluster: health, brokers, traffic."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from nicegui import ui

from odradek.apps.console.console import Console
from odradek.apps.console.consoles import Consoles
from odradek.apps.console.dialogs import ChangeDialog
from odradek.apps.console.feeds import Feed, Reading
from odradek.apps.console.live import Act, Live
from odradek.apps.console.page import follow, page, perform
from odradek.apps.console.readings.cluster import ClusterState
from odradek.apps.console.readings.coordination import CoordinationState
from odradek.apps.console.readings.settings import TopicSettings
from odradek.apps.console.readings.storage import StorageState
from odradek.apps.console.readings.traffic import TrafficState
from odradek.apps.console.views.alerts import NotedAlert, alerts_html
from odradek.apps.console.views.banner import nothing_yet
from odradek.apps.console.views.cluster import (
    broker_rows,
    broker_table,
    changes_table,
    cluster_acts,
    overview,
    plots,
    summarize,
)
from odradek.apps.figures import plural
from odradek.client.elections import ElectionType, elect_leaders


def register(consoles: Consoles) -> None:
    @ui.page("/")
    async def cluster_page() -> None:
        console = consoles.here()
        with page(console, "Cluster"):
            await _show(console)


async def _show(console: Console) -> None:
    async def act(_: Act) -> None:
        await _elect(console)

    top = Live()
    alerts = Live()
    with ui.element("div").classes("top").style("margin: 24px 0 10px"):
        ui.html("<h2 style='margin:0'>Brokers</h2>", sanitize=False).classes("grow")
        acts = Live(on_act=act)
    brokers = Live()
    ui.html("<h2>Traffic</h2>", sanitize=False)
    traffic_plots = Live()
    ui.html("<h2>Audit log of this console</h2>", sanitize=False)
    changes = Live()

    def render(
        cluster: Reading[ClusterState],
        settings: Reading[TopicSettings],
        storage: Reading[StorageState],
        traffic: Reading[TrafficState],
        coordination: Reading[CoordinationState],
        certificates: Reading[Mapping[int, datetime]],
        noted: Reading[tuple[NotedAlert, ...]],
    ) -> None:
        alerts.show(alerts_html(noted.value or (), console.feeds.clock.now_ms()))
        changes.show(changes_table(console.visible_changes))
        if cluster.value is None:
            brokers.show(nothing_yet(cluster))
            traffic_plots.show(plots(None))
            return
        summary = summarize(cluster.value, settings.value or {})
        top.show(overview(cluster.value, summary, coordination.value, certificates.value))
        acts.show(cluster_acts(summary, read_only=console.changes.read_only))
        rows = broker_rows(cluster.value, storage.value, traffic.value, coordination.value)
        brokers.show(broker_table(rows, metrics=bool(traffic.value and traffic.value.has_metrics)))
        traffic_plots.show(plots(traffic.value))

    feeds: list[Feed[Any]] = [console.cluster, console.settings, console.storage, console.traffic]
    await follow([*feeds, console.coordination, console.certificates, console.alerts], render)


async def _elect(console: Console) -> None:
    state = console.cluster.want().value
    moving = summarize(state, {}).not_preferred if state else 0
    dialog = ChangeDialog("Elect preferred leaders", "Elect")
    dialog.says(
        lambda: (
            f"{plural(moving, 'partition')} not led by the preferred replica: where that replica is in sync, it takes "
            "over. Clients notice a short pause in these partitions."
        )
    )

    async def work() -> str:
        await perform(
            console,
            "elect preferred leaders of all partitions",
            lambda c: elect_leaders(c, ElectionType.PREFERRED, None),
        )
        return "Elected."

    await dialog.run(work)

"""Pipelines: the Spark queries that read and write the cluster's topics."""

from nicegui import ui

from odradek.apps.console.consoles import Consoles
from odradek.apps.console.feeds import Reading
from odradek.apps.console.live import Live
from odradek.apps.console.markup import tag
from odradek.apps.console.page import follow, page
from odradek.apps.console.readings.pipelines import PipelinesState
from odradek.apps.console.views.pipelines import pipelines_html


def register(consoles: Consoles) -> None:
    @ui.page("/pipelines")
    async def pipelines_page() -> None:
        console = consoles.here()
        with page(console, "Pipelines"):
            ui.html("<div class='top'><h1>Pipelines</h1></div>", sanitize=False)
            shown = Live()

            def render(reading: Reading[PipelinesState]) -> None:
                if reading.value is not None:
                    shown.show(pipelines_html(reading.value))
                elif reading.problem:
                    shown.show(tag("div", reading.problem, cls="card empty"))

            await follow([console.pipelines], render)

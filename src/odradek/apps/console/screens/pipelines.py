"""Pipelines: the Spark queries that read and write the cluster's topics; start, stop, replay."""

from pathlib import Path

from nicegui import ui

from odradek.apps.console.console import Console
from odradek.apps.console.consoles import Consoles
from odradek.apps.console.dialogs import ChangeDialog
from odradek.apps.console.feeds import Reading
from odradek.apps.console.live import Act, Live
from odradek.apps.console.markup import tag
from odradek.apps.console.page import follow, page, perform
from odradek.apps.console.pipeline_control import LOG, replay_pipeline, start_pipeline, stop_pipeline
from odradek.apps.console.readings.pipelines import PipelinesState
from odradek.apps.console.views.pipelines import pipelines_html
from odradek.client.cluster_client import ClusterClient
from odradek.model.acls import AclOperation

_SAYS = {
    "start": "Starts pipeline {} on this machine, as `odradek pipeline run` does. The first rows take up to a "
    "minute, while Spark compiles the queries. Output: {}.",
    "stop": "Stops pipeline {}: the batch in progress ends, the next run continues from there.",
    "replay": "Pipeline {} computes again from there at its next run: later batches are removed from tables, "
    "topics get the rows again, windows and deduplication begin with empty state. This can't be undone.",
}


_SAID = {
    "start": "Pipeline {} is starting.",
    "stop": "Pipeline {} has stopped.",
    "replay": "Pipeline {} computes again at its next run; start it now or later.",
}


def register(consoles: Consoles) -> None:
    @ui.page("/pipelines")
    async def pipelines_page() -> None:
        console = consoles.here()
        with page(console, "Pipelines"):
            ui.html("<div class='top'><h1>Pipelines</h1></div>", sanitize=False)
            state: PipelinesState | None = None

            async def act(what: Act) -> None:
                known = {str(document["directory"]): document for document in (state.documents if state else ())}
                document = known.get(what["directory"])
                if document is not None:
                    await _do(console, what["act"], Path(what["directory"]), str(document.get("pipeline", "?")))

            shown = Live(on_act=act)

            def render(reading: Reading[PipelinesState]) -> None:
                nonlocal state
                state = reading.value
                if state is not None:
                    shown.show(pipelines_html(state, read_only=console.changes.read_only))
                elif reading.problem:
                    shown.show(tag("div", reading.problem, cls="card empty"))

            await follow([console.pipelines], render)


async def _do(console: Console, act: str, project: Path, name: str) -> None:
    title = act.capitalize()
    dialog = ChangeDialog(f"{title} the pipeline", title, danger=act != "start")
    at = dialog.field("From (empty: the earliest offset; 2h ago, ISO time)", full=True) if act == "replay" else None
    dialog.says(lambda: _SAYS[act].format(name, project / LOG))

    def change(client: ClusterClient) -> None:
        console.require(AclOperation.ALTER, f"To {act} a pipeline")
        match act:
            case "start":
                start_pipeline(project)
            case "stop":
                stop_pipeline(project)
            case "replay":
                replay_pipeline(project, (at.value or "").strip() or None if at else None)

    async def work() -> str:
        await perform(console, f"{act} pipeline {name} in {project}", change)
        return _SAID[act].format(name)

    await dialog.run(work)

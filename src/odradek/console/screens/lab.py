"""Lab: crash, freeze, stop and start the brokers of this machine and watch; three rebalance designs side by side."""

from collections.abc import Callable

from fastapi.responses import FileResponse
from nicegui import app, ui

from odradek.console.console import Console, Machine
from odradek.console.dialogs import ChangeDialog
from odradek.console.experiment import Experiment
from odradek.console.feeds import Reading
from odradek.console.live import Act, Live
from odradek.console.markup import link
from odradek.console.page import first_sight, follow, page, perform, told
from odradek.console.readings.cluster import ClusterState
from odradek.console.readings.coordination import CoordinationState
from odradek.console.readings.topic import TopicDetail
from odradek.console.views.lab import ACTS, brokers_html, experiment_html
from odradek.console.views.topic import strips_html


def register(console: Console) -> None:
    machine = console.machine
    if machine is None:
        return
    experiment = Experiment()
    app.on_shutdown(experiment.stop)

    @ui.page("/lab")
    async def lab_page(topic: str = "") -> None:
        with page(console, "Lab"):
            await _show(console, machine, experiment, topic)

    @app.get("/lab/rebalance.html")
    def rebalance_drawing() -> FileResponse:
        return FileResponse(experiment.file)


async def _show(console: Console, machine: Machine, experiment: Experiment, topic: str) -> None:
    async def act(what: Act) -> None:
        await _do(console, machine, what["act"], int(what["broker"]))

    ui.html(
        "<div class='top'><div><h1>Laboratory</h1><p class='sub'>Break a broker, and watch controller, ISRs and high "
        "watermarks move.</p></div></div>",
        sanitize=False,
    )
    brokers = Live(on_act=act)
    ui.html("<h2>Watched topic</h2>", sanitize=False)
    await first_sight(console.cluster)
    reading = console.cluster.want()
    names = [name for name, state in reading.value.topics.items() if not state.is_internal] if reading.value else []
    chosen = topic or next(iter(sorted(names)), "")
    ui.select(
        sorted({*names, *filter(None, [topic])}),
        value=chosen or None,
        on_change=lambda e: ui.navigate.to(link("lab", topic=e.value)),
    ).props('outlined dense aria-label="Watched topic"').style("max-width: 300px; margin-bottom: 12px")
    strips = Live()
    ui.html(
        "<h2>Rebalances in three designs</h2><p class='note'>Every member decides, in ZooKeeper; one coordinates, in "
        "ZooKeeper; a broker coordinates. The same six things happen to a group in each; what it costs is counted and "
        "drawn side by side. Takes some minutes, on servers of its own.</p>",
        sanitize=False,
    )
    if not console.changes.read_only:
        ui.button("Run the experiment", on_click=lambda: _experiment(console, experiment)).props("outline no-caps")
    drawing = Live()

    def render(
        cluster: Reading[ClusterState], coordination: Reading[CoordinationState], *rest: Reading[TopicDetail]
    ) -> None:
        state = cluster.value if cluster.problem is None else None
        brokers.show(brokers_html(machine.processes(), state, coordination.value, read_only=console.changes.read_only))
        for detail in rest:
            if detail.value is not None:
                strips.show(strips_html(detail.value, None, 1))
        drawing.show(experiment_html(experiment.line, is_running=experiment.is_running, has_page=experiment.has_page))

    watched = [console.topic(chosen)] if chosen else []
    await follow([console.cluster, console.coordination, *watched], render)


async def _do(console: Console, machine: Machine, act: str, broker: int) -> None:
    acts: dict[str, Callable[[int], None]] = {
        "kill": machine.kill,
        "pause": machine.pause,
        "resume": machine.resume,
        "stop": machine.stop,
        "start": machine.start,
    }
    dialog = ChangeDialog(f"{act.capitalize()} broker {broker}", act.capitalize(), danger=act == "kill")
    dialog.says(lambda: ACTS[act].format(broker))

    async def work() -> str:
        await perform(console, f"{act} broker {broker}", lambda client: acts[act](broker))
        return f"Broker {broker}: {act} done."

    await dialog.run(work)


async def _experiment(console: Console, experiment: Experiment) -> None:
    if experiment.is_running:
        told("It is running already.", bad=True)
        return
    dialog = ChangeDialog("Run the experiment", "Run")
    dialog.says(
        lambda: (
            "Starts three brokers and three ZooKeeper servers of its own in a temporary directory, for some minutes."
        )
    )

    async def work() -> str:
        await perform(console, "run the rebalance experiment", lambda client: experiment.start())
        return "It has begun."

    await dialog.run(work)

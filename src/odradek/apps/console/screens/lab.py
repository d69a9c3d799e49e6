"""Lab: crash, freeze, cut off, stop and start the brokers of this machine and watch; three rebalance designs."""

from collections.abc import Callable

from fastapi.responses import HTMLResponse, PlainTextResponse, Response
from nicegui import app, ui

from odradek.apps.console.console import Console, Machine
from odradek.apps.console.consoles import Consoles
from odradek.apps.console.dialogs import ChangeDialog, fault_of
from odradek.apps.console.experiment import Experiment, parse_sizes
from odradek.apps.console.feeds import Reading
from odradek.apps.console.live import Act, Live
from odradek.apps.console.page import follow, notify, page, perform, wait_for_first_paint
from odradek.apps.console.readings.cluster import ClusterState
from odradek.apps.console.readings.coordination import CoordinationState
from odradek.apps.console.readings.topic import TopicDetail
from odradek.apps.console.views.banner import not_found
from odradek.apps.console.views.lab import (
    ACTS,
    CONSEQUENCES,
    CUTS,
    TITLES,
    LabBroker,
    brokers_html,
    busiest_topic,
    experiment_html,
)
from odradek.apps.console.views.topic import strips_html
from odradek.local.links.cuts import CutFrom

# of the drawing alone: shown inside of our own page, and running nothing
_FRAMED = {
    "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'self'",
    "x-frame-options": "SAMEORIGIN",
}


def register(consoles: Consoles) -> None:
    machine = consoles.machine
    if machine is None:
        return
    experiment = Experiment()
    app.on_shutdown(experiment.stop)

    @ui.page("/lab")
    async def lab_page(topic: str = "") -> None:
        console = consoles.here()
        with page(console, "Lab"):
            if console.machine is None:
                Live(not_found("laboratory", "of this cluster", "/", "Cluster"))
                return
            await _show(console, machine, experiment, topic)

    @app.get("/lab/rebalance.html")
    def rebalance_drawing() -> Response:
        file = experiment.file
        if file is None:
            return PlainTextResponse("nothing is drawn yet: run the experiment first", 404)
        return HTMLResponse(file.read_text(), headers=_FRAMED)


async def _show(console: Console, machine: Machine, experiment: Experiment, topic: str) -> None:
    async def act(what: Act) -> None:
        await _do(console, machine, what["act"], int(what["broker"]))

    ui.html(
        "<div class='top'><div><h1>Laboratory</h1><p class='sub'>Break a broker or isolate it, and watch controller, "
        "ISRs and high watermarks move.</p></div></div>",
        sanitize=False,
    )
    brokers = Live(on_act=act)
    ui.html("<h2>Watched topic</h2>", sanitize=False)
    await wait_for_first_paint(console.cluster)
    reading = console.cluster.want()
    names = [name for name, state in reading.value.topics.items() if not state.is_internal] if reading.value else []
    if not topic and len(names) > 1:
        await wait_for_first_paint(console.traffic)
    chosen = topic or busiest_topic(names, console.traffic.want().value if names else None)
    ui.select(
        sorted({*names, *filter(None, [topic])}),
        value=chosen or None,
        on_change=lambda e: ui.navigate.to(console.address("lab", topic=e.value)),
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
        brokers.show(
            brokers_html(_lab_brokers(machine), state, coordination.value, read_only=console.changes.read_only)
        )
        for detail in rest:
            if detail.value is not None:
                strips.show(strips_html(detail.value, None, 1))
        drawing.show(experiment_html(experiment.line, is_running=experiment.is_running, drawn_ms=_drawn_ms(experiment)))

    watched = [console.topic(chosen)] if chosen else []
    await follow([console.cluster, console.coordination, *watched], render)


def _drawn_ms(experiment: Experiment) -> int | None:
    file = experiment.file
    return None if file is None else file.stat().st_mtime_ns // 1_000_000


def _lab_brokers(machine: Machine) -> list[LabBroker]:
    cuts = machine.cuts()
    return [
        LabBroker(broker, process, machine.can_be_cut(broker), cuts.get(broker, frozenset()))
        for broker, process in sorted(machine.processes().items())
    ]


async def _do(console: Console, machine: Machine, act: str, broker: int) -> None:
    if act == "cut":
        await _cut(console, machine, broker)
        return
    acts: dict[str, Callable[[int], None]] = {
        "kill": machine.kill,
        "pause": machine.pause,
        "resume": machine.resume,
        "stop": machine.stop,
        "start": machine.start,
        "heal": machine.heal,
    }
    title = TITLES.get(act, act.capitalize())
    dialog = ChangeDialog(f"{title} broker {broker}", title, danger=act == "kill")
    dialog.says(lambda: ACTS[act].format(broker))

    async def work() -> str:
        await perform(console, f"{act} broker {broker}", lambda client: acts[act](broker))
        return f"Broker {broker}: {act} done."

    await dialog.run(work)


async def _cut(console: Console, machine: Machine, broker: int) -> None:
    dialog = ChangeDialog(f"Isolate broker {broker}", "Isolate", danger=True)
    whom = dialog.choice("From", CUTS, "zookeeper")
    dialog.says(lambda: ACTS["cut"].format(broker, CUTS[whom.value], CONSEQUENCES[whom.value]))

    async def work() -> str:
        links = list(CutFrom) if whom.value == "both" else [CutFrom(whom.value)]
        what = f"isolate broker {broker} from {CUTS[whom.value]}"
        await perform(console, what, lambda client: machine.cut(broker, links))
        return f"Broker {broker} is isolated from {CUTS[whom.value]}."

    await dialog.run(work)


async def _experiment(console: Console, experiment: Experiment) -> None:
    if experiment.is_running:
        notify("It is running already.", bad=True)
        return
    dialog = ChangeDialog("Run the experiment", "Run")
    sizes = dialog.field("Members of the group: 3, or 3, 10, 30", "3, 10", check=fault_of(parse_sizes), full=True)
    dialog.says(
        lambda: (
            "Starts three brokers and three ZooKeeper servers of its own in a temporary directory, for two to five "
            f"minutes with each number of members: {sizes.value}."
        )
    )

    async def work() -> str:
        chosen = parse_sizes(sizes.value)
        what = f"run the rebalance experiment with {sizes.value} members"
        await perform(console, what, lambda client: experiment.start(chosen))
        return "It has begun."

    await dialog.run(work)

"""The laboratory: the brokers as processes that can be crashed, beside what the cluster makes of it."""

from collections.abc import Mapping

from odradek.console.markup import Html, tag, together
from odradek.console.readings.cluster import ClusterState
from odradek.console.readings.coordination import CoordinationState
from odradek.console.views.parts import button, chip

_TONES = {"running": "ok", "paused": "warn", "stopped": "bad"}
ACTS = {
    "kill": "Crashes broker {} as kill -9 does. Others lead what it led when its session with ZooKeeper ends.",
    "pause": "Freezes broker {}: it is there and answers nothing, as in a very long garbage collection.",
    "resume": "Lets broker {} go on: it finds out by itself what it has missed.",
    "stop": "Stops broker {} cleanly: it hands its partitions to the others first.",
    "start": "Starts broker {} again: it follows, catches up and joins the ISRs; it leads again after an election.",
}
_POSSIBLE = {"running": ("kill", "pause", "stop"), "paused": ("resume", "kill"), "stopped": ("start",)}


def brokers_html(
    processes: Mapping[int, str], state: ClusterState | None, coordination: CoordinationState | None, *, read_only: bool
) -> Html:
    controller = state.controller if state else -1
    live = {broker.id for broker in state.brokers} if state else set()
    epoch = coordination.controller_epoch if coordination else None
    boxes = []
    for broker, process in sorted(processes.items()):
        partitions = [
            p for topic in (state.topics.values() if state else ()) for p in topic.partitions if broker in p.replicas
        ]
        leads = sum(p.leader == broker for p in partitions)
        in_sync = sum(broker in p.isr for p in partitions)
        acts = [
            button(act.capitalize(), act, cls="btn small danger" if act == "kill" else "btn small", broker=broker)
            for act in _POSSIBLE[process]
        ]
        boxes.append(
            tag(
                "div",
                tag("div", f"Broker {broker}", chip(process, _TONES[process]), cls="name"),
                tag("div", "in the cluster" if broker in live else "not in the cluster", cls="note"),
                tag("div", f"leads {leads}, in sync in {in_sync} of {len(partitions)}", cls="note"),
                tag("div", chip(f"controller, epoch {epoch}", "accent")) if broker == controller else None,
                None if read_only else tag("div", acts, cls="acts"),
                cls=f"card brokerbox {'live' if process == 'running' else 'dead'}",
                data_broker=broker,
            )
        )
    return tag("div", boxes, cls="brokers")


def experiment_html(line: str, *, is_running: bool, has_page: bool) -> Html:
    return together(
        tag("p", line, cls="note mono") if line else None,
        tag("p", tag("a", "Open the drawing", href="/lab/rebalance.html", target="_blank", cls="btn"))
        if has_page
        else None,
        chip("running", "accent") if is_running else None,
    )

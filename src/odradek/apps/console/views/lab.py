"""The laboratory: brokers as processes that can be crashed and isolated, and the effects on the cluster."""

from collections.abc import Iterable
from dataclasses import dataclass

from odradek.apps.console.markup import Html, tag, together
from odradek.apps.console.readings.cluster import ClusterState
from odradek.apps.console.readings.coordination import CoordinationState
from odradek.apps.console.readings.traffic import TrafficState
from odradek.apps.console.views.parts import button, chip
from odradek.local.links.cuts import CutFrom

_RECENT_POINTS = 10
_TONES = {"running": "ok", "paused": "warn", "stopped": "bad"}
ACTS = {
    "kill": "Crashes broker {} as kill -9 does. Other replicas become leaders when its session with ZooKeeper ends.",
    "pause": "Freezes broker {}: it is there and answers nothing, as in a very long garbage collection.",
    "resume": "Resumes broker {}: it catches up automatically.",
    "stop": "Stops broker {} cleanly: it hands its partitions to the others first.",
    "cut": "Isolates broker {} from {}, as a broken switch does: connections stay open and go silent. {}",
    "heal": "Connects broker {} again: it catches up automatically.",
    "start": "Starts broker {} again: it follows, catches up and joins the ISRs; it leads again after an election.",
}
CUTS = {
    "zookeeper": "ZooKeeper",
    "brokers": "the other brokers",
    "both": "ZooKeeper and the other brokers",
}
CONSEQUENCES = {
    "zookeeper": "Its session expires after some seconds, and others are elected; it believes that it still leads.",
    "brokers": "It leaves the others' ISRs and they leave its own, after replica.lag.time.max.ms.",
    "both": "The others continue without it; it continues alone, and acknowledges no write with acks=all.",
}
TITLES = {"cut": "Isolate", "pause": "Freeze (SIGSTOP)", "resume": "Resume (SIGCONT)", "heal": "Reconnect"}
_TONES_OF_ACTS = {"kill": "danger", "cut": "danger", "heal": "primary", "start": "primary", "resume": "primary"}
_POSSIBLE = {"running": ("kill", "pause", "stop"), "paused": ("resume", "kill"), "stopped": ("start",)}


@dataclass(frozen=True, slots=True)
class LabBroker:
    id: int
    process: str
    """running, paused, stopped"""
    can_be_cut: bool = False
    cut_from: frozenset[CutFrom] = frozenset()

    @property
    def acts(self) -> tuple[str, ...]:
        cut = ("heal",) if self.cut_from else ("cut",) if self.can_be_cut and self.process != "stopped" else ()
        return (*_POSSIBLE[self.process], *cut)


def busiest_topic(names: Iterable[str], traffic: TrafficState | None) -> str:
    """Return the topic with the highest recent rate, else with the most records, else the first by name."""
    records: dict[str, int] = {}
    for tp, end in (traffic.ends if traffic else {}).items():
        records[tp.topic] = records.get(tp.topic, 0) + end
    rates = traffic.topic_rates if traffic else {}
    ordered = sorted(names, key=lambda name: (-sum(rates.get(name, ())[-_RECENT_POINTS:]), -records.get(name, 0), name))
    return next(iter(ordered), "")


def brokers_html(
    brokers: Iterable[LabBroker], state: ClusterState | None, coordination: CoordinationState | None, *, read_only: bool
) -> Html:
    boxes = [_broker_html(broker, state, coordination, read_only=read_only) for broker in brokers]
    return tag("div", boxes, cls="brokers")


def _broker_html(
    broker: LabBroker, state: ClusterState | None, coordination: CoordinationState | None, *, read_only: bool
) -> Html:
    topics = state.topics.values() if state else ()
    partitions = [p for topic in topics for p in topic.partitions if broker.id in p.replicas]
    leads = sum(p.leader == broker.id for p in partitions)
    in_sync = sum(broker.id in p.isr for p in partitions)
    epoch = coordination.controller_epoch if coordination else None
    marks = [
        chip(f"controller, epoch {epoch}", "accent") if state and broker.id == state.controller else None,
        chip(f"isolated from {_cut_off(broker.cut_from)}", "bad") if broker.cut_from else None,
    ]
    acts = [
        button(TITLES.get(act, act.capitalize()), act, cls=f"btn small {_TONES_OF_ACTS.get(act, '')}", broker=broker.id)
        for act in broker.acts
    ]
    return tag(
        "div",
        tag("div", f"Broker {broker.id}", chip(broker.process, _TONES[broker.process]), cls="name"),
        tag("div", _membership(broker.id, state, coordination), cls="note"),
        tag("div", f"leader of {leads}, in sync in {in_sync} of {len(partitions)}", cls="note"),
        tag("div", marks, cls="marks"),
        None if read_only else tag("div", acts, cls="acts"),
        cls=f"card brokerbox {'dead' if broker.process != 'running' else 'cut' if broker.cut_from else 'live'}",
        data_broker=broker.id,
    )


def _membership(broker: int, state: ClusterState | None, coordination: CoordinationState | None) -> str:
    """State of the broker in the cluster: by ZooKeeper, which knows first that a session has ended, else by the
    brokers."""
    if coordination is not None:
        return "in the cluster" if broker in coordination.since_ms else "not in the cluster: it has no session"
    live = {known.id for known in state.brokers} if state else set()
    return "in the cluster" if broker in live else "not in the cluster"


def _cut_off(whom: frozenset[CutFrom]) -> str:
    return CUTS["both" if len(whom) == len(CutFrom) else next(iter(whom))]


def experiment_html(line: str, *, is_running: bool, drawn_ms: int | None) -> Html:
    """`drawn_ms`: when the drawing last grew; None: there is none yet."""
    place = f"/lab/rebalance.html?drawn={drawn_ms}"
    return together(
        tag("p", chip("running", "accent") if is_running else None, " ", line, cls="note mono") if line else None,
        together(
            tag("iframe", src=place, cls="card drawing", title="Rebalances in three designs"),
            tag("p", tag("a", "Open the drawing alone", href=place, target="_blank", cls="btn small")),
        )
        if drawn_ms is not None
        else None,
    )

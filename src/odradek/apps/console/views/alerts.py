"""Alerts: conditions of a cluster that need attention, with the moments at which they began and ended."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from odradek.apps.console.markup import Html, link, tag, together
from odradek.apps.console.readings.cluster import ClusterState
from odradek.apps.console.readings.coordination import CoordinationState
from odradek.apps.console.readings.settings import TopicSettings
from odradek.apps.console.readings.storage import StorageState
from odradek.apps.console.views.cluster import certificate_tone, summarize, volume_tone
from odradek.apps.console.views.health import OFFLINE, UNDER_MIN_ISR, UNDER_REPLICATED
from odradek.apps.console.views.parts import Column, chip, table
from odradek.apps.figures import duration_text, moment, plural

CONTACT, CLUSTER, STORAGE, ZOOKEEPER, CERTIFICATES = "contact", "cluster", "storage", "zookeeper", "certificates"
"""Sources of alerts. A reading without one of them leaves its alerts unchanged."""


@dataclass(frozen=True, slots=True)
class Alert:
    source: str
    name: str
    """Name of the condition: an alert continues while its condition has this name, with whatever numbers."""
    level: str
    """`bad` or `warn`."""
    text: str
    href: str


@dataclass(frozen=True, slots=True)
class NotedAlert:
    alert: Alert
    since_ms: int
    until_ms: int | None = None
    """None: it goes on."""


NO_CONTACT = Alert(CONTACT, "contact", "bad", "No broker answers.", "/")


def cluster_alerts(state: ClusterState, settings: TopicSettings) -> list[Alert]:
    found: list[Alert] = []
    summary = summarize(state, settings)
    if not summary.has_controller:
        found.append(Alert(CLUSTER, "controller", "bad", "There is no controller.", link("history")))
    for broker in summary.missing:
        text = f"Broker {broker} is down."
        found.append(Alert(CLUSTER, f"broker {broker}", "bad", text, link("brokers", str(broker))))
    for problem, level, number, text in (
        (OFFLINE, "bad", summary.offline, "without a leader"),
        (UNDER_MIN_ISR, "bad", summary.under_min_isr, "under min.insync.replicas: acks=all is refused"),
        (UNDER_REPLICATED, "warn", summary.under_replicated, "under-replicated"),
    ):
        if number:
            said = f"{plural(number, 'partition')} {text}."
            found.append(Alert(CLUSTER, problem, level, said, link("topics", problem=problem)))
    return found


def storage_alerts(state: StorageState) -> list[Alert]:
    found: list[Alert] = []
    for directory in state.directories:
        name, href = f"{directory.path} of broker {directory.broker}", link("brokers", str(directory.broker))
        used = directory.used_percent
        if directory.error:
            text = f"Log directory {name} failed: {directory.error.name}."
            found.append(Alert(STORAGE, f"directory {name}", "bad", text, href))
        elif used is not None and (level := volume_tone(used / 100)):
            found.append(Alert(STORAGE, f"volume {name}", level, f"The volume of {name} is {used:.0f}% full.", href))
    return found


def coordination_alerts(state: CoordinationState) -> list[Alert]:
    if state.answers:
        return []
    return [Alert(ZOOKEEPER, "zookeeper", "bad", f"ZooKeeper at {state.connect} does not answer.", "/")]


def certificate_alerts(ends: Mapping[int, datetime], now: datetime) -> list[Alert]:
    found: list[Alert] = []
    for broker, end in sorted(ends.items()):
        if level := certificate_tone((end - now).days):
            text = f"The certificate of broker {broker} {'ends' if end > now else 'ended'} on {end:%Y-%m-%d}."
            found.append(Alert(CERTIFICATES, f"certificate {broker}", level, text, link("brokers", str(broker))))
    return found


def all_alerts(
    cluster: ClusterState | None,
    settings: TopicSettings | None,
    storage: StorageState | None,
    coordination: CoordinationState | None,
    certificates: Mapping[int, datetime] | None,
    now_ms: int,
) -> tuple[list[Alert], frozenset[str]]:
    """Return the alerts, and their sources: a part that is None was not read. Without a cluster, no broker answers."""
    found: dict[str, list[Alert]] = {CONTACT: [NO_CONTACT] if cluster is None else []}
    if cluster is not None:
        found[CLUSTER] = cluster_alerts(cluster, settings or {})
        if storage is not None:
            found[STORAGE] = storage_alerts(storage)
        if certificates is not None:
            found[CERTIFICATES] = certificate_alerts(certificates, datetime.fromtimestamp(now_ms / 1000, UTC))
    if coordination is not None:
        found[ZOOKEEPER] = coordination_alerts(coordination)
    return [alert for alerts in found.values() for alert in alerts], frozenset(found)


def alerts_html(alerts: tuple[NotedAlert, ...], now_ms: int) -> Html:
    """Empty if there were no alerts."""
    if not alerts:
        return Html("")
    columns = [Column("State"), Column("Alert"), Column("Since", small=False), Column("For", numeric=True)]
    rows = [
        (
            chip("active", noted.alert.level) if noted.until_ms is None else chip("ended"),
            tag("a", noted.alert.text, href=noted.alert.href)
            if noted.until_ms is None
            else tag("span", noted.alert.text, cls="soft"),
            tag("span", moment(noted.since_ms)[:-4], cls="mono soft nowrap"),
            duration_text((noted.until_ms or now_ms) - noted.since_ms),
        )
        for noted in alerts
    ]
    return together(tag("h2", "Alerts"), table(columns, rows))

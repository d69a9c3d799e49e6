"""The cluster in figures: health, brokers, and the load of each broker."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from odradek.apps.console.changes import Change
from odradek.apps.console.markup import Html, link, tag, together
from odradek.apps.console.readings.cluster import ClusterState
from odradek.apps.console.readings.coordination import CoordinationState
from odradek.apps.console.readings.settings import TopicSettings
from odradek.apps.console.readings.storage import StorageState
from odradek.apps.console.readings.traffic import TrafficState
from odradek.apps.console.views.health import (
    AT_MIN_ISR,
    NOT_PREFERRED,
    OFFLINE,
    UNDER_MIN_ISR,
    UNDER_REPLICATED,
    min_isr,
    problems_of,
)
from odradek.apps.console.views.parts import Column, button, chip, figure, meter, plot, table
from odradek.apps.figures import clock_time, count, duration_text, plural, rate, size_text
from odradek.client.cluster_client import PartitionState

_VOLUME_FILLING, _VOLUME_FULL = 0.85, 0.95
_CERTIFICATE_DAYS_WARN, _CERTIFICATE_DAYS_BAD = 30, 7


@dataclass(frozen=True, slots=True)
class Summary:
    brokers: int
    missing: tuple[int, ...]
    topics: int
    partitions: int
    offline: int
    under_replicated: int
    under_min_isr: int
    at_min_isr: int
    not_preferred: int
    has_controller: bool

    @property
    def imbalance(self) -> float:
        """Share of the partitions whose leader is not the preferred replica."""
        return self.not_preferred / self.partitions if self.partitions else 0.0

    @property
    def level(self) -> str:
        if self.offline or self.under_min_isr or not self.has_controller:
            return "bad"
        return "warn" if self.missing or self.under_replicated or self.at_min_isr else "ok"

    @property
    def sentence(self) -> str:
        """The worst first."""
        said: list[str] = []
        if not self.has_controller:
            said.append("there is no controller")
        if self.offline:
            said.append(f"{plural(self.offline, 'partition')} {_have(self.offline)} no leader")
        if self.under_min_isr:
            said.append(f"{plural(self.under_min_isr, 'partition')} can't be written with acks=all")
        if self.missing:
            are = "s {} are" if len(self.missing) > 1 else " {} is"
            said.append(f"broker{are.format(', '.join(map(str, self.missing)))} down")
        if self.under_replicated:
            said.append(f"{plural(self.under_replicated, 'partition')} under-replicated")
        if self.at_min_isr:
            said.append(f"{plural(self.at_min_isr, 'partition')} can lose no further replica")
        if said:
            text = "; ".join(said)
            return f"{text[0].upper()}{text[1:]}."
        if not self.brokers:
            return "There is no broker."
        return f"Healthy: {plural(self.brokers, 'broker')}, every partition has a leader and all replicas in sync."


def _have(number: int) -> str:
    return "has" if number == 1 else "have"


@dataclass(frozen=True, slots=True)
class BrokerRow:
    id: int
    address: str
    rack: str | None
    is_live: bool
    is_controller: bool
    leads: int
    preferred: int
    replicas: int
    out_of_sync: int
    records: float | None
    bytes_in: float | None
    bytes_out: float | None
    used_bytes: int | None
    free_bytes: int | None
    volume_bytes: int | None
    up_ms: int | None


def summarize(state: ClusterState, settings: TopicSettings) -> Summary:
    live = {broker.id for broker in state.brokers}
    total, found = 0, Counter[str]()
    for topic in state.topics.values():
        needed = min_isr(settings.get(topic.name, {}))
        for partition in topic.partitions:
            total += 1
            found.update(problems_of(partition, needed))
    return Summary(
        brokers=len(live),
        missing=tuple(sorted(state.known_brokers - live)),
        topics=len(state.topics),
        partitions=total,
        offline=found[OFFLINE],
        under_replicated=found[UNDER_REPLICATED],
        under_min_isr=found[UNDER_MIN_ISR],
        at_min_isr=found[AT_MIN_ISR],
        not_preferred=found[NOT_PREFERRED],
        has_controller=state.controller >= 0,
    )


def broker_rows(
    state: ClusterState,
    storage: StorageState | None,
    traffic: TrafficState | None,
    coordination: CoordinationState | None,
) -> list[BrokerRow]:
    partitions: list[PartitionState] = [p for topic in state.topics.values() for p in topic.partitions]
    leads = Counter(partition.leader for partition in partitions)
    preferred = Counter(partition.replicas[0] for partition in partitions if partition.replicas)
    replicas = Counter(broker for partition in partitions for broker in partition.replicas)
    in_sync = Counter(broker for partition in partitions for broker in partition.isr)
    live = {broker.id: broker for broker in state.brokers}
    point = traffic.points[-1] if traffic and traffic.points else None
    rows: list[BrokerRow] = []
    for id_ in sorted(state.known_brokers):
        broker = live.get(id_)
        directories = [d for d in storage.directories if d.broker == id_] if storage and broker else []
        volumes = {(d.total_bytes, d.usable_bytes) for d in directories if d.total_bytes is not None}
        since = coordination.since_ms.get(id_) if coordination and broker else None
        rows.append(
            BrokerRow(
                id=id_,
                address=f"{broker.host}:{broker.port}" if broker else "",
                rack=broker.rack if broker else None,
                is_live=broker is not None,
                is_controller=id_ == state.controller,
                leads=leads[id_],
                preferred=preferred[id_],
                replicas=replicas[id_],
                out_of_sync=replicas[id_] - in_sync[id_],
                records=point.records.get(id_, 0.0) if point and broker else None,
                bytes_in=point.bytes_in.get(id_) if point and broker else None,
                bytes_out=point.bytes_out.get(id_) if point and broker else None,
                used_bytes=sum(d.size for d in directories) if directories else None,
                free_bytes=sum(free or 0 for _, free in volumes) if volumes else None,
                volume_bytes=sum(volume or 0 for volume, _ in volumes) if volumes else None,
                up_ms=max(0, state.at_ms - since) if since else None,
            )
        )
    return rows


def certificates_text(ends: Mapping[int, datetime], now: datetime) -> tuple[str, str, str]:
    """Value, remark and tone of the figure about certificates, of the first one to end."""
    broker, end = min(ends.items(), key=lambda item: item[1])
    days = (end - now).days
    remark = f"until {end:%Y-%m-%d}, broker {broker} first"
    return f"{days} d" if days >= 0 else "expired", remark, certificate_tone(days)


def certificate_tone(days: int) -> str:
    """`bad`, `warn` or empty, by the days that a certificate is still valid."""
    return "bad" if days < _CERTIFICATE_DAYS_BAD else "warn" if days < _CERTIFICATE_DAYS_WARN else ""


def volume_tone(used: float) -> str:
    """`bad`, `warn` or empty, by the used share of a volume."""
    return "bad" if used > _VOLUME_FULL else "warn" if used > _VOLUME_FILLING else ""


def overview(
    state: ClusterState,
    summary: Summary,
    coordination: CoordinationState | None,
    certificates: Mapping[int, datetime] | None = None,
) -> Html:
    epoch = coordination.controller_epoch if coordination else None
    controller: object = "none"
    if state.controller >= 0:
        controller = tag("a", f"broker {state.controller}", href=link("brokers", str(state.controller)))
    return together(
        tag(
            "div",
            tag("i", cls=f"dot {summary.level}"),
            tag("span", summary.sentence),
            cls=f"card health {summary.level}",
            role="status",
        ),
        tag(
            "div",
            figure("Controller", controller, f"epoch {epoch}" if epoch is not None else "epoch not known"),
            figure("Brokers", summary.brokers, f"{len(summary.missing)} down" if summary.missing else "all up"),
            figure("Topics", tag("a", count(summary.topics), href="/topics"), plural(summary.partitions, "partition")),
            figure(
                "Offline",
                _problem_link(summary.offline, OFFLINE),
                "partitions without a leader",
                "bad" if summary.offline else "",
            ),
            figure(
                "Under-replicated",
                _problem_link(summary.under_replicated, UNDER_REPLICATED),
                together(
                    _problem_link(summary.at_min_isr, AT_MIN_ISR),
                    " at min ISR, ",
                    _problem_link(summary.under_min_isr, UNDER_MIN_ISR),
                    " below",
                ),
                "warn" if summary.under_replicated else "",
            ),
            figure(
                "Leader imbalance",
                f"{summary.imbalance:.0%}",
                together(_problem_link(summary.not_preferred, NOT_PREFERRED), " not led by the preferred"),
                "warn" if summary.not_preferred else "",
            ),
            figure("Certificates", *certificates_text(certificates, datetime.now(UTC))) if certificates else None,
            cls="grid",
        ),
    )


def _problem_link(number: int, problem: str) -> Html:
    return tag("a", count(number), href=link("topics", problem=problem))


def plots(traffic: TrafficState | None) -> Html:
    points = traffic.points if traffic else ()
    span = f"the last {duration_text(points[-1].at_ms - points[0].at_ms)}" if len(points) > 1 else ""
    records = [sum(point.records.values()) for point in points]
    drawn = [plot("Records in", rate(_last(records)), records, rate(max(records, default=0.0)), span)]
    if traffic is None or traffic.has_metrics:
        for title, values in (
            ("Bytes in", [sum(point.bytes_in.values()) for point in points]),
            ("Bytes out", [sum(point.bytes_out.values()) for point in points]),
        ):
            drawn.append(
                plot(title, size_text(_last(values), "/s"), values, size_text(max(values, default=0.0), "/s"), span)
            )
    else:
        hint = "No broker reports its bytes per second; an Odradek broker does with odradek.metrics.port set."
        drawn.append(
            tag("div", tag("div", "Bytes in and out", cls="soft"), tag("p", hint, cls="note"), cls="card plot")
        )
    return tag("div", drawn, cls="grid wide")


def _last(values: Sequence[float]) -> float | None:
    return values[-1] if values else None


def broker_table(rows: Sequence[BrokerRow], *, metrics: bool) -> Html:
    columns = [
        Column("Broker"),
        Column("Address", small=False),
        Column("Rack", small=False),
        Column("Leaders", numeric=True),
        Column("Replicas", numeric=True),
        Column("Out of sync", numeric=True),
        Column("Records in", numeric=True),
        *([Column("In", numeric=True, small=False), Column("Out", numeric=True, small=False)] if metrics else []),
        Column("On disk", numeric=True),
        Column("Volume", small=False),
        Column("Uptime", numeric=True, small=False),
    ]
    return table(columns, [_broker_cells(row, metrics) for row in rows], empty="No broker is known yet.")


def _broker_cells(row: BrokerRow, metrics: bool) -> list[object]:
    name = together(
        tag("a", tag("b", row.id), href=link("brokers", str(row.id)), cls="name"),
        " ",
        chip("controller", "accent") if row.is_controller else None,
        None if row.is_live else chip("down", "bad"),
    )
    volume: object = "–"
    if row.volume_bytes and row.free_bytes is not None:
        used = 1 - row.free_bytes / row.volume_bytes
        volume = together(
            meter(used, f"{size_text(row.free_bytes)} of {size_text(row.volume_bytes)} free", volume_tone(used)),
            tag("div", f"{size_text(row.free_bytes)} free", cls="faint small nowrap"),
        )
    leads = together(
        tag("a", count(row.leads), href=link("brokers", str(row.id), role="leader")),
        tag("span", f" / {row.preferred}", cls="faint", title="of which it is the preferred leader of"),
    )
    return [
        name,
        tag("span", row.address, cls="mono"),
        row.rack or "–",
        leads,
        tag("a", count(row.replicas), href=link("brokers", str(row.id))),
        tag(
            "a",
            count(row.out_of_sync),
            cls="warn" if row.out_of_sync else "",
            href=link("brokers", str(row.id), role="out"),
        ),
        rate(row.records),
        *([size_text(row.bytes_in, "/s"), size_text(row.bytes_out, "/s")] if metrics else []),
        size_text(row.used_bytes),
        volume,
        duration_text(row.up_ms),
    ]


def cluster_acts(summary: Summary, *, read_only: bool) -> Html:
    if read_only:
        return Html("")
    return button("Elect preferred leaders", "elect", disabled=not summary.not_preferred)


def changes_table(changes: Sequence[Change]) -> Html:
    rows = [
        (
            clock_time(change.at_ms),
            change.who,
            change.what,
            tag("span", change.outcome, cls="bad" if change.outcome.startswith("failed") else ""),
        )
        for change in changes[:20]
    ]
    columns = [Column("When"), Column("Who", small=False), Column("What"), Column("Outcome")]
    return table(columns, rows, empty="Nothing was changed through this console since it started.")

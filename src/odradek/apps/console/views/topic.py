"""One topic: every partition as a strip with a lane for each replica; its configuration; its consumer groups."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from odradek.apps.console.markup import Html, link, tag, together
from odradek.apps.console.readings.storage import StorageState
from odradek.apps.console.readings.topic import TopicDetail
from odradek.apps.console.views.groups import state_chip
from odradek.apps.console.views.parts import Column, chip, figure, paged, pager, replica_role, table
from odradek.apps.figures import count, plural, size_text
from odradek.client.cluster_client import PartitionState
from odradek.model.topology import TopicPartition


@dataclass(frozen=True, slots=True)
class Lane:
    """A replica; `begin` and `end` are shares of the strip's width."""

    broker: int
    role: str
    is_preferred: bool
    start_offset: int | None
    end_offset: int | None
    behind: int | None
    """Lag behind the leader, in records."""
    begin: float
    end: float


@dataclass(frozen=True, slots=True)
class Strip:
    partition: int
    leader: int
    leader_epoch: int
    high_watermark: int | None
    mark: float | None
    lanes: tuple[Lane, ...]
    size_bytes: int | None
    last_stable: int | None = None

    @property
    def isr(self) -> str:
        return ",".join(str(lane.broker) for lane in self.lanes if lane.role in ("leader", "isr"))


def strips(detail: TopicDetail, storage: StorageState | None, window: slice) -> list[Strip]:
    return [_strip(detail, partition, storage) for partition in detail.topic.partitions[window]]


def _strip(detail: TopicDetail, partition: PartitionState, storage: StorageState | None) -> Strip:
    number = partition.partition
    offsets = {broker: detail.replicas[number, broker] for broker in partition.replicas}
    high = detail.high_watermarks.get(number)
    known = [o for replica in offsets.values() for o in (replica.start, replica.end) if o is not None]
    low, top = min(known, default=0), max([*known, high or 0])
    span = max(top - low, 1)
    leader_end = offsets[partition.leader].end if partition.leader in offsets else None
    offline = frozenset(partition.offline_replicas)
    lanes = []
    for broker in partition.replicas:
        replica = offsets[broker]
        lanes.append(
            Lane(
                broker=broker,
                role=replica_role(broker, partition.leader, partition.isr, offline),
                is_preferred=broker == partition.replicas[0],
                start_offset=replica.start,
                end_offset=replica.end,
                behind=None if replica.end is None or leader_end is None else max(0, leader_end - replica.end),
                begin=0.0 if replica.start is None else (replica.start - low) / span,
                end=0.0 if replica.end is None else (replica.end - low) / span,
            )
        )
    size_bytes = None
    if storage is not None:
        size_bytes = storage.sizes.get((TopicPartition(detail.topic.name, number), partition.leader))
    mark = None if high is None else (high - low) / span
    stable = detail.last_stable.get(number)
    return Strip(number, partition.leader, partition.leader_epoch, high, mark, tuple(lanes), size_bytes, stable)


def topic_figures(detail: TopicDetail, storage: StorageState | None, rate: str) -> Html:
    partitions = detail.topic.partitions
    under = sum(partition.is_under_replicated for partition in partitions)
    offline = sum(not partition.is_available for partition in partitions)
    starts = [_start(detail, partition) for partition in partitions]
    records = sum(
        max(0, detail.high_watermarks.get(p.partition, 0) - start) for p, start in zip(partitions, starts, strict=True)
    )
    return tag(
        "div",
        figure(
            "Partitions",
            count(len(partitions)),
            f"{plural(max((len(p.replicas) for p in partitions), default=0), 'replica')} each",
        ),
        figure("Records held", count(records), "first to last offset"),
        figure("Rate", rate, "records in"),
        figure("On disk", size_text(storage.topic_bytes.get(detail.topic.name) if storage else None), "all replicas"),
        figure("Under-replicated", count(under), "partitions", "warn" if under else ""),
        figure("Offline", count(offline), "partitions", "bad" if offline else ""),
        cls="grid",
    )


def _start(detail: TopicDetail, partition: PartitionState) -> int:
    starts = [detail.replicas[partition.partition, broker].start for broker in partition.replicas]
    return min((start for start in starts if start is not None), default=0)


def strips_html(detail: TopicDetail, storage: StorageState | None, page_number: int) -> Html:
    page = paged(len(detail.topic.partitions), page_number)
    drawn = [_strip_html(detail.topic.name, strip) for strip in strips(detail, storage, page.window)]
    return together(_legend(), tag("div", drawn, cls="card table"), pager(page))


def partitions_html(detail: TopicDetail, storage: StorageState | None, page_number: int) -> Html:
    """The partitions as a table, a line each."""
    page = paged(len(detail.topic.partitions), page_number)
    drawn = strips(detail, storage, page.window)
    titles = ("Partition", "Leader", "Replicas", "Offsets", "Follower lag", "Last stable offset", "Size")
    head = tag("tr", [tag("th", title, cls=_cls(title), scope="col") for title in titles])
    rows = [_partition_row(detail.topic.name, strip, titles) for strip in drawn]
    shown = tag("table", tag("thead", head), tag("tbody", rows), cls="rows")
    return together(_legend(bars=False), tag("div", shown, cls="card table"), pager(page))


_NUMERIC = frozenset({"Offsets", "Follower lag", "Last stable offset", "Size"})
_WIDE = frozenset({"Follower lag", "Size"})


def _cls(title: str) -> str:
    return " ".join(filter(None, ["n" if title in _NUMERIC else "", "hide-small" if title in _WIDE else ""]))


def _partition_row(topic: str, strip: Strip, titles: Sequence[str]) -> Html:
    messages = link("messages", topic=topic, partition=strip.partition)
    leader: object = chip("none", "bad")
    if strip.leader >= 0:
        leader = together(
            tag("a", strip.leader, href=link("brokers", str(strip.leader)), cls="b leader"),
            tag("small", f" epoch {strip.leader_epoch}", cls="faint"),
        )
    starts = [lane.start_offset for lane in strip.lanes if lane.start_offset is not None]
    behind = max((lane.behind or 0 for lane in strip.lanes), default=0)
    held = strip.high_watermark is not None and (strip.last_stable or 0) < strip.high_watermark
    stable = tag("span", count(strip.last_stable), cls="warn" if held else "soft")
    cells = (
        tag("a", strip.partition, href=messages, cls="name", title="Browse its records"),
        leader,
        tag("span", [_mark(lane) for lane in strip.lanes], cls="bs"),
        tag("span", f"{min(starts, default=0):,} … {count(strip.high_watermark)}", cls="figures mono"),
        tag("span", count(behind), cls="warn" if behind else "soft"),
        stable,
        size_text(strip.size_bytes),
    )
    return tag(
        "tr",
        [tag("td", cell, cls=_cls(title)) for title, cell in zip(titles, cells, strict=True)],
        data_partition=strip.partition,
        data_leader=strip.leader,
        data_isr=strip.isr,
    )


def _mark(lane: Lane) -> Html:
    star = " ★ preferred" if lane.is_preferred else ""
    reach = f"log start {lane.start_offset}, end {lane.end_offset}"
    title = f"broker {lane.broker}: {_SAID.get(lane.role, 'offline')}, {reach}{star}"
    return tag("a", lane.broker, cls=f"b {lane.role}", title=title, href=link("brokers", str(lane.broker)))


def _legend(*, bars: bool = True) -> Html:
    return tag(
        "div",
        tag("span", tag("span", "0", cls="b leader"), "leader"),
        tag("span", tag("span", "0", cls="b isr"), "in sync"),
        tag("span", tag("span", "0", cls="b out"), "out of sync"),
        tag("span", tag("span", "0", cls="b offline"), "offline"),
        tag("span", "★ preferred leader") if bars else tag("span", "the first replica is the preferred leader"),
        tag("span", "│ high watermark: consumers read up to here") if bars else None,
        cls="legend",
    )


def _strip_html(topic: str, strip: Strip) -> Html:
    leader = "no leader" if strip.leader < 0 else f"epoch {strip.leader_epoch}"
    return tag(
        "div",
        tag(
            "div",
            tag(
                "a",
                strip.partition,
                href=link("messages", topic=topic, partition=strip.partition),
                title="Browse its records",
            ),
            tag("small", leader, cls="bad" if strip.leader < 0 else ""),
            tag("small", size_text(strip.size_bytes)) if strip.size_bytes is not None else None,
            cls="id",
        ),
        tag("div", [_lane_html(lane, strip) for lane in strip.lanes]),
        cls="strip",
        data_partition=strip.partition,
        data_leader=strip.leader,
        data_isr=strip.isr,
    )


_SAID = {"leader": "leads", "isr": "in sync", "out": "out of sync"}


def _lane_html(lane: Lane, strip: Strip) -> Html:
    fill = f"left:{lane.begin * 100:.2f}%;width:{max(0.0, lane.end - lane.begin) * 100:.2f}%"
    mark = None if strip.mark is None else tag("i", cls="mark", style=f"left:calc({strip.mark * 100:.2f}% - 2px)")
    if lane.end_offset is None:
        said: object = "does not answer" if lane.role == "offline" else "–"
    else:
        lag = tag("span", f" −{lane.behind:,}", cls="warn") if lane.behind else None
        said = together(tag("span", f"{lane.start_offset or 0:,} … ", cls="from"), f"{lane.end_offset:,}", lag)
    reach = f"log start {lane.start_offset}, end {lane.end_offset}, high watermark {strip.high_watermark}"
    tip = f"broker {lane.broker}: {reach}"
    return tag(
        "div",
        tag(
            "span",
            tag("span", lane.broker, cls=f"b {lane.role}"),
            tag("span", _SAID.get(lane.role, "offline"), cls="soft"),
            tag("span", "★", cls="star accent", title="preferred leader") if lane.is_preferred else None,
            cls="who",
        ),
        tag("div", tag("i", cls="fill", style=fill), mark, cls="track"),
        tag("span", said, cls="figures"),
        cls=f"lane {lane.role}",
        title=tip,
    )


def consumers_html(lags: Mapping[str, tuple[str, int | None]]) -> Html:
    """Table of groups with their state and their lag in this topic."""
    rows = [
        (tag("a", group, cls="name", href=link("groups", group)), state_chip(state), count(lag))
        for group, (state, lag) in sorted(lags.items())
    ]
    return table(
        [Column("Group"), Column("State"), Column("Lag", numeric=True)], rows, empty="No group has read this topic."
    )

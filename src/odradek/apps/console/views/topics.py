"""All topics, one row each: searched, sorted and paged here, so that the browser never gets more than one page."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from odradek.apps.console.markup import Html, link, tag, together
from odradek.apps.console.readings.cluster import ClusterState
from odradek.apps.console.readings.settings import TopicSettings
from odradek.apps.console.readings.storage import StorageState
from odradek.apps.console.readings.traffic import TrafficState
from odradek.apps.console.views.health import PROBLEMS, min_isr, problems_of
from odradek.apps.console.views.parts import Column, chip, paged, pager, spark, table
from odradek.apps.figures import count, rate, retention, size_text
from odradek.client.cluster_client import TopicState


@dataclass(frozen=True, slots=True)
class TopicRow:
    name: str
    is_internal: bool
    partitions: int
    replication: int
    offline: int
    under_replicated: int
    records: int | None
    rates: tuple[float, ...]
    bytes: int | None
    retention_ms: str | None
    retention_bytes: str | None
    cleanup: str

    @property
    def rate(self) -> float | None:
        return self.rates[-1] if self.rates else None


@dataclass(frozen=True, slots=True)
class Search:
    text: str = ""
    internal: bool = False
    sort: str = "name"
    page: int = 1
    problem: str = ""
    """Filter: topics with a partition of that problem."""

    @property
    def address(self) -> dict[str, object]:
        """The search as parameters of an address; empty ones are omitted."""
        return {
            "q": self.text,
            "problem": self.problem,
            "sort": None if self.sort == "name" else self.sort,
            "at": None if self.page == 1 else self.page,
            "internal": "1" if self.internal and not self.problem else None,
        }


_SORTS: dict[str, Callable[[TopicRow], float | str]] = {
    "name": lambda row: row.name,
    "partitions": lambda row: row.partitions,
    "rate": lambda row: row.rate or 0.0,
    "bytes": lambda row: row.bytes or 0,
    "records": lambda row: row.records or 0,
    "trouble": lambda row: row.offline * 1_000_000 + row.under_replicated,
}


def topic_rows(
    state: ClusterState,
    settings: TopicSettings | None,
    storage: StorageState | None,
    traffic: TrafficState | None,
    search: Search,
) -> list[TopicRow]:
    """Return the topics that match the search, in order."""
    ends: dict[str, int] = {}
    for tp, end in (traffic.ends if traffic else {}).items():
        ends[tp.topic] = ends.get(tp.topic, 0) + end
    wanted = search.text.lower().split()
    rows = []
    for topic in state.topics.values():
        lowered = topic.name.lower()
        if (topic.is_internal and not search.internal) or not all(word in lowered for word in wanted):
            continue
        own = (settings or {}).get(topic.name, {})
        if search.problem and not _has(topic, search.problem, min_isr(own)):
            continue
        rows.append(
            TopicRow(
                name=topic.name,
                is_internal=topic.is_internal,
                partitions=len(topic.partitions),
                replication=max((len(partition.replicas) for partition in topic.partitions), default=0),
                offline=sum(not partition.is_available for partition in topic.partitions),
                under_replicated=sum(partition.is_under_replicated for partition in topic.partitions),
                records=ends.get(topic.name),
                rates=traffic.topic_rates.get(topic.name, ()) if traffic else (),
                bytes=storage.topic_bytes.get(topic.name) if storage else None,
                retention_ms=own.get("retention.ms"),
                retention_bytes=own.get("retention.bytes"),
                cleanup=own.get("cleanup.policy", ""),
            )
        )
    key = search.sort.removeprefix("-")
    rows.sort(key=lambda row: row.name)
    rows.sort(key=_SORTS.get(key, _SORTS["name"]), reverse=search.sort.startswith("-"))
    return rows


def _has(topic: TopicState, problem: str, needed: int) -> bool:
    return any(problem in problems_of(partition, needed) for partition in topic.partitions)


def topics_table(rows: Sequence[TopicRow], search: Search) -> Html:
    page = paged(len(rows), search.page)
    columns = [
        Column("Topic", sort="name"),
        Column("Partitions", numeric=True, sort="partitions"),
        Column("Replicas", numeric=True, small=False),
        Column("Health", sort="trouble"),
        Column("Records", numeric=True, sort="records", small=False),
        Column("Rate", numeric=True, sort="rate"),
        Column("", small=False),
        Column("On disk", numeric=True, sort="bytes"),
        Column("Retention", small=False),
    ]
    cells = [_cells(row) for row in rows[page.window]]
    empty = "No topic has that in its name." if search.text else "There is no topic yet."
    if search.problem:
        empty = f"No topic has a partition that is {PROBLEMS[search.problem]}."
    return together(table(columns, cells, empty=empty, sorted_by=search.sort), pager(page))


def _cells(row: TopicRow) -> list[object]:
    kept = "compacted" if "compact" in row.cleanup else retention(row.retention_ms, "ms")
    if row.retention_bytes not in (None, "", "-1") and "compact" not in row.cleanup:
        kept = f"{kept}, {retention(row.retention_bytes, 'bytes')}"
    return [
        tag("a", row.name, cls="name", href=link("topics", row.name)),
        count(row.partitions),
        row.replication,
        health_chip(row),
        count(row.records),
        rate(row.rate),
        spark(row.rates),
        size_text(row.bytes),
        kept,
    ]


def health_chip(row: TopicRow) -> Html:
    if row.offline:
        return chip(f"{row.offline} offline", "bad")
    if row.under_replicated:
        return chip(f"{row.under_replicated} under-replicated", "warn")
    return chip("in sync", "ok")

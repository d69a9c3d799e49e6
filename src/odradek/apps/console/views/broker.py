"""One broker: its load, its log directories, and the partitions that it leads or follows."""

from collections.abc import Mapping
from datetime import UTC, datetime

from odradek.apps.console.markup import Html, link, tag, together
from odradek.apps.console.readings.cluster import ClusterState
from odradek.apps.console.readings.storage import StorageState
from odradek.apps.console.views.cluster import BrokerRow, certificates_text
from odradek.apps.console.views.parts import Column, chip, figure, meter, paged, pager, replica_role, table
from odradek.apps.figures import count, duration_text, rate, size_text
from odradek.base.errors import ErrorCode
from odradek.model.topology import TopicPartition

_ROLES = {"leader": "accent", "isr": "ok", "out": "warn", "offline": "bad"}


def broker_figures(row: BrokerRow, certificates: Mapping[int, datetime] | None) -> Html:
    end = (certificates or {}).get(row.id)
    state = chip("up", "ok") if row.is_live else chip("down", "bad")
    role = "controller" if row.is_controller else f"rack {row.rack}" if row.rack else "no rack"
    return tag(
        "div",
        figure("State", state, role),
        figure("Address", tag("span", row.address or "–", cls="mono small"), f"up {duration_text(row.up_ms)}"),
        figure("Leaders", count(row.leads), f"preferred leader of {count(row.preferred)}"),
        figure(
            "Replicas",
            count(row.replicas),
            f"{count(row.out_of_sync)} out of sync",
            "warn" if row.out_of_sync else "",
        ),
        figure("Records in", rate(row.records), f"{size_text(row.bytes_in, '/s')} in" if row.bytes_in else None),
        figure("On disk", size_text(row.used_bytes), f"{size_text(row.free_bytes)} free"),
        _certificate(row.id, end) if end else None,
        cls="grid",
    )


def _certificate(broker: int, end: datetime) -> Html:
    value, _, tone = certificates_text({broker: end}, datetime.now(UTC))
    return figure("Certificate", value, f"until {end:%Y-%m-%d}", tone)


def directories_html(storage: StorageState | None, broker: int) -> Html:
    held = [directory for directory in storage.directories if directory.broker == broker] if storage else []
    rows = [
        (
            tag("span", directory.path, cls="mono"),
            count(len(directory.replicas)),
            size_text(directory.size),
            _volume(directory.total_bytes, directory.usable_bytes),
            chip("ok", "ok") if directory.error is ErrorCode.NONE else chip(directory.error.name, "bad"),
        )
        for directory in held
    ]
    columns = [
        Column("Log directory"),
        Column("Replicas", numeric=True),
        Column("Size", numeric=True),
        Column("Volume", small=False),
        Column("State"),
    ]
    return table(columns, rows, empty="The log directories can't be read, or the broker is down.")


def _volume(total: int | None, usable: int | None) -> object:
    if not total or usable is None:
        return "–"
    text = f"{size_text(usable)} of {size_text(total)} free"
    return together(meter(1 - usable / total, text), tag("div", text, cls="faint small nowrap"))


def held_html(state: ClusterState, storage: StorageState | None, broker: int, role: str, page_number: int) -> Html:
    """The partitions with a replica on the broker; `role`: only those, or all where it is empty."""
    found = []
    for topic in state.topics.values():
        for partition in topic.partitions:
            if broker not in partition.replicas:
                continue
            has = replica_role(broker, partition.leader, partition.isr, frozenset(partition.offline_replicas))
            if role in ("", has):
                found.append((TopicPartition(topic.name, partition.partition), has, partition.leader))
    found.sort()
    page = paged(len(found), page_number)
    sizes = storage.sizes if storage else {}
    rows = [
        (
            tag("a", tp.topic, cls="name", href=link("topics", tp.topic)),
            tag("a", tp.partition, href=link("messages", topic=tp.topic, partition=tp.partition)),
            chip(_SAID[has], _ROLES[has]),
            "none" if leader < 0 else tag("a", leader, href=link("brokers", str(leader))),
            size_text(sizes.get((tp, broker))),
        )
        for tp, has, leader in found[page.window]
    ]
    columns = [
        Column("Topic"),
        Column("Partition", numeric=True),
        Column("Role"),
        Column("Leader", numeric=True),
        Column("Size", numeric=True),
    ]
    return together(table(columns, rows, empty="No partition."), pager(page))


_SAID = {"leader": "leader", "isr": "in sync", "out": "out of sync", "offline": "offline"}
ROLE_CHOICES = {"": "all", **_SAID}

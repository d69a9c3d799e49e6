"""Consumer groups: all of them, and one with its members, its lag and its observed changes."""

from collections.abc import Sequence

from odradek.apps.console.markup import Html, link, tag, together
from odradek.apps.console.rate_history import RateHistory
from odradek.apps.console.readings.group_changes import Seen
from odradek.apps.console.readings.groups import GroupDetail, GroupsState
from odradek.apps.console.views.parts import Column, chip, figure, meter, paged, pager, spark, table
from odradek.apps.figures import clock_time, count, duration_text, plural
from odradek.broker.recorder.core.entry import Entry
from odradek.broker.recorder.rebalances import Rebalances
from odradek.client.group_admin import Group, GroupListing
from odradek.client.offset_reset import Move
from odradek.model.topology import TopicPartition

_PARTITIONS_SHOWN = 12
_MINUTES_DRAWN = 30
_EMPTY = "Empty"
_LATE_MS = 60_000
_NOWHERE = TopicPartition("", 0)


def groups_table(
    state: GroupsState, rebalances: Rebalances | None, history: RateHistory, text: str, number: int
) -> Html:
    """Table of groups, with the last rebalance of each where the journals have it, and the lag of half an hour."""
    words = text.lower().split()
    found = [group for group in state.groups if all(word in group.group.lower() for word in words)]
    page = paged(len(found), number)
    rows = [
        _group_cells(
            group,
            state.lags.get(group.group),
            history.latest(group.group, _MINUTES_DRAWN),
            rebalances.of(group.group) if rebalances else (),
        )
        for group in found[page.window]
    ]
    columns = [
        Column("Group"),
        Column("State"),
        Column("Kind", small=False),
        Column("Last rebalance", small=False),
        Column("", small=False),
        Column("Lag", numeric=True),
    ]
    empty = "No group has that in its name." if text else "No group has consumed anything yet."
    return together(table(columns, rows, empty=empty), pager(page))


def _group_cells(
    group: GroupListing, lag: int | None, minutes: Sequence[float], rebalances: Sequence[Entry]
) -> list[object]:
    is_left_behind = bool(lag) and group.state == _EMPTY
    return [
        tag("a", group.group, cls="name", href=link("groups", group.group)),
        state_chip(group.state),
        group.protocol_type or "offsets only",
        tag("span", _last_rebalance(rebalances), cls="soft"),
        tag("span", spark(minutes), title="its lag, minute by minute"),
        tag(
            "span",
            count(lag),
            cls="warn" if is_left_behind else "",
            title="no member reads them" if is_left_behind else None,
        ),
    ]


def _last_rebalance(rebalances: Sequence[Entry]) -> str:
    if not rebalances:
        return "–"
    first, *more = (rebalances[-1].text or "").split("; ")
    return f"{clock_time(rebalances[-1].time_ms)}  {first}{f', and {len(more)} more' if more else ''}"


def state_chip(state: str) -> Html:
    tone = {"Stable": "ok", "Empty": "", "Dead": ""}.get(state, "warn")
    return chip(state or "–", tone)


def group_figures(detail: GroupDetail) -> Html:
    group = detail.group
    lag = sum(lag.lag or 0 for lag in detail.lags)
    worst = max(detail.ages_ms.values(), default=0 if not lag else None)
    return tag(
        "div",
        figure("State", state_chip(group.state), group.assignor or "no assignor"),
        figure(
            "Coordinator",
            tag("a", f"broker {group.coordinator}", href=link("brokers", str(group.coordinator))),
            "{}:{}".format(*group.coordinator_address),
        ),
        figure(
            "Members",
            count(len(group.members)),
            plural(len({t for m in group.members for t in m.partitions}), "partition") + " read",
        ),
        figure("Lag", count(lag), _lag_remark(detail), _tone(lag, worst)),
        figure("Lag in time", duration_text(worst), "the oldest record not yet read", _tone(lag, worst)),
        cls="grid",
    )


def _lag_remark(detail: GroupDetail) -> str:
    """Return the number of partitions with unknown lag, because nothing was committed there."""
    uncommitted = sum(lag.tp is not None and lag.committed is None for lag in detail.lags)
    return f"records + {plural(uncommitted, 'partition')} without a commit" if uncommitted else "records"


def _tone(lag: int | None, age_ms: int | None) -> str:
    """Colour of a lag: a few records are normal; records that wait for a minute are a warning."""
    return "warn" if lag and (age_ms is None or age_ms > _LATE_MS) else ""


def members_table(group: Group, number: int) -> Html:
    page = paged(len(group.members), number)
    rows = [
        (
            tag("b", member.client_id),
            tag("span", member.host.lstrip("/"), cls="mono"),
            tag("span", member.instance_id or "–", cls="mono"),
            count(len(member.partitions)),
            tag("span", _partitions(member.partitions), cls="mono soft", title=member.id),
        )
        for member in sorted(group.members, key=lambda member: (member.client_id, member.id))[page.window]
    ]
    columns = [
        Column("Client"),
        Column("Host", small=False),
        Column("Static id", small=False),
        Column("Partitions", numeric=True),
        Column("Which"),
    ]
    return together(table(columns, rows, empty="The group has no active members."), pager(page))


def _partitions(partitions: Sequence[TopicPartition]) -> Html:
    if not partitions:
        return Html("none")
    shown = [
        tag("a", str(tp), cls="nowrap", href=link("messages", topic=tp.topic, partition=tp.partition))
        for tp in partitions[:_PARTITIONS_SHOWN]
    ]
    more = len(partitions) - _PARTITIONS_SHOWN
    return together(Html(", ").join(shown), f", … {more} more" if more > 0 else None)


def lags_table(detail: GroupDetail, number: int) -> Html:
    lags = sorted((lag for lag in detail.lags if lag.tp is not None), key=lambda lag: lag.tp or _NOWHERE)
    top = max([lag.lag or 0 for lag in lags] or [0])
    page = paged(len(lags), number)
    rows = [
        (
            tag(
                "a",
                str(lag.tp),
                cls="name",
                href=link("messages", topic=lag.tp.topic, partition=lag.tp.partition, offset=lag.committed),
            )
            if lag.tp
            else "",
            count(lag.committed),
            count(lag.end),
            tag("span", count(lag.lag), cls=_tone(lag.lag, detail.ages_ms.get(lag.tp)) if lag.tp else ""),
            meter((lag.lag or 0) / top if top else 0),
            duration_text(detail.ages_ms.get(lag.tp)) if lag.tp else "",
            tag("span", lag.member.client_id if lag.member else "–", cls="" if lag.member else "faint"),
        )
        for lag in lags[page.window]
    ]
    columns = [
        Column("Partition"),
        Column("Committed", numeric=True, small=False),
        Column("End", numeric=True, small=False),
        Column("Lag", numeric=True),
        Column("", small=False),
        Column("In time", numeric=True),
        Column("Read by", small=False),
    ]
    return together(table(columns, rows, empty="The group has committed nothing."), pager(page))


def rebalances_table(rebalances: Sequence[Entry]) -> Html:
    """Rebalances as the coordinators recorded them, newest first."""
    rows = [
        (
            clock_time(entry.time_ms),
            tag("b", count(entry.generation)),
            count(entry.count),
            [tag("div", cause) for cause in (entry.text or "").split("; ")],
            tag("a", f"broker {entry.broker}", href=link("brokers", str(entry.broker))),
        )
        for entry in reversed(rebalances)
    ]
    columns = [
        Column("When"),
        Column("Generation", numeric=True, small=False),
        Column("Members", numeric=True),
        Column("Why"),
        Column("Coordinator", small=False),
    ]
    return table(columns, rows)


def seen_table(seen: Sequence[Seen]) -> Html:
    rows = [(clock_time(item.at_ms), item.what) for item in reversed(seen)]
    return table(
        [Column("When"), Column("What was seen")],
        rows,
        empty="No change of the group since this page was opened.",
    )


def moves_table(moves: Sequence[Move]) -> Html:
    """The preview of a reset."""
    rows = [
        (
            str(move.tp),
            count(move.old),
            tag("b", count(move.new)),
            count(move.old_lag),
            count(move.new_lag),
            chip("clamped", "warn") if move.is_clamped else "",
        )
        for move in moves[:200]
    ]
    columns = [
        Column("Partition"),
        Column("From", numeric=True),
        Column("To", numeric=True),
        Column("Lag", numeric=True),
        Column("Lag then", numeric=True),
        Column(""),
    ]
    return table(columns, rows, empty="Nothing would change.")

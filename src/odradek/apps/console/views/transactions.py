"""Transactions as tables: ids with their states, one with its partitions, the ones that hold readers back."""

from collections.abc import Sequence

from odradek.apps.console.markup import Html, link, tag, together
from odradek.apps.console.readings.topic import HeldBack, TopicDetail
from odradek.apps.console.readings.transactions import TransactionDetail
from odradek.apps.console.views.parts import Column, button, chip, figure, paged, pager, table
from odradek.apps.figures import count, duration_text, moment
from odradek.client.transaction_admin import OpenTransaction, TransactionListing

_TONES = {"Ongoing": "accent", "PrepareCommit": "warn", "PrepareAbort": "warn", "Dead": "bad"}
ABORTABLE = "Ongoing"


def state_of(state: str) -> Html:
    return chip(state, _TONES.get(state, ""))


def matching(listings: Sequence[TransactionListing], text: str, state: str) -> list[TransactionListing]:
    words = text.lower().split()
    return [
        each
        for each in listings
        if state in ("", each.state)
        and all(word in f"{each.transactional_id} {each.producer_id}".lower() for word in words)
    ]


def transactions_table(listings: Sequence[TransactionListing], text: str, state: str, page_number: int) -> Html:
    found = matching(listings, text, state)
    window = paged(len(found), page_number)
    columns = [
        Column("Transactional id"),
        Column("State"),
        Column("Producer id", numeric=True),
        Column("Coordinator", numeric=True, small=False),
    ]
    rows = [
        (
            tag("a", each.transactional_id, cls="name", href=link("transactions", each.transactional_id)),
            state_of(each.state),
            each.producer_id,
            tag("a", f"broker {each.coordinator}", href=link("brokers", str(each.coordinator))),
        )
        for each in found[window.window]
    ]
    empty = "No transactional id matches." if listings else "No producer with a transactional id was seen yet."
    return together(table(columns, rows, empty=empty), pager(window))


def transaction_html(detail: TransactionDetail) -> Html:
    transaction = detail.transaction
    is_open = bool(transaction.partitions) and transaction.start_ms > 0
    running = duration_text(detail.at_ms - transaction.start_ms) if is_open else "–"
    rows = [
        (
            tag("a", tp.topic, cls="name", href=link("topics", tp.topic)),
            tag("a", tp.partition, href=link("messages", topic=tp.topic, partition=tp.partition)),
        )
        for tp in sorted(transaction.partitions)
    ]
    return together(
        tag(
            "div",
            figure("State", state_of(transaction.state)),
            figure("Running", running, f"since {moment(transaction.start_ms)}" if is_open else "no open transaction"),
            figure("Timeout", duration_text(transaction.timeout_ms), "then the coordinator aborts it"),
            figure("Producer", transaction.producer_id, f"epoch {transaction.producer_epoch}"),
            figure(
                "Coordinator",
                tag("a", f"broker {transaction.coordinator}", href=link("brokers", str(transaction.coordinator))),
            ),
            cls="grid",
        ),
        tag("h2", "Partitions"),
        table([Column("Topic"), Column("Partition")], rows, empty="No partition is in a transaction of this id."),
    )


def hanging_table(found: Sequence[OpenTransaction], now_ms: int, *, read_only: bool) -> Html:
    columns = [
        Column("Partition"),
        Column("Start offset", numeric=True),
        Column("Producer", numeric=True),
        Column("Last record", numeric=True),
        Column(""),
    ]
    rows = [
        (
            tag("a", str(each.partition), href=link("topics", each.partition.topic)),
            _offset(each),
            f"{each.producer_id} epoch {each.producer_epoch}",
            f"{duration_text(now_ms - each.last_timestamp_ms)} ago",
            None if read_only else _abort(each),
        )
        for each in found
    ]
    return table(columns, rows, empty="No transaction hangs.")


def held_back_html(detail: TopicDetail, now_ms: int, *, read_only: bool) -> Html:
    """The open transactions of a topic, where they hold consumers of committed records back."""
    if not detail.open:
        return Html("")
    columns = [
        Column("Partition"),
        Column("Last stable offset", numeric=True),
        Column("Held back", numeric=True),
        Column("Transactional id"),
        Column("Producer", numeric=True, small=False),
        Column("Last record", numeric=True, small=False),
        Column(""),
    ]
    rows = [_held_cells(detail, each, now_ms, read_only=read_only) for each in detail.open[:50]]
    return together(
        tag("h2", "Open transactions"),
        tag(
            "p",
            "Consumers with isolation.level=read_committed read up to the last stable offset: the first record of the "
            "oldest open transaction.",
            cls="note",
        ),
        table(columns, rows),
    )


def _held_cells(detail: TopicDetail, held: HeldBack, now_ms: int, *, read_only: bool) -> list[object]:
    number = held.transaction.partition.partition
    stable, high = detail.last_stable.get(number, 0), detail.high_watermarks.get(number, 0)
    is_first = held.transaction.start_offset == stable
    name: object = (
        chip("not known to a coordinator", "bad")
        if held.transactional_id is None
        else tag("a", held.transactional_id, cls="name", href=link("transactions", held.transactional_id))
    )
    idle = duration_text(max(0, now_ms - held.transaction.last_timestamp_ms))
    return [
        number,
        tag("b" if is_first else "span", count(held.transaction.start_offset)),
        f"{count(high - stable)} records" if is_first else "–",
        name,
        f"{held.transaction.producer_id} epoch {held.transaction.producer_epoch}",
        f"{idle} ago",
        None if read_only else _abort(held.transaction, held.transactional_id or ""),
    ]


def _offset(each: OpenTransaction) -> Html:
    place = link("messages", topic=each.partition.topic, partition=each.partition.partition, offset=each.start_offset)
    return tag("a", count(each.start_offset), href=place)


def _abort(each: OpenTransaction, transactional_id: str = "") -> Html:
    return button(
        "Abort",
        "abort",
        cls="btn small danger",
        partition=each.partition.partition,
        topic=each.partition.topic,
        offset=each.start_offset,
        id=transactional_id,
    )

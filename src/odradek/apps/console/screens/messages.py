"""Messages: search a topic, follow it, export records, and write to it. The search is in the address of the page."""

from dataclasses import replace
from functools import partial

from nicegui import ui

from odradek.apps.console.access import Access
from odradek.apps.console.console import Console
from odradek.apps.console.consoles import Consoles
from odradek.apps.console.feeds import UNREADABLE, plainly
from odradek.apps.console.fields import WrongInput, meaning, whole_number
from odradek.apps.console.live import Act, Live
from odradek.apps.console.markup import Html, tag
from odradek.apps.console.page import before_first_paint, notify, off_loop, page, wait_for_first_paint
from odradek.apps.console.readings.records import EXPORTED_MAX, From, Query, browse
from odradek.apps.console.screens.producing import produce
from odradek.apps.console.views.exports import csv_text, json_lines
from odradek.apps.console.views.record_columns import DEFAULT_COLUMNS, USUAL_LINES, RecordLines, parse_columns
from odradek.apps.console.views.records import parse_when, records_html, tail_html
from odradek.apps.figures import plural
from odradek.apps.records.decoders import AUTO, AVRO, GROUPS, HEX, TEXT, TRANSACTIONS, decoder_named
from odradek.apps.records.filters import parse_filter
from odradek.model.topic_names import OFFSETS_TOPIC, TRANSACTIONS_TOPIC

_TIMEOUT_MS = 10_000
_TICK_S = 0.5
_STARTS = {"newest": "Newest", "oldest": "Oldest", "offset": "From offset", "time": "From time"}
_DECODERS = {
    AUTO: "Automatic",
    TEXT: "Text",
    HEX: "Hex",
    GROUPS: OFFSETS_TOPIC,
    TRANSACTIONS: TRANSACTIONS_TOPIC,
}
_FILTER_HELP = (
    'A word searches everywhere. key = "42" and value.amount > 100; header.trace ~ "^a.*z$"; not (partition = 3 or '
    'value.status in "open closed"). Fields: key, value, value.PATH, header.NAME, partition, offset, timestamp, size. '
    "Comparisons: = != < <= > >= ~ !~ has in."
)
_COLUMNS_HELP = (
    "Names with commas: timestamp, key, value, headers, size, and any field of a filter, such as value.amount, key.id "
    "or header.trace."
)


def register(consoles: Consoles) -> None:
    @ui.page("/messages")
    async def messages_page(
        topic: str = "",
        partition: str = "",
        start: str = "",
        at: str = "",
        offset: str = "",
        filter: str = "",
        decoder: str = AUTO,
        live: str = "",
        columns: str = "",
    ) -> None:
        console = consoles.here()
        if offset:
            start, at = "offset", offset
        with page(console, "Messages"):
            await wait_for_first_paint(console.cluster)
            browser = _Browser(console, topic, partition, start if start in _STARTS else "newest")
            await browser.show(at, filter, decoder, columns, live=bool(live))


class _Browser:
    """The fields of the page, and the search that they describe."""

    def __init__(self, console: Console, topic: str, partition: str, start: str) -> None:
        self._console = console
        reading = console.cluster.want()
        names = sorted(reading.value.topics) if reading.value else []
        names = [*names, topic] if topic and topic not in names else names
        decoders = {**_DECODERS, **{f"{AVRO}{name}": f"Avro: {name}" for name in console.options.schemas}}
        self._heading()
        with ui.element("div").classes("card row-of").style("margin-bottom: 16px"):
            self._topic = ui.select(names, label="Topic", value=topic or None, with_input=True, on_change=self.read)
            self._partition = ui.input("Partition", value=partition, placeholder="all").style("width: 90px")
            self._start = ui.select(_STARTS, label="Start", value=start, on_change=self._shape)
            self._at = ui.input("Offset").style("width: 190px")
            self._filter = ui.input("Filter", placeholder='value.amount > 100 and not key = "42"').style(
                "flex: 2; min-width: 200px"
            )
            with self._filter.add_slot("append"):
                ui.icon("help_outline", size="xs").tooltip(_FILTER_HELP).style("cursor: help")
            self._decoder = ui.select(decoders, label="Decoder", value=AUTO, on_change=self.read)
            self._columns = ui.input("Columns", placeholder=DEFAULT_COLUMNS).style("flex: 1; min-width: 150px")
            self._columns.tooltip(_COLUMNS_HELP)
            for field in (self._topic, self._partition, self._start, self._at, self._filter, self._decoder):
                field.props("outlined dense hide-bottom-space")
            self._columns.props("outlined dense hide-bottom-space")
            for typed in (self._partition, self._at, self._filter, self._columns):
                typed.on("keydown.enter", self.read)
            self._topic.style("min-width: 200px")
            self._button = ui.button("Search", on_click=self.read).props("unelevated no-caps")
        self._shown = Live(on_act=self._go_on)
        self._asked = 0
        self._next: Query | None = None
        self._tailed: tuple[str, Query] | None = None
        self._tail_version = -1
        self._lines = USUAL_LINES

    def _heading(self) -> None:
        with ui.element("div").classes("top"):
            ui.html("<h1>Messages</h1>", sanitize=False).classes("grow")
            self._live = (
                ui.switch("Live", on_change=self.read).props("dense").tooltip("new records as they are written")
            )
            with ui.dropdown_button("Export", auto_close=True).props("outline no-caps"):
                ui.item("JSON lines", on_click=partial(self._export, "jsonl"))
                ui.item("CSV", on_click=partial(self._export, "csv"))
            if not self._console.changes.read_only:
                ui.button("Produce", on_click=self._produce).props("unelevated no-caps")

    async def show(self, at: str, wanted: str, decoder: str, columns: str, *, live: bool) -> None:
        self._at.value, self._filter.value, self._columns.value = at, wanted, columns
        if decoder in (self._decoder.options or {}):
            self._decoder.set_value(decoder)
        self._live.set_value(live)
        self._shape()
        ui.timer(_TICK_S, self._tick)
        if self._topic.value:
            self._shown.show(tag("div", "Reading…", cls="card empty"))
            await before_first_paint(self.read())
        else:
            self._shown.show(tag("div", "Choose a topic.", cls="card empty"))

    def _shape(self) -> None:
        """Show only the fields that the chosen start needs."""
        self._at.set_visibility(self._start.value in ("offset", "time"))
        self._at.label = "Time: 15m ago, or 2026-01-31 14:00" if self._start.value == "time" else "Offset"

    def _query(self) -> Query:
        start = From(self._start.value)
        number = whole_number("a partition's number")
        partition = meaning(self._partition, lambda text: number(text) if text else None)
        now_ms = self._console.feeds.clock.now_ms()
        topic = self._topic.value or ""
        return Query(
            topic=topic,
            partition=partition,
            start=start,
            offset=meaning(self._at, whole_number("an offset")) if start is From.OFFSET else 0,
            time_ms=meaning(self._at, lambda text: parse_when(text, now_ms)) if start is From.TIME else 0,
            filter=meaning(self._filter, parse_filter),
            decoder=decoder_named(self._decoder.value, topic, self._console.options.schemas),
        )

    def _address(self) -> str:
        """Return the address of this search: another one who opens it sees the same."""
        start, decoder = self._start.value, self._decoder.value
        return self._console.address(
            "messages",
            topic=self._topic.value,
            partition=(self._partition.value or "").strip(),
            start=None if start == "newest" else start,
            at=(self._at.value or "").strip() if start in ("offset", "time") else None,
            filter=(self._filter.value or "").strip(),
            decoder=None if decoder == AUTO else decoder,
            live="1" if self._live.value else None,
            columns=(self._columns.value or "").strip(),
        )

    async def read(self) -> None:
        self._tailed = None
        try:
            query = self._query()
            self._lines = RecordLines(meaning(self._columns, parse_columns))
        except WrongInput:
            self._shown.show(tag("div", "Nothing was read: see the messages at the fields.", cls="card empty"))
            return
        if not query.topic:
            self._shown.show(tag("div", "Choose a topic first.", cls="card empty bad", role="alert"))
            return
        with self._shown:  # the first search is made by a task that has no place on the page
            ui.navigate.history.replace(self._address())
        if self._live.value:
            self._tailed, self._tail_version = (self._address(), query), -1
            self._tick()
        else:
            await self._look(query)

    def _tick(self) -> None:
        if self._tailed is None:
            return
        name, query = self._tailed
        reading = self._console.tail(name, query).want()
        if reading.version == self._tail_version:
            return
        self._tail_version = reading.version
        if reading.value is not None:
            self._shown.show(tail_html(reading.value, query.topic, self._lines))
        else:
            self._shown.show(tag("div", reading.problem or "Reading…", cls="card empty"))

    async def _go_on(self, _: Act) -> None:
        if self._next is not None:
            await self._look(self._next)

    async def _look(self, query: Query) -> None:
        """Show the result of the latest question, in whichever order answers come."""
        self._asked += 1
        asked = self._asked
        self._button.props("loading")
        following: Query | None = None
        try:
            following, shown = await off_loop(partial(_read, self._console.access, query, self._lines))
        except UNREADABLE as error:
            shown = tag("div", plainly(error), cls="card empty bad", role="alert")
        if asked == self._asked:
            self._next = following
            self._button.props(remove="loading")
            if self._tailed is None:
                self._shown.show(shown)

    async def _export(self, kind: str) -> None:
        try:
            query = replace(self._query(), limit=EXPORTED_MAX)
        except WrongInput:
            return
        if not query.topic:
            return
        try:
            text, number = await off_loop(partial(_exported, self._console.access, query, kind))
        except UNREADABLE as error:
            notify(plainly(error), bad=True)
            return
        ui.download.content(text, f"{query.topic}.{kind}")
        notify(f"{plural(number, 'record')} exported.")

    async def _produce(self) -> None:
        if await produce(self._console, self._topic.value or ""):
            await self.read()


def _read(access: Access, query: Query, lines: RecordLines) -> tuple[Query, Html]:
    """Return the position to go on from, and the records found."""
    with access.client(_TIMEOUT_MS) as client:
        found = browse(client, query)
    further = "Older" if query.start is From.NEWEST else "Later"
    return replace(query, resume=found.resume), records_html(found, query.topic, further, lines)


def _exported(access: Access, query: Query, kind: str) -> tuple[str, int]:
    with access.client(_TIMEOUT_MS) as client:
        found = browse(client, query)
    write = json_lines if kind == "jsonl" else csv_text
    return write(query.topic, found.records), len(found.records)

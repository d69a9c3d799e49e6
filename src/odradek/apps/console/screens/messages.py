"""Messages: look into a topic, and write to it."""

from dataclasses import replace
from functools import partial
from random import randrange

from nicegui import ui

from odradek.apps.console.access import Access
from odradek.apps.console.console import Console
from odradek.apps.console.consoles import Consoles
from odradek.apps.console.dialogs import ChangeDialog, fault_of, number_between
from odradek.apps.console.feeds import UNREADABLE, plainly
from odradek.apps.console.fields import WrongInput, meaning, whole_number
from odradek.apps.console.live import Act, Live
from odradek.apps.console.markup import Html, tag
from odradek.apps.console.page import at_first_sight, first_sight, off_loop, page, perform
from odradek.apps.console.readings.records import Filter, From, Part, Query, browse
from odradek.apps.console.views.records import parse_headers, parse_value, parse_when, records_html
from odradek.client.partitioner import partition_for_key
from odradek.client.record_sender import NewRecord, RecordSender

_TIMEOUT_MS = 10_000
_STARTS = {"newest": "Newest", "oldest": "Oldest", "offset": "From offset", "time": "From time"}
_PARTS = {"any": "Anywhere", "key": "Key", "value": "Value", "header": "Header", "field": "JSON field"}


def register(consoles: Consoles) -> None:
    @ui.page("/messages")
    async def messages_page(topic: str = "", partition: str = "", offset: str = "") -> None:
        console = consoles.here()
        with page(console, "Messages"):
            await first_sight(console.cluster)
            await _Browser(console, topic, partition, offset).show()


class _Browser:
    """The fields of the page, and what they ask for."""

    def __init__(self, console: Console, topic: str, partition: str, offset: str) -> None:
        self._console = console
        reading = console.cluster.want()
        names = sorted(reading.value.topics) if reading.value else []
        names = [*names, topic] if topic and topic not in names else names
        with ui.element("div").classes("top"):
            ui.html("<h1>Messages</h1>", sanitize=False).classes("grow")
            if not console.changes.read_only:
                ui.button("Produce", on_click=self._produce).props("unelevated no-caps")
        with ui.element("div").classes("card row-of").style("margin-bottom: 16px"):
            self._topic = ui.select(names, label="Topic", value=topic or None, with_input=True, on_change=self.read)
            self._partition = ui.input("Partition", value=partition, placeholder="all").style("width: 90px")
            self._start = ui.select(
                _STARTS, label="Start", value="offset" if offset else "newest", on_change=self._shape
            )
            self._at = ui.input("Offset", value=offset).style("width: 190px")
            self._part = ui.select(_PARTS, label="Filter", value="any", on_change=self._shape)
            self._name = ui.input("Name").style("width: 130px")
            self._equals = ui.select({"has": "has", "is": "is"}, value="has").style("width: 88px")
            self._text = ui.input("Text").style("width: 170px")
            for field in (
                self._topic,
                self._partition,
                self._start,
                self._at,
                self._part,
                self._name,
                self._equals,
                self._text,
            ):
                field.props("outlined dense hide-bottom-space")
            for typed in (self._partition, self._at, self._name, self._text):
                typed.on("keydown.enter", self.read)
            self._topic.style("min-width: 200px")
            self._button = ui.button("Read", on_click=self.read).props("unelevated no-caps")
        self._shown = Live(on_act=self._go_on)
        self._asked = 0
        self._next: Query | None = None

    async def show(self) -> None:
        self._shape()
        if self._topic.value:
            self._shown.show(tag("div", "Reading…", cls="card empty"))
            await at_first_sight(self.read())
        else:
            self._shown.show(tag("div", "Choose a topic.", cls="card empty"))

    def _shape(self) -> None:
        """Only the fields that mean something are there."""
        self._at.set_visibility(self._start.value in ("offset", "time"))
        self._at.label = "Time: 15m ago, or 2026-01-31 14:00" if self._start.value == "time" else "Offset"
        self._name.set_visibility(self._part.value in ("header", "field"))
        self._name.label = "Path: a.b.0" if self._part.value == "field" else "Name"

    def _query(self) -> Query:
        start = From(self._start.value)
        number = whole_number("a partition's number")
        partition = meaning(self._partition, lambda text: number(text) if text else None)
        now_ms = self._console.feeds.clock.now_ms()
        return Query(
            topic=self._topic.value or "",
            partition=partition,
            start=start,
            offset=meaning(self._at, whole_number("an offset")) if start is From.OFFSET else 0,
            time_ms=meaning(self._at, lambda text: parse_when(text, now_ms)) if start is From.TIME else 0,
            filter=Filter(
                Part(self._part.value), self._name.value or "", self._equals.value == "is", self._text.value or ""
            ),
        )

    async def read(self) -> None:
        try:
            query = self._query()
        except WrongInput:
            self._shown.show(tag("div", "Nothing is read: see what is said at the fields.", cls="card empty"))
            return
        if query.topic:
            await self._look(query)
        else:
            self._shown.show(tag("div", "Choose a topic first.", cls="card empty bad", role="alert"))

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
            following, shown = await off_loop(partial(_read, self._console.access, query))
        except UNREADABLE as error:
            shown = tag("div", plainly(error), cls="card empty bad", role="alert")
        if asked == self._asked:
            self._next = following
            self._shown.show(shown)
            self._button.props(remove="loading")

    async def _produce(self) -> None:
        if await produce(self._console, self._topic.value or ""):
            await self.read()


def _read(access: Access, query: Query) -> tuple[Query, Html]:
    """Return the position to go on from, and the records found."""
    with access.client(_TIMEOUT_MS) as client:
        found = browse(client, query)
    further = "Older" if query.start is From.NEWEST else "Later"
    return replace(query, resume=found.resume), records_html(found, further)


async def produce(console: Console, topic: str) -> bool:
    dialog = ChangeDialog("Produce a record", "Produce")
    state = console.cluster.want().value
    known = state.topics if state else {}
    name = dialog.field("Topic", topic, check=lambda text: None if text in known else "there is no such topic")

    def check_partition(text: str) -> str | None:
        count = len(known[name.value].partitions) if name.value in known else 1
        return None if not text else number_between(0, count - 1, "the partition")(text)

    partition = dialog.field("Partition (empty: by key, or random)", check=check_partition)
    key = dialog.field("Key (empty: none)")
    kind = dialog.choice("The value is", {"text": "text", "json": "JSON", "hex": "hex", "null": "a tombstone"}, "text")
    value = dialog.field("Value", area=True, check=fault_of(lambda text: parse_value(text, kind.value)))
    headers = dialog.field("Headers, one on a line: name: value", area=True, check=fault_of(parse_headers))

    def sentence() -> str:
        where = (
            f"partition {partition.value}"
            if partition.value
            else "the partition of its key"
            if key.value
            else "a random partition"
        )
        return f"Writes one record to topic {name.value or '…'}, {where}, and waits until all in-sync replicas have it."

    dialog.says(sentence)

    async def work() -> str:
        count = len(known[name.value].partitions)
        key_bytes = key.value.encode() if key.value else None
        number = (
            int(partition.value)
            if partition.value
            else partition_for_key(key_bytes, count)
            if key_bytes
            else randrange(count)
        )
        record = NewRecord(key_bytes, parse_value(value.value, kind.value), parse_headers(headers.value))
        wanted = name.value
        offsets = await perform(
            console,
            f"produce a record to {wanted}-{number}",
            lambda client: RecordSender(client, wanted).send({number: [record]}),
        )
        return f"Written to {wanted}-{number} at offset {offsets[number]:,}."

    return await dialog.run(work)

"""History: the flight recorder as a timeline with a slider."""

from functools import partial

from nicegui import ui

from odradek.apps.console.console import Console
from odradek.apps.console.consoles import Consoles
from odradek.apps.console.feeds import Reading
from odradek.apps.console.live import NOTHING, Act, Live
from odradek.apps.console.markup import Html, tag, together
from odradek.apps.console.page import follow, off_loop, page, remember
from odradek.apps.console.readings.audit import AuditState
from odradek.apps.console.readings.history import HistoryState, Moment, moment_at
from odradek.apps.console.views.history import brokers_html, heading, moments_html, partitions_html, timeline
from odradek.apps.console.views.security import audit_table
from odradek.broker.recorder.core.gaps import NO_BROKER


def register(consoles: Consoles) -> None:
    @ui.page("/history")
    async def history_page(at: int = 0, q: str = "") -> None:
        console = consoles.here()
        with page(console, "History"):
            await _Replay(console, at, q).show()

    @ui.page("/history/audit")
    async def audit_page(q: str = "") -> None:
        console = consoles.here()
        with page(console, "History", "Audit log"):
            await _show_audit(console, q)


class _Replay:
    """Follows the end of the history until the user chooses a moment, which is then in the address."""

    def __init__(self, console: Console, time_ms: int, text: str) -> None:
        """`time_ms`: the moment to begin with; 0: the last one."""
        self._console = console
        self._state: HistoryState | None = None
        self._wanted_ms = time_ms
        self._at = 0
        self._follows = True
        self._text = text
        self._page = 1
        with ui.element("div").classes("top"):
            ui.html(
                "<h1>History</h1><p class='sub'>What the controllers saw, decided and did: the flight recorder.</p>",
                sanitize=False,
            ).classes("grow")
            Live(tag("a", "Audit log", cls="btn", href="/history/audit"))
            ui.input(placeholder="Partition  ( / )", value=text, on_change=self._search).props(
                'outlined dense clearable debounce=150 aria-label="Search partitions"'
            )
        self._said = Live()
        with ui.element("div") as self._story:
            with ui.element("div").classes("card"):
                self._heading = Live()
                self._timeline = Live()
                with ui.element("div").classes("row-of").style("flex-wrap: nowrap; align-items: center"):
                    self._button("‹", -1, "Earlier")
                    self._slider = (
                        ui.slider(min=0, max=1, value=0, on_change=self._slide)
                        .props('aria-label="Moment"')
                        .style("flex: 1")
                    )
                    self._button("›", 1, "Later")
                    ui.button("Now", on_click=self._now).props("flat dense no-caps")
            ui.html("<h2>The cluster at that moment</h2>", sanitize=False)
            self._brokers = Live()
            ui.html("<h2>What happened, and why</h2>", sanitize=False)
            self._moments = Live(on_act=self._choose)
            ui.html("<h2>Partitions then</h2>", sanitize=False)
            self._partitions = Live(on_act=self._turn)

    def _button(self, text: str, step: int, label: str) -> None:
        async def go() -> None:
            await self._go(self._at + step)
            self._remember()

        ui.button(text, on_click=go).props(f'flat dense aria-label="{label}"')

    async def show(self) -> None:
        async def render(reading: Reading[HistoryState]) -> None:
            if reading.value is None or not reading.value.moments:
                said = reading.problem or ("Nothing is recorded yet." if reading.version else "Reading the journals…")
                self._said.show(tag("div", said, cls="card empty"))
                self._story.set_visibility(False)
                return
            self._said.show(NOTHING)
            self._story.set_visibility(True)
            self._state = reading.value
            last = len(reading.value.moments) - 1
            self._slider.props(f"max={max(last, 1)}")
            if self._wanted_ms:
                self._at, self._wanted_ms = moment_at(reading.value.moments, self._wanted_ms), 0
                self._follows = self._at == last
            await self._go(last if self._follows else min(self._at, last), chosen=not self._follows)

        await follow([self._console.history], render)

    async def _slide(self) -> None:
        if int(self._slider.value) != self._at:
            await self._go(int(self._slider.value))
            self._remember()

    async def _choose(self, act: Act) -> None:
        await self._go(int(act["to"]))
        self._remember()

    async def _now(self) -> None:
        if self._state is not None:
            await self._go(len(self._state.moments) - 1)
            self._remember()

    def _remember(self) -> None:
        chosen = None if self._follows or self._state is None else self._state.moments[self._at].time_ms
        remember(self._console, "history", at=chosen, q=self._text)

    async def _turn(self, act: Act) -> None:
        self._page = int(act["to"])
        await self._draw()

    async def _search(self, event: object) -> None:
        self._text, self._page = str(getattr(event, "value", None) or ""), 1
        self._remember()
        await self._draw()

    async def _go(self, place: int, *, chosen: bool = True) -> None:
        if self._state is None:
            return
        last = len(self._state.moments) - 1
        self._at = min(max(place, 0), last)
        self._follows = not chosen or self._at == last
        self._slider.value = self._at
        await self._draw()

    async def _draw(self) -> None:
        state, at = self._state, self._at
        if state is None:
            return
        item = state.moments[at]
        brokers, partitions = await off_loop(partial(_cluster_at, state, item, self._text, self._page))
        if at != self._at:
            return  # the slider was moved meanwhile
        self._heading.show(heading(item, at, len(state.moments)))
        self._timeline.show(timeline(state.moments, at))
        self._brokers.show(brokers)
        self._moments.show(moments_html(state.moments, at))
        self._partitions.show(partitions)


async def _show_audit(console: Console, text: str) -> None:
    number = 1

    def search(value: str | None) -> None:
        nonlocal text, number
        text, number = value or "", 1
        remember(console, "history", "audit", q=text)
        render(console.audit.want())

    def turn(act: Act) -> None:
        nonlocal number
        number = int(act["to"])
        render(console.audit.want())

    with ui.element("div").classes("top"):
        Live(
            together(
                tag("div", tag("a", "History", href="/history"), " /", cls="crumb"),
                tag("h1", "Audit log"),
                tag("p", "Every change and every refusal that the brokers of this machine recorded.", cls="sub"),
            )
        ).classes("grow")
        ui.input(placeholder="Search  ( / )", value=text, on_change=lambda e: search(e.value)).props(
            'outlined dense clearable debounce=120 aria-label="Search the audit log"'
        )
    rows = Live(on_act=turn)

    def render(reading: Reading[AuditState]) -> None:
        if reading.value is not None:
            rows.show(audit_table(reading.value.entries, text, number))
        else:
            rows.show(tag("div", reading.problem or "Reading…", cls="card empty"))

    await follow([console.audit], render)


def _cluster_at(state: HistoryState, item: Moment, text: str, page_number: int) -> tuple[Html, Html]:
    """Brokers and partitions at that moment."""
    picture = state.picture_after(item.place)
    recorded = {entry.broker for entry in state.entries if entry.broker != NO_BROKER}
    brokers = sorted(recorded | set(picture.brokers))
    return brokers_html(picture, brokers), partitions_html(picture, brokers, item, text, page_number)

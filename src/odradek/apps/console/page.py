"""Frame of every page: the bar with the screens, the line with warnings, the ticks that keep its feeds alive."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from nicegui import background_tasks, ui

from odradek.apps.console.console import Console
from odradek.apps.console.feeds import Feed, Reading
from odradek.apps.console.live import ASSETS, Live
from odradek.apps.console.markup import Html, link, tag, together
from odradek.apps.console.views.banner import banner
from odradek.apps.figures import zone

T = TypeVar("T")

_TICK_S = 0.25
_FIRST_PAINT_S = 0.4
_LOOK_S = 0.01
_KEYS_MAX = 9
_SPOOL = Html(
    '<svg viewBox="0 0 24 24" fill="none" stroke="currentColor" stroke-width="1.8" stroke-linecap="round" '
    'aria-hidden="true"><path d="M5 3h14M5 21h14M7 3v4l2 2v6l-2 2v4M17 3v4l-2 2v6l2 2v4"/>'
    '<path d="M9 10.2l6 1.2M9 12.6l6 1.2M15 14.2c3 .6 5 1.6 5 4.3"/></svg>'
)
_POWER = Html(
    '<svg viewBox="0 0 24 24" width="16" height="16" fill="none" stroke="currentColor" stroke-width="2" '
    'stroke-linecap="round" aria-hidden="true"><path d="M12 3v9M6.3 6.3a8 8 0 1 0 11.4 0"/></svg>'
)
# before the first paint, so that nothing flashes; the choice is kept in this browser
_THEME = Html("""<script>
(() => {
  const chosen = localStorage.getItem("odradek-theme");
  const dark = chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  const set = (value) => { document.body.classList.toggle("body--dark", value);
    document.body.classList.toggle("body--light", !value); window.Quasar && Quasar.Dark.set(value); };
  const showPlace = () => { const here = document.querySelector(".bar nav [aria-current]");
    if (here) here.parentNode.scrollLeft = here.offsetLeft - here.parentNode.clientWidth / 2;
    else requestAnimationFrame(showPlace); };
  document.addEventListener("DOMContentLoaded", () => { setTimeout(() => set(dark), 0); showPlace(); });
  const named = document.querySelector("meta[name=odradek-cluster]");
  const withCluster = (to) => { if (!to.searchParams.has("cluster")) to.searchParams.set("cluster", named.content);
    return to.pathname + to.search + to.hash; };
  if (named) {  // of several clusters: an address that is shared, and every link, names the one that is shown
    history.replaceState(history.state, "", withCluster(new URL(location.href)));
    document.addEventListener("click", (event) => { const to = event.target.closest("a[href^='/']");
      if (to) to.setAttribute("href", withCluster(new URL(to.href))); }, true);
  }
  window.odradekTheme = () => { const value = !document.body.classList.contains("body--dark");
    localStorage.setItem("odradek-theme", value ? "dark" : "light"); set(value); };
  setInterval(() => { if (window.socket && window.socket.connected) return;
    fetch("/alive").then((answer) => { if (answer.status === 401) location.href = "/login"; }, () => {}); }, 2000);
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, textarea, select")) return;
    if (event.key === "/") { const field = document.querySelector(".main input:not([type=checkbox])");
      if (field) { event.preventDefault(); field.focus(); } }
    const place = document.querySelector(`.bar nav a[data-key="${CSS.escape(event.key)}"]`);
    if (place) place.click();
  });
})();
</script>""")


def screens(console: Console) -> list[tuple[str, str]]:
    names = ["Cluster", "Topics", "Messages", "Groups", "Transactions", "Reassign", "History", "Pipelines"]
    names += ["Users", "ACLs", "Quotas"]
    if console.machine is not None:
        names.append("Lab")
    return [(name, "/" if name == "Cluster" else link(name.lower())) for name in names]


@contextmanager
def page(console: Console, screen: str, title: str = "") -> Iterator[None]:
    """Open a page; elements built inside go into its main part."""
    ui.page_title(f"{title or screen} · Odradek")
    ui.add_css((ASSETS / "theme.css").read_text())
    if console.chosen_cluster:
        ui.add_head_html(str(tag("meta", name_="odradek-cluster", content=console.chosen_cluster)))
    ui.add_head_html(str(_THEME))
    ui.colors(primary="var(--accent)", negative="var(--bad)", positive="var(--ok)")
    ui.html(str(_bar(console, screen)), sanitize=False)
    with ui.element("div").props("id=main").classes("main"):
        alarm = Live()
        cluster, coordination = console.cluster, console.coordination

        def tick() -> None:
            if who(console) is None:
                ui.navigate.to("/login")  # logged out in another tab, or too long ago
            alarm.show(banner(cluster.want(), coordination.want().value, console.feeds.clock.now_ms()))

        tick()
        ui.timer(1.0, tick)
        yield


def _bar(console: Console, screen: str) -> Html:
    places = [
        tag(
            "a",
            name,
            href=to,
            data_key=number if number <= _KEYS_MAX else None,
            title=f"key {number}" if number <= _KEYS_MAX else None,
            aria_current="page" if name == screen else None,
        )
        for number, (name, to) in enumerate(screens(console), 1)
    ]
    logout = None
    if not console.guard.is_open:
        button = tag("button", _POWER, cls="icon", title="Log out", aria_label="Log out")
        logout = tag("form", button, method="post", action="/logout")
    mode = tag("span", "read-only", cls="chip") if console.changes.read_only else None
    theme = tag("button", "◐", cls="icon", title="Dark or light", aria_label="Dark or light", onclick="odradekTheme()")
    return together(
        tag("a", "To the content", href="#main", cls="skip"),
        tag(
            "header",
            tag("a", _SPOOL, tag("b", "Odradek"), href="/", cls="brand", aria_label="Odradek"),
            tag("nav", places, aria_label="Screens"),
            tag(
                "div",
                mode,
                tag("span", console.user, cls="chip", title="the user of the cluster who is logged in")
                if console.user
                else None,
                _cluster_mark(console),
                tag("span", zone(), cls="cluster", title=_times()),
                theme,
                logout,
                cls="tools",
            ),
            cls="bar",
        ),
    )


def _cluster_mark(console: Console) -> Html:
    here = console.cluster_name or console.options.name
    if not console.options.clusters:
        return tag("span", here, cls="cluster mono", title=_times())
    names = dict.fromkeys([console.first_cluster, *console.options.clusters])
    chosen = [tag("option", name, value=name, selected=name == here) for name in names]
    go = "location.href = '/cluster?name=' + encodeURIComponent(this.value)"
    return tag("select", chosen, cls="clusters mono", onchange=go, aria_label="Cluster")


def _times() -> str:
    return f"Times are those of the console's machine: {zone()}"


async def follow(feeds: Sequence[Feed[Any]], render: Callable[..., Awaitable[None] | None]) -> None:
    """Calls `render` with the readings of the feeds, now and whenever one of them is new.

    The page is sent with the first reading if that comes fast enough; the other readings are added later.
    """
    for feed in feeds:
        feed.want()
    await wait_for_first_paint(feeds[0])
    seen: list[int] = []

    async def tick() -> None:
        readings: list[Reading[Any]] = [feed.want() for feed in feeds]
        versions = [reading.version for reading in readings]
        if versions != seen:
            seen[:] = versions
            drawn = render(*readings)
            if drawn is not None:
                await drawn

    await tick()
    ui.timer(_TICK_S, tick)


async def wait_for_first_paint(feed: Feed[Any]) -> None:
    for _ in range(int(_FIRST_PAINT_S / _LOOK_S)):
        feed.want()
        if feed.is_fresh:
            return
        await asyncio.sleep(_LOOK_S)


async def before_first_paint(work: Coroutine[Any, Any, None]) -> None:
    """Wait for the first content of a page, for a limited time; the work continues after that."""
    await asyncio.wait({background_tasks.create(work)}, timeout=_FIRST_PAINT_S)


async def off_loop(work: Callable[[], T]) -> T:
    """Run a call that waits for brokers off the event loop, so that other pages go on."""
    return await asyncio.get_running_loop().run_in_executor(None, work)


def who(console: Console) -> str | None:
    request = ui.context.client.request
    return console.guard.who(request.cookies, request.client.host if request.client else "")


async def perform(console: Console, what: str, change: Callable[[Any], T]) -> T:
    """Make a change in the name of the page's user. NotDone contains the reason why it wasn't made."""
    name = who(console)
    try:
        said = f"{console.cluster_name}: {what}" if console.cluster_name else what
        return await off_loop(lambda: console.changes.perform(console.access, name, said, change))
    finally:
        console.feeds.refresh_now()


def remember(console: Console, *parts: str, **query: object) -> None:
    """Put the state of the page into its address, so that the view can be shared."""
    ui.navigate.history.replace(console.address(*parts, **query))


def notify(text: str, *, bad: bool = False) -> None:
    ui.notify(text, type="negative" if bad else "positive", position="bottom-right", timeout=6000 if bad else 3000)

"""Transactions: all transactional ids; one with its partitions; abort, and find the ones that hang."""

from functools import partial

from nicegui import ui

from odradek.apps.console.console import Console
from odradek.apps.console.consoles import Consoles
from odradek.apps.console.dialogs import ChangeDialog
from odradek.apps.console.feeds import UNREADABLE, Reading, plainly
from odradek.apps.console.live import NOTHING, Act, Live
from odradek.apps.console.markup import tag, together
from odradek.apps.console.page import follow, off_loop, page, perform, remember
from odradek.apps.console.readings.transactions import TransactionDetail, TransactionsState, find_hanging
from odradek.apps.console.views.banner import gap, not_found
from odradek.apps.console.views.transactions import ABORTABLE, hanging_table, transaction_html, transactions_table
from odradek.client.cluster_client import ClusterClient
from odradek.client.transaction_admin import OpenTransaction, abort_transaction, fence_producer, open_transactions
from odradek.model.topology import TopicPartition

_STATES = {
    "": "any state",
    **{name: name for name in ("Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort")},
}
_HANGING_AFTER_MS = 15 * 60_000
_TIMEOUT_MS = 15_000


def register(consoles: Consoles) -> None:
    @ui.page("/transactions")
    async def transactions_page(q: str = "", state: str = "") -> None:
        console = consoles.here()
        with page(console, "Transactions"):
            await _show_all(console, q, state if state in _STATES else "")

    @ui.page("/transactions/{name:path}")
    async def transaction_page(name: str) -> None:
        console = consoles.here()
        with page(console, "Transactions", name):
            await _show_one(console, name)


async def _show_all(console: Console, text: str, state: str) -> None:
    number = 1

    def search(value: str | None = None, chosen: str | None = None) -> None:
        nonlocal text, state, number
        text, state, number = text if value is None else value, state if chosen is None else chosen, 1
        remember(console, "transactions", q=text, state=state)
        render(console.transactions.want())

    def turn(what: Act) -> None:
        nonlocal number
        number = int(what["to"])
        render(console.transactions.want())

    async def look() -> None:
        hanging.show(tag("div", "Asking every leader…", cls="card empty"))
        try:
            found = await off_loop(partial(_find, console))
        except UNREADABLE as error:
            hanging.show(tag("div", plainly(error), cls="card empty bad", role="alert"))
            return
        shown = hanging_table(found, console.feeds.clock.now_ms(), read_only=console.changes.read_only)
        hanging.show(together(tag("h2", "Hanging transactions"), shown))

    async def act(what: Act) -> None:
        if await abort_here(console, what):
            hanging.show(NOTHING)

    with ui.element("div").classes("top"):
        ui.html(
            "<h1>Transactions</h1><p class='sub'>Producers with a transactional id, as coordinators know them.</p>",
            sanitize=False,
        ).classes("grow")
        ui.button("Find hanging", on_click=look).props("outline no-caps").tooltip(
            "open transactions without a record for 15 minutes that no coordinator knows of"
        )
        ui.input(placeholder="Search  ( / )", value=text, on_change=lambda e: search(e.value or "")).props(
            'outlined dense clearable debounce=120 aria-label="Search transactions"'
        )
        ui.select(_STATES, value=state, on_change=lambda e: search(chosen=e.value)).props(
            'outlined dense aria-label="State"'
        )
    problem, hanging, rows = Live(), Live(on_act=act), Live(on_act=turn)

    def render(reading: Reading[TransactionsState]) -> None:
        problem.show(gap("The transactions can't be read.", reading))
        if reading.value is not None:
            rows.show(transactions_table(reading.value.transactions, text, state, number))

    await follow([console.transactions], render)


def _find(console: Console) -> list[OpenTransaction]:
    with console.access.client(_TIMEOUT_MS) as client:
        return find_hanging(client, _HANGING_AFTER_MS)


async def _show_one(console: Console, name: str) -> None:
    with ui.element("div").classes("top"):
        crumb = tag("div", tag("a", "Transactions", href="/transactions"), " /", cls="crumb")
        Live(together(crumb, tag("h1", name))).classes("grow")
        abort = ui.button("Abort", on_click=partial(_fence, console, name)).props("outline no-caps color=negative")
        abort.set_visibility(False)
    problem, shown = Live(), Live()

    def render(reading: Reading[TransactionDetail]) -> None:
        if reading.is_missing:
            shown.show(not_found("transactional id", name, "/transactions", "Transactions"))
            return
        problem.show(gap("This transaction can't be read.", reading))
        if reading.value is not None:
            shown.show(transaction_html(reading.value))
            abort.set_visibility(reading.value.transaction.state == ABORTABLE and not console.changes.read_only)

    await follow([console.transaction(name)], render)


async def abort_here(console: Console, what: Act) -> bool:
    """Ask for the abort of an open transaction: by its coordinator, or by a marker where no coordinator knows it."""
    if what.get("id"):
        return await _fence(console, what["id"])
    tp, offset = TopicPartition(what["topic"], int(what["partition"])), int(what["offset"])
    dialog = ChangeDialog("Abort the transaction", "Abort", danger=True)
    dialog.says(
        lambda: (
            f"Has the leader of {tp} write an abort marker for the transaction that began at offset {offset:,}: "
            "consumers of committed records go on and skip its records. For transactions that no coordinator knows."
        )
    )

    def change(client: ClusterClient) -> None:
        found = [each for each in open_transactions(client, tp) if each.start_offset == offset]
        if not found:
            raise ValueError("the transaction is over already")
        abort_transaction(client, found[0])

    async def work() -> str:
        await perform(console, f"abort the transaction at {tp} offset {offset}", change)
        return "The transaction is aborted."

    return await dialog.run(work)


async def _fence(console: Console, transactional_id: str) -> bool:
    dialog = ChangeDialog("Abort the transaction", "Abort", danger=True)
    dialog.says(
        lambda: (
            f"The coordinator aborts the open transaction of {transactional_id} and fences its producer: what it "
            "writes or commits next is refused, and the application has to start a new producer."
        )
    )

    async def work() -> str:
        what = f"abort the transaction of {transactional_id} and fence its producer"
        await perform(console, what, lambda client: fence_producer(client, transactional_id))
        return "The transaction is aborted."

    return await dialog.run(work)

"""Quotas: limits of users, client ids and addresses; set one, remove one."""

import json
from functools import partial

from nicegui import ui

from odradek.apps.console.console import Console
from odradek.apps.console.consoles import Consoles
from odradek.apps.console.dialogs import ChangeDialog
from odradek.apps.console.feeds import Reading
from odradek.apps.console.live import Act, Live
from odradek.apps.console.page import follow, page, perform
from odradek.apps.console.views.banner import gap
from odradek.apps.console.views.quotas import QUOTAS, quota_fault, quotas_table
from odradek.client.quota_admin import Quotas, alter_quotas, entity_as_text

_ANY = "the default of its kind"


def register(consoles: Consoles) -> None:
    @ui.page("/quotas")
    async def quotas_page() -> None:
        console = consoles.here()
        with page(console, "Quotas"):
            await _show(console)


async def _show(console: Console) -> None:
    async def act(what: Act) -> None:
        entity = json.loads(what["entity"])
        await (_remove(console, entity, what["key"]) if what["act"] == "remove" else _set(console, entity))

    with ui.element("div").classes("top"):
        ui.html(
            "<h1>Quotas</h1><p class='sub'>Limits of users, client ids and addresses, on each broker.</p>",
            sanitize=False,
        ).classes("grow")
        if not console.changes.read_only:
            ui.button("Set quota", on_click=partial(_set, console, {})).props("unelevated no-caps")
    problem, rows = Live(), Live(on_act=act)

    def render(reading: Reading[tuple[Quotas, ...]]) -> None:
        problem.show(gap("The quotas can't be read.", reading))
        if reading.value is not None:
            rows.show(quotas_table(reading.value, read_only=console.changes.read_only))

    await follow([console.quotas], render)


async def _set(console: Console, entity: dict[str, str | None]) -> None:
    dialog = ChangeDialog("Set a quota", "Set")
    shown = {kind: "*" if name is None else name for kind, name in entity.items()}
    user = dialog.field("User", shown.get("user", ""))
    client = dialog.field("Client id", shown.get("client-id", ""))
    address = dialog.field("Address", shown.get("ip", ""))
    key = dialog.choice("Quota", QUOTAS, "producer_byte_rate")
    value = dialog.field("Value", check=quota_fault)

    def named() -> dict[str, str | None]:
        typed = {"user": user.value, "client-id": client.value, "ip": address.value}
        return {kind: None if name == "*" else name for kind, name in typed.items() if name}

    def sentence() -> str:
        if not (wanted := named()):
            return "Name a user, a client id or an address; * is the default for all others."
        return f"Limits {entity_as_text(wanted)}: {QUOTAS[key.value]} {value.value or '…'}."

    dialog.says(sentence)

    async def work() -> str:
        wanted, limit = named(), float(value.value)
        if not wanted:
            raise ValueError("Name a user, a client id or an address.")
        what = f"set quota {key.value}={value.value} of {entity_as_text(wanted)}"
        await perform(console, what, lambda c: alter_quotas(c, wanted, {key.value: limit}))
        return "The quota is set."

    await dialog.run(work)


async def _remove(console: Console, entity: dict[str, str | None], key: str) -> None:
    dialog = ChangeDialog("Remove the quota", "Remove", danger=True)
    dialog.says(lambda: f"Removes {QUOTAS.get(key, key)} of {entity_as_text(entity)}.")

    async def work() -> str:
        what = f"remove quota {key} of {entity_as_text(entity)}"
        await perform(console, what, lambda c: alter_quotas(c, entity, {}, [key]))
        return "The quota is removed."

    await dialog.run(work)

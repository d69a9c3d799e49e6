"""ACLs: all of them, searched; add one, delete one."""

from functools import partial

from nicegui import ui

from odradek.apps.console.console import Console
from odradek.apps.console.consoles import Consoles
from odradek.apps.console.dialogs import ChangeDialog
from odradek.apps.console.feeds import Reading
from odradek.apps.console.live import Act, Live
from odradek.apps.console.page import follow, page, perform, remember
from odradek.apps.console.readings.security import AclsState
from odradek.apps.console.views.banner import gap
from odradek.apps.console.views.security import acl_key, acl_sentence, acls_table
from odradek.client.acl_admin import create_acls, delete_acls
from odradek.model.acls import (
    CLUSTER_NAME,
    SUPPORTED_OPERATIONS,
    AclBinding,
    AclEntry,
    AclFilter,
    AclOperation,
    EntryFilter,
    PatternFilter,
    PatternType,
    PermissionType,
    ResourcePattern,
    ResourceType,
)

_KINDS = {kind.name: kind.shown for kind in SUPPORTED_OPERATIONS}


def register(consoles: Consoles) -> None:
    @ui.page("/acls")
    async def acls_page(q: str = "") -> None:
        console = consoles.here()
        with page(console, "ACLs"):
            await _show(console, q)


async def _show(console: Console, text: str) -> None:
    number = 1

    def search(value: str | None) -> None:
        nonlocal text, number
        text, number = value or "", 1
        remember(console, "acls", q=text)
        render(console.acls.want())

    async def act(what: Act) -> None:
        nonlocal number
        if what["act"] == "page":
            number = int(what["to"])
            render(console.acls.want())
        else:
            await _delete(console, what["acl"])

    with ui.element("div").classes("top"):
        ui.html(
            "<h1>ACLs</h1><p class='sub'>Which principal may do what. A denial wins over every right.</p>",
            sanitize=False,
        ).classes("grow")
        ui.input(placeholder="Search  ( / )", value=text, on_change=lambda e: search(e.value)).props(
            'outlined dense clearable debounce=120 aria-label="Search ACLs"'
        )
        if not console.changes.read_only:
            add = ui.button("Add ACL", on_click=partial(_add, console)).props("unelevated no-caps")
        else:
            add = None
    problem, rows = Live(), Live(on_act=act)

    def render(reading: Reading[AclsState]) -> None:
        problem.show(gap("The ACLs can't be read.", reading))
        state = reading.value
        if add is not None:
            add.set_enabled(state is None or state.has_authorizer)
        if state is not None:
            rows.show(acls_table(state, text, number, read_only=console.changes.read_only))

    await follow([console.acls], render)


async def _add(console: Console) -> None:
    dialog = ChangeDialog("Add an ACL", "Add")
    principal = dialog.field("Principal", "User:", check=_principal_fault, full=True)
    permission = dialog.choice("Permission", {"ALLOW": "Allow", "DENY": "Deny"}, "ALLOW")
    kind = dialog.choice("Resource", _KINDS, "TOPIC")
    operation = dialog.choice("Operation", _operations("TOPIC"), "READ")
    pattern = dialog.choice("Pattern", {"LITERAL": "literal", "PREFIXED": "prefixed"}, "LITERAL")
    name = dialog.field(
        "Name (* for every one)",
        check=lambda text: None if text or kind.value == "CLUSTER" else "the name of the resource is required",
    )
    host = dialog.field("Host (* for any)", "*", check=lambda text: None if text else "an address, or *")

    def shape() -> None:
        operation.set_options(_operations(kind.value), value="ALL" if kind.value == "CLUSTER" else "DESCRIBE")
        name.set_visibility(kind.value != "CLUSTER")
        pattern.set_visibility(kind.value != "CLUSTER")

    kind.on_value_change(shape)

    def binding() -> AclBinding:
        is_cluster = kind.value == "CLUSTER"
        resource = ResourcePattern(
            ResourceType[kind.value],
            CLUSTER_NAME if is_cluster else name.value or "…",
            PatternType.LITERAL if is_cluster else PatternType[pattern.value],
        )
        chosen = AclOperation[operation.value]
        return AclBinding(
            resource, AclEntry(principal.value, host.value or "*", chosen, PermissionType[permission.value])
        )

    dialog.says(lambda: acl_sentence(binding()))

    async def work() -> str:
        acl = binding()
        await perform(console, f"add ACL: {acl_sentence(acl)}", lambda c: create_acls(c, [acl]))
        return "The ACL is added."

    await dialog.run(work)


async def _delete(console: Console, key: str) -> None:
    state = console.acls.want().value
    acl = next((acl for acl in (state.acls if state else ()) if acl_key(acl) == key), None)
    if acl is None:
        return  # it was deleted in the meantime
    dialog = ChangeDialog("Delete the ACL", "Delete", danger=True)
    dialog.says(lambda: f"No longer holds: {acl_sentence(acl)}")

    async def work() -> str:
        resource = PatternFilter(acl.pattern.type, acl.pattern.name, acl.pattern.pattern)
        entry = EntryFilter(acl.entry.principal, acl.entry.host, acl.entry.operation, acl.entry.permission)
        what = f"delete ACL: {acl_sentence(acl)}"
        await perform(console, what, lambda c: delete_acls(c, [AclFilter(resource, entry)]))
        return "The ACL is deleted."

    await dialog.run(work)


def _operations(kind: str) -> dict[str, str]:
    valid = [AclOperation.ALL, *sorted(SUPPORTED_OPERATIONS[ResourceType[kind]])]
    return {operation.name: operation.shown for operation in valid}


def _principal_fault(text: str) -> str | None:
    kind, colon, name = text.partition(":")
    return None if kind and colon and name else "TYPE:NAME, such as User:alice, or User:* for everybody"

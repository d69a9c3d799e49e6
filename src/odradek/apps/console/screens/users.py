"""Users: the SCRAM credentials of the cluster; set a password, delete a user."""

from functools import partial

from nicegui import ui

from odradek.apps.console.console import Console
from odradek.apps.console.consoles import Consoles
from odradek.apps.console.dialogs import ChangeDialog
from odradek.apps.console.feeds import Reading
from odradek.apps.console.live import Act, Live
from odradek.apps.console.page import follow, page, perform
from odradek.apps.console.readings.security import AclsState, UsersState
from odradek.apps.console.views.banner import gap
from odradek.apps.console.views.security import users_table
from odradek.client.scram_admin import MECHANISMS, NewPassword, alter_credentials

_PASSWORD_LENGTH_MIN = 8
_BOTH = "both"


def register(consoles: Consoles) -> None:
    @ui.page("/users")
    async def users_page() -> None:
        console = consoles.here()
        with page(console, "Users"):
            await _show(console)


async def _show(console: Console) -> None:
    number = 1

    async def act(what: Act) -> None:
        nonlocal number
        match what["act"]:
            case "page":
                number = int(what["to"])
                render(console.users.want(), console.acls.want())
            case "password":
                await _set_password(console, what["user"])
            case "delete":
                await _delete(console, what["user"])

    with ui.element("div").classes("top"):
        ui.html(
            "<h1>Users</h1><p class='sub'>Users that log in by SCRAM. A password is salted here and never sent.</p>",
            sanitize=False,
        ).classes("grow")
        if not console.changes.read_only:
            ui.button("Create user", on_click=partial(_set_password, console, "")).props("unelevated no-caps")
    problem, rows = Live(), Live(on_act=act)

    def render(users: Reading[UsersState], acls: Reading[AclsState]) -> None:
        problem.show(gap("The users can't be read.", users))
        if users.value is not None:
            known = acls.value.acls if acls.value is not None and acls.value.has_authorizer else None
            rows.show(users_table(users.value.users, known, number, read_only=console.changes.read_only))

    await follow([console.users, console.acls], render)


async def _set_password(console: Console, user: str) -> None:
    dialog = ChangeDialog(f"Set the password of {user}" if user else "Create a user", "Set" if user else "Create")
    name = dialog.field("User", user, check=_name_fault)
    mechanisms = {**{name: name for name in MECHANISMS}, _BOTH: "both"}
    mechanism = dialog.choice("Mechanism", mechanisms, _BOTH if user else "SCRAM-SHA-512")
    password = dialog.field("Password", check=_password_fault, secret=True)
    dialog.field(
        "The same again",
        check=lambda text: None if text == password.value else "the two passwords differ",
        secret=True,
    )
    dialog.says(
        lambda: (
            f"User {name.value or '…'} logs in with this password by {_names(mechanism.value)}. Connections that are "
            "open stay open. Without ACLs a user has no rights."
        )
    )

    async def work() -> str:
        chosen = list(MECHANISMS) if mechanism.value == _BOTH else [mechanism.value]
        wanted, secret = name.value, password.value
        await perform(
            console,
            f"set the password of user {wanted} for {_names(mechanism.value)}",
            lambda c: alter_credentials(c, wanted, [NewPassword(each, secret) for each in chosen]),
        )
        return f"The password of {wanted} is set."

    await dialog.run(work)


async def _delete(console: Console, user: str) -> None:
    state = console.users.want().value
    has = sorted(state.users.get(user, {})) if state else []
    dialog = ChangeDialog("Delete the user", "Delete", danger=True)
    dialog.field(
        f"Type the user's name to go on: {user}",
        check=lambda text: None if text == user else "that is not the name",
        full=True,
    )
    dialog.says(
        lambda: (
            f"Deletes the credentials of user {user} for {', '.join(has) or 'no mechanism'}. ACLs stay. Connections "
            "that are open stay open until they authenticate again."
        )
    )

    async def work() -> str:
        await perform(console, f"delete user {user}", lambda c: alter_credentials(c, user, deletions=has))
        return f"User {user} is deleted."

    await dialog.run(work)


def _names(mechanism: str) -> str:
    return " and ".join(MECHANISMS) if mechanism == _BOTH else mechanism


def _name_fault(text: str) -> str | None:
    return None if text and text.isprintable() and text == text.strip() else "a name without blanks around it"


def _password_fault(text: str) -> str | None:
    return None if len(text) >= _PASSWORD_LENGTH_MIN else f"{_PASSWORD_LENGTH_MIN} characters or more"

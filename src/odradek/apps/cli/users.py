"""`odradek users`: users that log in by SCRAM, and their passwords."""

import getpass
import sys
from typing import Annotated

from odradek.apps.cli.grammar.declaration import Argument, Option
from odradek.apps.cli.grammar.noun import Noun
from odradek.apps.cli.output import DEFAULT_BOOTSTRAP, BootstrapOption, Format, FormatOption, note, print_rows
from odradek.apps.cli.usage import WrongUsage
from odradek.client.cluster_client import ClusterClient
from odradek.client.scram_admin import (
    DEFAULT_ITERATIONS,
    MECHANISMS,
    NewPassword,
    alter_credentials,
    describe_credentials,
)

app = Noun(
    "Users that log in by SCRAM. A password is read from the terminal or from standard input, salted here and never "
    "sent.",
    examples=[
        "odradek users list",
        "odradek users set alice",
        "odradek users set alice --mechanism SCRAM-SHA-256 < password.txt",
        "odradek users delete alice",
    ],
)
MechanismOption = Annotated[
    list[str] | None, Option("--mechanism", metavar="MECHANISM", help="A mechanism; may be repeated. All unless given.")
]


@app.verb("list")
def list_users(bootstrap_server: BootstrapOption = DEFAULT_BOOTSTRAP, output: FormatOption = Format.TABLE) -> None:
    """Show users and their mechanisms."""
    with ClusterClient(bootstrap_server) as client:
        found = describe_credentials(client)
    rows = [
        {"user": user, "mechanism": mechanism, "iterations": iterations}
        for user, mechanisms in sorted(found.items())
        for mechanism, iterations in mechanisms.items()
    ]
    print_rows(rows, ("user", "mechanism", "iterations"), output, empty="no user has a SCRAM credential")


@app.verb("set")
def set_password(
    user: Annotated[str, Argument(help="The user's name.")],
    mechanisms: MechanismOption = None,
    iterations: Annotated[
        int, Option("--iterations", min=4096, max=16384, help="Of the salted hash; more is slower to guess.")
    ] = DEFAULT_ITERATIONS,
    bootstrap_server: BootstrapOption = DEFAULT_BOOTSTRAP,
) -> None:
    """Set a user's password."""
    wanted = _mechanisms(mechanisms)
    password = _password(user)
    with ClusterClient(bootstrap_server) as client:
        alter_credentials(client, user, [NewPassword(name, password, iterations) for name in wanted])
    note(f"password of {user} set for {', '.join(wanted)}")


@app.verb()
def delete(
    user: Annotated[str, Argument(help="The user's name.")],
    mechanisms: MechanismOption = None,
    bootstrap_server: BootstrapOption = DEFAULT_BOOTSTRAP,
) -> None:
    """Delete a user's credentials. Open connections stay open until they authenticate again."""
    wanted = _mechanisms(mechanisms)
    with ClusterClient(bootstrap_server) as client:
        has = describe_credentials(client, [user]).get(user, {})
        there = [name for name in wanted if name in has]
        if not there:
            raise WrongUsage(f"{user} has no credential for {' or '.join(wanted)}")
        alter_credentials(client, user, deletions=there)
    note(f"{', '.join(there)} of {user} deleted")


def _mechanisms(given: list[str] | None) -> list[str]:
    for name in given or ():
        if name not in MECHANISMS:
            raise WrongUsage(f"{name}: there are {' and '.join(MECHANISMS)}", "--mechanism")
    return given or list(MECHANISMS)


def _password(user: str) -> str:
    if sys.stdin.isatty():
        password = getpass.getpass(f"password of {user}: ")
        if password != getpass.getpass("again: "):
            raise WrongUsage("the two passwords differ")
    else:
        password = sys.stdin.readline().rstrip("\r\n")
    if not password:
        raise WrongUsage("an empty password: give it on standard input")
    return password

"""`odradek tokens`: delegation tokens, which log in as their owner for a limited time."""

from base64 import b64decode, b64encode
from datetime import UTC, datetime
from typing import Annotated

from odradek.apps.cli.grammar.declaration import Argument, Option
from odradek.apps.cli.grammar.noun import Noun
from odradek.apps.cli.output import DEFAULT_BOOTSTRAP, BootstrapOption, Format, FormatOption, note, print_rows
from odradek.apps.cli.usage import WrongUsage
from odradek.client.cluster_client import ClusterClient
from odradek.client.token_admin import Principal, Token, create_token, describe_tokens, expire_token, renew_token

app = Noun(
    "Delegation tokens. A client with the id and secret of a token logs in by SCRAM as its owner, until it expires.",
    examples=[
        "odradek tokens list",
        "odradek tokens create --renewer User:scheduler",
        "odradek tokens renew SECRET",
        "odradek tokens expire SECRET",
    ],
)
_COLUMNS = ("token", "owner", "requester", "renewers", "expires", "ends_latest")
PeriodOption = Annotated[int, Option("--period-ms", help="Milliseconds from now; -1: as the broker is configured.")]
SecretArgument = Annotated[str, Argument(help="The token's secret, in base64.")]


@app.verb("list")
def list_tokens(
    owners: Annotated[list[str] | None, Option("--owner", metavar="TYPE:NAME", help="May be repeated.")] = None,
    bootstrap_server: BootstrapOption = DEFAULT_BOOTSTRAP,
    output: FormatOption = Format.TABLE,
) -> None:
    """Show tokens, without their secrets."""
    with ClusterClient(bootstrap_server) as client:
        found = describe_tokens(client, [_principal(owner) for owner in owners or ()])
    print_rows([_row(token) for token in found], _COLUMNS, output, empty="there are no tokens")


@app.verb()
def create(
    renewers: Annotated[list[str] | None, Option("--renewer", metavar="TYPE:NAME", help="May be repeated.")] = None,
    owner: Annotated[
        str | None, Option("--owner", metavar="TYPE:NAME", help="Owner of the token, if it is not the user.")
    ] = None,
    max_life_ms: Annotated[int, Option("--max-life-ms", help="-1: as the broker is configured.")] = -1,
    bootstrap_server: BootstrapOption = DEFAULT_BOOTSTRAP,
    output: FormatOption = Format.TABLE,
) -> None:
    """Create a token, and show its secret once."""
    with ClusterClient(bootstrap_server) as client:
        named = None if owner is None else _principal(owner)
        token = create_token(client, [_principal(renewer) for renewer in renewers or ()], max_life_ms, named)
    print_rows([{**_row(token), "secret": b64encode(token.hmac).decode()}], (*_COLUMNS, "secret"), output)


@app.verb()
def renew(
    secret: SecretArgument, period_ms: PeriodOption = -1, bootstrap_server: BootstrapOption = DEFAULT_BOOTSTRAP
) -> None:
    """Extend the validity of a token."""
    with ClusterClient(bootstrap_server) as client:
        note(f"the token ends at {_moment(renew_token(client, _hmac(secret), period_ms))}")


@app.verb()
def expire(
    secret: SecretArgument,
    period_ms: Annotated[int, Option("--period-ms", help="Milliseconds from now; -1: immediately.")] = -1,
    bootstrap_server: BootstrapOption = DEFAULT_BOOTSTRAP,
) -> None:
    """Expire a token, now or later."""
    with ClusterClient(bootstrap_server) as client:
        note(f"the token ends at {_moment(expire_token(client, _hmac(secret), period_ms))}")


def _row(token: Token) -> dict[str, object]:
    return {
        "token": token.id,
        "owner": token.owner,
        "requester": token.requester,
        "renewers": ", ".join(token.renewers),
        "expires": _moment(token.expiry_ms),
        "ends_latest": _moment(token.max_ms),
    }


def _principal(text: str) -> Principal:
    kind, colon, name = text.partition(":")
    if not kind or not colon:
        raise WrongUsage(f"{text}: a principal is TYPE:NAME, as User:{text}")
    return kind, name


def _hmac(secret: str) -> bytes:
    try:
        return b64decode(secret, validate=True)
    except ValueError:
        raise WrongUsage("the secret of a token is in base64") from None


def _moment(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1000, UTC).isoformat(timespec="seconds")

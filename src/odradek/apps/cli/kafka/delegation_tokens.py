"""kafka-delegation-tokens: create, renew, expire and describe delegation tokens."""

from base64 import b64decode, b64encode
from collections.abc import Sequence
from time import localtime, strftime

from odradek.apps.cli.kafka.options import (
    BOOTSTRAP,
    COMMAND_CONFIG,
    EVERY_TOOL,
    Given,
    Option,
    OptionTable,
    WrongOptions,
)
from odradek.apps.cli.kafka.tool import ToolError, connect, in_kafkas_words
from odradek.base.errors import KafkaError
from odradek.client.cluster_client import ClusterClient
from odradek.client.command_config import command_settings
from odradek.client.token_admin import Principal, Token, create_token, describe_tokens, expire_token, renew_token

TABLE = OptionTable(
    "This tool helps to create, renew, expire, or describe delegation tokens.",
    BOOTSTRAP,
    COMMAND_CONFIG,
    Option("create", "create a token"),
    Option("renew", "renew a token"),
    Option("expire", "expire a token"),
    Option("describe", "show tokens, with their secrets"),
    Option("owner-principal", "the owner, as User:alice", "PRINCIPAL"),
    Option("renewer-principal", "a principal that may renew it", "PRINCIPAL"),
    Option("max-life-time-period", "milliseconds; -1: as the broker is configured", "MS"),
    Option("renew-time-period", "milliseconds; -1: as the broker is configured", "MS"),
    Option("expiry-time-period", "milliseconds; -1: immediately", "MS"),
    Option("hmac", "the secret of the token", "BASE64"),
    *EVERY_TOOL,
)
_FORM = "{:<15} {:<30} {:<15} {:<15} {:<25} {:<15} {:<15} {:<15}"


def run(given: Given) -> int:
    action = given.one_action("create", "renew", "expire", "describe")
    given.require("bootstrap-server", *([] if command_settings() else ["command-config"]))
    needed = {
        "create": ("max-life-time-period",),
        "renew": ("hmac", "renew-time-period"),
        "expire": ("hmac", "expiry-time-period"),
        "describe": (),
    }
    given.require(*needed[action])
    try:
        with connect(given) as client:
            {"create": _create, "renew": _renew, "expire": _expire, "describe": _describe}[action](client, given)
    except KafkaError as error:
        raise ToolError(in_kafkas_words(error)) from None
    return 0


def _create(client: ClusterClient, given: Given) -> None:
    renewers, owners = _principals(given, "renewer-principal"), _principals(given, "owner-principal")
    life_ms = _milliseconds(given, "max-life-time-period")
    shown = ", ".join(f"{kind}:{name}" for kind, name in renewers)
    print(f"Calling create token operation with renewers :[{shown}] , max-life-time-period :{life_ms}")
    token = create_token(client, renewers, life_ms, owners[0] if owners else None)
    print(f"Created delegation token with tokenId : {token.id}")
    _print_tokens([token])


def _renew(client: ClusterClient, given: Given) -> None:
    ends_ms = renew_token(client, _hmac(given), _milliseconds(given, "renew-time-period"))
    print(f"Completed renew operation. New expiry date : {_moment(ends_ms)}")


def _expire(client: ClusterClient, given: Given) -> None:
    ends_ms = expire_token(client, _hmac(given), _milliseconds(given, "expiry-time-period"))
    print(f"Completed expire operation. New expiry date : {_moment(ends_ms)}")


def _describe(client: ClusterClient, given: Given) -> None:
    tokens = describe_tokens(client, _principals(given, "owner-principal"))
    print(f"Total number of tokens : {len(tokens)}")
    _print_tokens(tokens)


def _print_tokens(tokens: Sequence[Token]) -> None:
    print(
        "\n" + _FORM.format("TOKENID", "HMAC", "OWNER", "REQUESTER", "RENEWERS", "ISSUEDATE", "EXPIRYDATE", "MAXDATE")
    )
    for token in tokens:
        moments = (_moment(token.issue_ms), _moment(token.expiry_ms), _moment(token.max_ms))
        secret, renewers = b64encode(token.hmac).decode(), f"[{', '.join(token.renewers)}]"
        print("\n" + _FORM.format(token.id, secret, token.owner, token.requester, renewers, *moments))


def _principals(given: Given, option: str) -> list[Principal]:
    found = []
    for text in given.values(option):
        kind, colon, name = text.strip().partition(":")
        if not kind or not colon:
            raise WrongOptions(f"expected a string in format principalType:principalName but got {text}")
        found.append((kind, name))
    return found


def _milliseconds(given: Given, option: str) -> int:
    value = given.number(option)
    assert value is not None
    return value


def _hmac(given: Given) -> bytes:
    try:
        return b64decode(given.text("hmac"), validate=True)
    except ValueError:
        raise WrongOptions("--hmac is not in base64") from None


def _moment(at_ms: int) -> str:
    return strftime("%Y-%m-%dT%H:%M", localtime(at_ms / 1000))

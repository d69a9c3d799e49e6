"""SCRAM credentials of users, for the tools. A password is salted here: brokers never see it."""

import hashlib
import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from functools import partial

from odradek.base.errors import ErrorCode, KafkaError
from odradek.base.value_classes import dataclass
from odradek.client.cluster_client import NOT_YET_DONE, ClusterClient
from odradek.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from odradek.protocol.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    UserName,
)

MECHANISMS = {"SCRAM-SHA-256": (1, "sha256"), "SCRAM-SHA-512": (2, "sha512")}
DEFAULT_ITERATIONS = 4096
ITERATIONS = range(4096, 16385)
_NAME_OF_NUMBER = {number: name for name, (number, _) in MECHANISMS.items()}
_SALT_BYTES = 24


@dataclass(frozen=True, slots=True)
class NewPassword:
    mechanism: str
    password: str = field(repr=False)
    iterations: int = DEFAULT_ITERATIONS


def describe_credentials(client: ClusterClient, users: Sequence[str] | None = None) -> dict[str, dict[str, int]]:
    """Mechanisms and iterations of each user: of all users, or of the named ones that have credentials."""
    names = None if users is None else [UserName(name=user) for user in users]
    answer = client.ask_any(DescribeUserScramCredentialsRequest(users=names), DescribeUserScramCredentialsResponse)
    _raise_for("", answer.error_code, answer.error_message)
    found = {}
    for result in answer.results:
        if result.error_code == ErrorCode.RESOURCE_NOT_FOUND:
            continue
        _raise_for(result.user, result.error_code, result.error_message)
        found[result.user] = {_NAME_OF_NUMBER[info.mechanism]: info.iterations for info in result.credential_infos}
    return found


def alter_credentials(
    client: ClusterClient, user: str, passwords: Iterable[NewPassword] = (), deletions: Iterable[str] = ()
) -> None:
    request = AlterUserScramCredentialsRequest(
        upsertions=[_upsertion(user, wanted) for wanted in passwords],
        deletions=[ScramCredentialDeletion(name=user, mechanism=MECHANISMS[name][0]) for name in deletions],
    )
    client.retrying(partial(_alter, client, request), NOT_YET_DONE)


def _upsertion(user: str, wanted: NewPassword) -> ScramCredentialUpsertion:
    number, hash_name = MECHANISMS[wanted.mechanism]
    if wanted.iterations not in ITERATIONS:
        message = f"iterations={wanted.iterations}: {ITERATIONS.start} to {ITERATIONS.stop - 1} are valid"
        raise KafkaError(ErrorCode.UNACCEPTABLE_CREDENTIAL, message)
    salt = secrets.token_bytes(_SALT_BYTES)
    salted = hashlib.pbkdf2_hmac(hash_name, wanted.password.encode(), salt, wanted.iterations)
    return ScramCredentialUpsertion(
        name=user, mechanism=number, iterations=wanted.iterations, salt=salt, salted_password=salted
    )


def _alter(client: ClusterClient, request: AlterUserScramCredentialsRequest) -> None:
    for result in client.ask_controller(request, AlterUserScramCredentialsResponse).results:
        _raise_for(result.user, result.error_code, result.error_message)


def parse_scram_setting(mechanism: str, text: str) -> NewPassword:
    """Parse `[iterations=N,password=…]`, with the brackets taken off; ValueError without a word of the password."""
    fields: Mapping[str, str] = {}
    if text.startswith("iterations="):
        number, comma, rest = text.removeprefix("iterations=").partition(",")
        fields = {"iterations": number, "password": rest.removeprefix("password=") if comma else ""}
    elif text.startswith("password="):
        password = text.removeprefix("password=")
        before, marker, number = password.rpartition(",iterations=")
        fields = {"password": before, "iterations": number} if marker and number.isdecimal() else {"password": password}
    iterations = fields.get("iterations", str(DEFAULT_ITERATIONS))
    if not fields.get("password") or not iterations.isdecimal():
        raise ValueError(f"{mechanism} needs [iterations=NUMBER,password=PASSWORD]")
    return NewPassword(mechanism, fields["password"], int(iterations))


def _raise_for(user: str, code: int, message: str | None) -> None:
    if code != ErrorCode.NONE:
        raise KafkaError(ErrorCode(code), f"{user}: {message}" if user and message else message or "")

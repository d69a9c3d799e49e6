"""Changes of SCRAM credentials in one request: the refused users with their errors, and the accepted changes. Pure."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import field

from odradek.base.errors import ErrorCode
from odradek.base.value_classes import dataclass
from odradek.broker.quotas.core.quota_table import is_nameable
from odradek.broker.security.core.scram_credentials import (
    ITERATIONS_MAX,
    ITERATIONS_MIN,
    MECHANISM_OF_NUMBER,
    ScramMechanism,
    credential_of_salted_password,
    credential_text,
)

_EMPTY_USER = (ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty")
_DOTS = (ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be . or ..")
_UNKNOWN_MECHANISM = (ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism")
_TOO_FEW = (ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too few iterations")
_TOO_MANY = (ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too many iterations")
_NO_PASSWORD = (ErrorCode.UNACCEPTABLE_CREDENTIAL, "Salted password must not be empty")
_TWICE = (ErrorCode.DUPLICATE_RESOURCE, "A user credential cannot be altered twice in the same request")
NOT_THERE = (ErrorCode.RESOURCE_NOT_FOUND, "Attempt to delete a user credential that does not exist")

Refusal = tuple[ErrorCode, str]


@dataclass(frozen=True, slots=True)
class Deletion:
    user: str
    mechanism: int


@dataclass(frozen=True, slots=True)
class Upsertion:
    user: str
    mechanism: int
    iterations: int
    salt: bytes = field(repr=False)
    salted_password: bytes = field(repr=False)


Change = Deletion | Upsertion


def refused_users(changes: Iterable[Change]) -> dict[str, Refusal]:
    """Return the refused users: one invalid change refuses all changes of its user, and of that user alone."""
    found = list(changes)
    refused = {change.user: why for change in found if (why := _refusal(change)) is not None}
    times = Counter((change.user, change.mechanism) for change in found if change.user not in refused)
    return refused | {user: _TWICE for (user, _), count in times.items() if count > 1}


def _refusal(change: Change) -> Refusal | None:
    if not change.user:
        return _EMPTY_USER
    if not is_nameable(change.user):
        return _DOTS
    if change.mechanism not in MECHANISM_OF_NUMBER:
        return _UNKNOWN_MECHANISM
    if isinstance(change, Upsertion):
        if change.iterations > ITERATIONS_MAX:
            return _TOO_MANY
        if change.iterations < ITERATIONS_MIN:
            return _TOO_FEW
        if not change.salted_password:  # its keys can be computed by everybody
            return _NO_PASSWORD
    return None


def changed_config(config: Mapping[str, str], changes: Iterable[Change]) -> dict[str, str] | None:
    """The configuration of one user after its changes; None: a credential to delete isn't there."""
    changed = dict(config)
    found = list(changes)
    for change in found:
        if isinstance(change, Deletion) and changed.pop(_mechanism(change).mechanism_name, None) is None:
            return None
    for change in found:
        if isinstance(change, Upsertion):
            mechanism = _mechanism(change)
            credential = credential_of_salted_password(
                mechanism, change.salted_password, change.salt, change.iterations
            )
            changed[mechanism.mechanism_name] = credential_text(credential)
    return changed


def _mechanism(change: Change) -> ScramMechanism:
    return MECHANISM_OF_NUMBER[change.mechanism]

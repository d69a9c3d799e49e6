"""SCRAM credentials by user, as `/config/users` has them, current on every broker."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol

from odradek.base.logs import get_logger
from odradek.broker.quotas.core.quota_table import DEFAULT, desanitized, entity_of_user_node
from odradek.broker.security.core.scram_credentials import ITERATIONS_MIN, MECHANISMS, ScramCredential, parse_credential

log = get_logger(__name__)


SALT_DIGITS = b"0123456789abcdefghijklmnopqrstuvwxyz"
JAVA_SALT_BITS = 130
_JAVA_SALT_BYTES = range(20, 27)


class CredentialShape(NamedTuple):
    """The part of a credential that any client sees and that tells how it was made."""

    salt_bytes: int | None
    """None: a salt of Java's tools, a random number of 130 bits as text in base 36."""
    iterations: int


class CredentialStore(Protocol):
    def scram_credential(self, mechanism: str, user: str) -> ScramCredential | None:
        """Return the credential of a user, by the mechanism's SASL name; None: unknown, or not read yet. Any thread,
        never blocks."""

    def shapes(self, mechanism: str) -> Sequence[CredentialShape]:
        """Return the shapes of the credentials, each once, in an order that depends on nothing else."""


class KnownCredentials:
    """Credentials in memory. Replaced as a whole by the thread that follows configuration changes."""

    def __init__(self) -> None:
        self._credentials: dict[tuple[str, str], ScramCredential] = {}
        self._shapes: dict[str, Sequence[CredentialShape]] = {}

    def scram_credential(self, mechanism: str, user: str) -> ScramCredential | None:
        return self._credentials.get((mechanism, user))

    def shapes(self, mechanism: str) -> Sequence[CredentialShape]:
        return self._shapes.get(mechanism, ())

    def set_users(self, users: Mapping[str, Mapping[str, str]]) -> None:
        """Configurations by their names below /config/users. A credential that can't be read is refused at login."""
        credentials = {}
        for node, config in users.items():
            user, client_id = entity_of_user_node(node)
            if client_id or user == DEFAULT:
                continue
            for mechanism in MECHANISMS:
                if mechanism not in config:
                    continue
                try:
                    credentials[mechanism, desanitized(user)] = parse_credential(config[mechanism])
                except ValueError as error:
                    log.error("invalid SCRAM credential ignored", user=user, mechanism=mechanism, reason=str(error))
        self._shapes = {
            name: shapes_of(credential for (mechanism, _), credential in credentials.items() if mechanism == name)
            for name in MECHANISMS
        }
        self._credentials = credentials


def shapes_of(credentials: Iterable[ScramCredential]) -> Sequence[CredentialShape]:
    usable = {_shape_of(credential) for credential in credentials if credential.iterations >= ITERATIONS_MIN}
    return sorted(usable, key=repr)


def _shape_of(credential: ScramCredential) -> CredentialShape:
    salt = credential.salt
    is_javas = len(salt) in _JAVA_SALT_BYTES and frozenset(SALT_DIGITS).issuperset(salt)
    return CredentialShape(None if is_javas else len(salt), credential.iterations)

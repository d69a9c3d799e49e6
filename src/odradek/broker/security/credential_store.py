"""SCRAM credentials by user, as `/config/users` has them, current on every broker."""

from collections.abc import Mapping
from typing import Protocol

from odradek.base.logs import get_logger
from odradek.broker.quotas.core.quota_table import DEFAULT, desanitized, entity_of_user_node
from odradek.broker.security.core.scram_credentials import MECHANISMS, ScramCredential, parse_credential

log = get_logger(__name__)


class CredentialStore(Protocol):
    def scram_credential(self, mechanism: str, user: str) -> ScramCredential | None:
        """Return the credential of a user, by the mechanism's SASL name; None: unknown, or not read yet. Any thread,
        never blocks."""


class KnownCredentials:
    """Credentials in memory. Replaced as a whole by the thread that follows configuration changes."""

    def __init__(self) -> None:
        self._credentials: dict[tuple[str, str], ScramCredential] = {}

    def scram_credential(self, mechanism: str, user: str) -> ScramCredential | None:
        return self._credentials.get((mechanism, user))

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
        self._credentials = credentials

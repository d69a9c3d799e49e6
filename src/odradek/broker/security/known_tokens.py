"""Delegation tokens in memory, with the SCRAM credentials that follow from them.

Changed by the thread that follows ZooKeeper; read by any thread.
"""

import hmac
import secrets
from collections.abc import Collection
from dataclasses import replace

from odradek.base.clock import Clock
from odradek.base.config.broker_config import BrokerConfig
from odradek.base.config.definition import Password
from odradek.broker.security.authentication.mechanisms import ScramIdentity
from odradek.broker.security.core.delegation_tokens import DelegationToken, hmac_of, password_of
from odradek.broker.security.core.scram_credentials import (
    ITERATIONS_MIN,
    MECHANISMS,
    ScramCredential,
    credential_of_password,
)

_SALT_BYTES = 24
_SECRET_KEYS = ("delegation.token.secret.key", "delegation.token.master.key")
"""The second is Kafka's older name."""


def token_secret_key(config: BrokerConfig) -> bytes | None:
    """Return the secret that the brokers share; None without one: there are no tokens then."""
    for key in _SECRET_KEYS:
        secret = config.get(key)
        assert secret is None or isinstance(secret, Password)
        if secret is not None and secret.value:
            return secret.value.encode()
    return None


class KnownTokens:
    def __init__(self, secret_key: bytes, clock: Clock) -> None:
        self._secret_key = secret_key
        self._clock = clock
        self._tokens: dict[str, DelegationToken] = {}
        self._credentials: dict[tuple[str, str], ScramCredential] = {}

    def all(self) -> list[DelegationToken]:
        return list(self._tokens.values())

    def hmac_of(self, token: DelegationToken) -> bytes:
        return hmac_of(token.id, self._secret_key)

    def with_hmac(self, presented: bytes) -> DelegationToken | None:
        """Find the token with this HMAC, in constant time, so that parts of a right guess can't be measured."""
        found = None
        for token in self.all():
            if hmac.compare_digest(self.hmac_of(token), presented):
                found = token
        return found

    def identity(self, mechanism: str, token_id: str) -> ScramIdentity | None:
        """Return the identity for a login by SCRAM; None: unknown or expired."""
        token, credential = self._tokens.get(token_id), self._credentials.get((mechanism, token_id))
        if token is None or credential is None or token.is_expired(self._clock.now_ms()):
            return None
        return ScramIdentity(credential, replace(token.owner, token_authenticated=True), token.expiry_ms)

    def put(self, token_id: str, token: DelegationToken | None) -> None:
        """Keep a token; None removes it."""
        if token is None:
            self._tokens.pop(token_id, None)
            for name in MECHANISMS:
                self._credentials.pop((name, token_id), None)
            return
        for name, mechanism in MECHANISMS.items():
            if (name, token_id) not in self._credentials:
                password = password_of(self.hmac_of(token))
                salt = secrets.token_bytes(_SALT_BYTES)
                self._credentials[name, token_id] = credential_of_password(mechanism, password, salt, ITERATIONS_MIN)
        self._tokens[token_id] = token

    def forget_others(self, token_ids: Collection[str]) -> None:
        for token_id in self._tokens.keys() - set(token_ids):
            self.put(token_id, None)

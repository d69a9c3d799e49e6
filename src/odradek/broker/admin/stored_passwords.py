"""Passwords among the dynamic configs of a broker: encrypted in ZooKeeper, plain in this process."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from odradek.base.config.broker_config import BrokerConfig
from odradek.base.config.definition import Password
from odradek.base.config.live_config import LiveConfig, is_password
from odradek.base.errors import ConfigError
from odradek.base.logs import get_logger
from odradek.broker.zk.store import ZkStore
from odradek.broker.zk.znodes import DEFAULT_ENTITY

if TYPE_CHECKING:
    from odradek.security.password_encoder import PasswordEncoder

log = get_logger(__name__)


class StoredPasswords:
    """`password.encoder.*` of the file: they can't change while the broker runs."""

    def __init__(self, config: BrokerConfig) -> None:
        """ConfigError names a setting that can't be obeyed."""
        self._encoder = _encoder(config, "password.encoder.secret")
        self._older = _encoder(config, "password.encoder.old.secret")

    def encoded(self, settings: Mapping[str, str]) -> dict[str, str]:
        """ConfigError where there is a password and no secret."""
        return {name: self._encode(text) if is_password(name) else text for name, text in settings.items()}

    def decoded(self, settings: Mapping[str, str]) -> dict[str, str]:
        """Passwords that can't be decoded are reported and left out."""
        found = {name: self._decode(name, text) if is_password(name) else text for name, text in settings.items()}
        return {name: text for name, text in found.items() if text is not None}

    def re_encoded(self, settings: Mapping[str, str]) -> dict[str, str] | None:
        """Settings whose passwords the old secret decodes, with the new one; None where there are none."""
        if self._older is None:
            return None
        from odradek.security.password_encoder import Undecodable

        changed: dict[str, str] = {}
        for name, text in settings.items():
            if not is_password(name):
                continue
            try:
                changed[name] = self._encode(self._older.decode(text))
            except Undecodable:
                log.info("password was not encoded with the old secret", key=name)
        return {**settings, **changed} if changed else None

    def _encode(self, password: str) -> str:
        if self._encoder is None:
            raise ConfigError(
                "Password encoder secret not configured: set password.encoder.secret in server.properties"
            )
        return self._encoder.encode(password)

    def _decode(self, name: str, text: str) -> str | None:
        from odradek.security.password_encoder import Undecodable

        if self._encoder is None:
            log.error("password in ZooKeeper ignored: password.encoder.secret is not set", key=name)
            return None
        try:
            return self._encoder.decode(text)
        except Undecodable:
            log.error("password in ZooKeeper ignored: it was encoded with another secret", key=name)
            return None


def adopt_stored(live: LiveConfig, store: ZkStore, broker_id: int) -> None:
    """Apply the stored dynamic configs at the start of a broker; passwords of an old secret are encoded again."""
    passwords = live.passwords = StoredPasswords(live.static)
    own = store.configs.load_config("brokers", str(broker_id))
    if (changed := passwords.re_encoded(own)) is not None:
        store.configs.set_config("brokers", str(broker_id), changed)
        log.info("passwords encoded anew")
    live.adopt(own if changed is None else changed, store.configs.load_config("brokers", DEFAULT_ENTITY))


def _encoder(config: BrokerConfig, key: str) -> "PasswordEncoder | None":
    secret = config.get(key)
    if secret is None:
        return None
    from odradek.security.password_encoder import PasswordEncoder  # and with it cryptography

    assert isinstance(secret, Password)
    return PasswordEncoder(
        secret.value,
        config.password_encoder_cipher_algorithm,
        config.password_encoder_keyfactory_algorithm or "PBKDF2WithHmacSHA512",
        config.password_encoder_key_length,
        config.password_encoder_iterations,
    )

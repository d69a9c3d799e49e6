"""Passwords among dynamic configs: encrypted where they are stored, left out where they can't be decoded."""

import pytest

from odradek.base.config.broker_config import BrokerConfig
from odradek.base.config.live_config import LiveConfig, is_password
from odradek.base.errors import ConfigError
from odradek.broker.admin.stored_passwords import StoredPasswords

BASE = {"zookeeper.connect": "zk:2181", "password.encoder.iterations": "1024"}
NAME = "listener.name.ssl.ssl.keystore.password"
SETTINGS = {NAME: "hunter2", "num.io.threads": "9"}


def passwords(**settings: str) -> StoredPasswords:
    return StoredPasswords(
        BrokerConfig.from_properties(BASE | {f"password.encoder.{k}": v for k, v in settings.items()})
    )


def test_passwords_alone_are_encoded() -> None:
    assert is_password(NAME)
    assert not is_password("num.io.threads")
    codec = passwords(secret="s")
    stored = codec.encoded(SETTINGS)
    assert stored["num.io.threads"] == "9"
    assert "hunter2" not in stored[NAME]
    assert codec.decoded(stored) == SETTINGS


def test_without_a_secret_no_password_is_taken(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ConfigError, match="Password encoder secret not configured"):
        passwords().encoded(SETTINGS)
    assert passwords().encoded({"num.io.threads": "9"}) == {"num.io.threads": "9"}
    stored = passwords(secret="s").encoded(SETTINGS)
    for other in (passwords(), passwords(secret="t")):
        assert other.decoded(stored) == {"num.io.threads": "9"}


def test_an_old_secret_gives_way_to_a_new_one() -> None:
    stored = passwords(secret="old").encoded(SETTINGS)
    moving = passwords(secret="new", **{"old.secret": "old"})
    changed = moving.re_encoded(stored)
    assert changed is not None
    assert passwords(secret="new").decoded(changed) == SETTINGS
    assert moving.re_encoded(changed) is None, "done already"
    assert passwords(secret="new").re_encoded(stored) is None


def test_settings_of_the_encoder_are_checked_at_start() -> None:
    with pytest.raises(ConfigError, match=r"password\.encoder\.cipher\.algorithm"):
        passwords(secret="s", **{"cipher.algorithm": "DES/CBC"})


def test_a_broker_adopts_what_was_stored() -> None:
    live = LiveConfig(BrokerConfig.from_properties(BASE))
    live.passwords = passwords(secret="s")
    live.adopt(live.passwords.encoded(SETTINGS), {})
    assert live.current.originals[NAME] == "hunter2"
    assert live.current.num_io_threads == 9

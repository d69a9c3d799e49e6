"""Login modules in settings."""

import pytest

from odradek.base.errors import ConfigError
from odradek.security.jaas import PLAIN_MODULE, SCRAM_MODULE, login_module


def test_options() -> None:
    text = f'{PLAIN_MODULE} required\n  username="admin" password="a\\"b;c=d"\n user_alice=\'x y\' user_bob=plain;'
    module = login_module("k", text, "PLAIN")
    assert module.options == {"username": "admin", "password": 'a"b;c=d', "user_alice": "x y", "user_bob": "plain"}
    assert "a" not in repr(module).partition("options")[2]


@pytest.mark.parametrize(
    "text",
    [
        "",
        ";",
        f"{PLAIN_MODULE};",
        f"{PLAIN_MODULE} perhaps;",
        f'{PLAIN_MODULE} required password="secret"',
        f'{PLAIN_MODULE} required password="secret',
        f"{PLAIN_MODULE} required password;",
        f'{PLAIN_MODULE} required a="secret"; {PLAIN_MODULE} required;',
        f'{SCRAM_MODULE} required password="secret";',
        'com.sun.security.auth.module.JndiLoginModule required user.provider.url="ldap://secret";',
        "x" * (2 << 20),
    ],
)
def test_cve_2023_25194_anything_else_is_refused_and_not_shown(text: str) -> None:
    with pytest.raises(ConfigError) as error:
        login_module("sasl.jaas.config", text, "PLAIN")
    assert "secret" not in str(error.value)
    assert len(str(error.value)) < 300

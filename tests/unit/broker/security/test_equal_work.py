"""An unknown user costs what a wrong password costs, so that time tells nobody which names exist.

Counted, not timed: every hash, HMAC and comparison that a refused login makes, by function and by the size of what it
is given.
"""

import hashlib
import hmac
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from odradek.broker.security.authentication.mechanisms import (
    AuthenticationFailed,
    PlainServer,
    ScramIdentity,
    ScramServer,
    ScramSettings,
)
from odradek.broker.security.core.scram_credentials import MECHANISMS, credential_of_password, credential_text
from odradek.broker.security.credential_store import KnownCredentials
from odradek.broker.security.principal import KafkaPrincipal
from odradek.security.scram import ScramClient

Work = Counter[tuple[str, int]]


class Store:
    def __init__(self, mechanism: str) -> None:
        self._credential = credential_of_password(MECHANISMS[mechanism], "secret", bytes(24), 4096)
        self.credentials = KnownCredentials()
        self.credentials.set_users({"alice": {mechanism: credential_text(self._credential)}})

    def token(self, mechanism: str, token_id: str) -> ScramIdentity | None:
        return ScramIdentity(self._credential, KafkaPrincipal("User", "owner")) if token_id == "alice" else None


@pytest.fixture
def work(monkeypatch: pytest.MonkeyPatch) -> Work:
    """Calls of each function of hashing and comparing, with the length of what they are given."""
    counted: Work = Counter()

    def count(module: Any, name: str) -> None:
        original: Callable[..., Any] = getattr(module, name)

        def counting(*given: Any, **options: Any) -> Any:
            sizes = sum(len(each) for each in given if isinstance(each, bytes))
            counted[f"{module.__name__}.{name}", sizes] += 1
            return original(*given, **options)

        monkeypatch.setattr(module, name, counting)

    for name in ("digest", "new", "compare_digest"):
        count(hmac, name)
    for name in ("pbkdf2_hmac", "new", "sha256", "sha512"):
        count(hashlib, name)
    return counted


def refused(evaluate: Callable[[], object], work: Work) -> Work:
    work.clear()
    with pytest.raises(AuthenticationFailed):
        evaluate()
    return Counter(work)


@pytest.mark.parametrize("mechanism", list(MECHANISMS))
@pytest.mark.parametrize("by_token", [False, True])
def test_scram(work: Work, mechanism: str, by_token: bool) -> None:
    store = Store(mechanism)

    def refused_final(user: str, password: str) -> Work:
        """The names have one length, so that the messages have."""
        server = ScramServer(ScramSettings(mechanism, store.credentials, b"secret of this broker", store.token))
        client = ScramClient(mechanism, user, password, "nonce", token=by_token)
        work.clear()
        first = server.evaluate(client.first()).challenge
        begun = Counter(work)
        final = client.final(first)
        return begun + refused(lambda: server.evaluate(final), work)

    wrong_password, unknown_user = refused_final("alice", "wrong!"), refused_final("bobby", "secret")
    assert wrong_password == unknown_user
    assert sum(wrong_password.values()) >= 3
    assert not any(name.endswith("pbkdf2_hmac") for name, _ in wrong_password), "which is the client's work"


def test_plain(work: Work) -> None:
    def refused_login(user: str, password: str) -> Work:
        server = PlainServer({"alice": "secret"})
        return refused(lambda: server.evaluate(f"\0{user}\0{password}".encode()), work)

    def without_sizes(counted: Work) -> Counter[str]:
        """A hash of up to 55 bytes is one block, whatever its length."""
        assert all(size <= 64 for _, size in counted)
        return Counter({name: total for name in {n for n, _ in counted} if (total := _total(counted, name))})

    assert without_sizes(refused_login("alice", "wrong!")) == without_sizes(refused_login("bobby", "secret"))


def _total(counted: Work, name: str) -> int:
    return sum(count for (each, _), count in counted.items() if each == name)

"""GSSAPI without Kerberos: the order of tokens, the choice of the security layer, and what is missing at start.

With a realm and its clients: `tests/cluster/test_kerberos.py`.
"""

import sys
from dataclasses import dataclass, field
from types import SimpleNamespace

import pytest

from odradek.base.clock import SYSTEM_CLOCK
from odradek.base.config.broker_config import BrokerConfig
from odradek.base.errors import ConfigError
from odradek.broker.api.sasl_gate import SaslGate
from odradek.broker.purgatory.reaper import ExpirationReaper
from odradek.broker.security.authentication.gssapi_server import GssapiServer
from odradek.broker.security.authentication.listener_settings import check_listeners
from odradek.broker.security.authentication.mechanisms import AuthenticationFailed
from odradek.broker.security.authentication.sasl_session import SaslListener, SaslSession
from odradek.client.client_security import ClientSecurity
from odradek.protocol.framing import encode_request
from odradek.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from odradek.security.jaas import KERBEROS_MODULE
from odradek.security.kerberos import ROUNDS_MAX, KerberosError, log_in, service_name
from odradek.security.kerberos_names import ShortNames

TICKET, REPLY, SEAL = b"ticket", b"reply", b"sealed:"


@dataclass
class FakeContext:
    """Kerberos as it looks from outside: one token each way; `is_mutual`: the broker has one too."""

    answers: list[bytes] = field(default_factory=lambda: [REPLY])
    peer: str = "alice@REALM"
    is_complete: bool = False
    expected: bytes = TICKET
    rounds: int = 1

    def step(self, token: bytes) -> bytes:
        if token != self.expected:
            raise KerberosError("not a ticket")
        self.rounds -= 1
        self.is_complete = self.rounds <= 0
        return self.answers.pop(0) if self.answers else b""

    def wrap(self, message: bytes) -> bytes:
        return SEAL + message

    def unwrap(self, message: bytes) -> bytes:
        if not message.startswith(SEAL):
            raise KerberosError("not sealed by this session")
        return message.removeprefix(SEAL)


def server(context: FakeContext | None = None) -> GssapiServer:
    return GssapiServer(context or FakeContext(), ShortNames(["DEFAULT"], "REALM"))


def test_an_exchange() -> None:
    accepting = server()
    assert accepting.evaluate(TICKET).challenge == REPLY
    assert accepting.evaluate(b"").challenge == SEAL + b"\1\0\0\0", "no layer, and no size of its messages"
    done = accepting.evaluate(SEAL + b"\1\0\0\0")
    assert (done.challenge, str(done.principal), done.expires_ms) == (b"", "User:alice", None)


def test_the_offer_follows_at_once_where_kerberos_has_no_reply() -> None:
    accepting = server(FakeContext(answers=[]))
    assert accepting.evaluate(TICKET).challenge == SEAL + b"\1\0\0\0"
    assert str(accepting.evaluate(SEAL + b"\1\0\0\0").principal) == "User:alice"


def test_the_authorization_id_changes_nothing() -> None:
    accepting = server(FakeContext(answers=[]))
    accepting.evaluate(TICKET)
    assert str(accepting.evaluate(SEAL + b"\1\0\0\0admin").principal) == "User:alice"


@pytest.mark.parametrize(
    "tokens",
    [
        [b""],
        [b"nonsense"],
        [TICKET, TICKET],
        [TICKET, b"", b"\1\0\0\0"],
        [TICKET, b"", b""],
        [TICKET, b"", SEAL],
        [TICKET, b"", SEAL + b"\1\0\0"],
        [TICKET, b"", SEAL + b"\2\0\0\0"],
        [TICKET, b"", SEAL + b"\4\0\0\0"],
        [TICKET, b"", SEAL + b"\7\0\0\0"],
    ],
)
def test_anything_else_fails_and_ends_the_exchange(tokens: list[bytes]) -> None:
    accepting = server()
    for token in tokens[:-1]:
        assert accepting.evaluate(token).principal is None
    with pytest.raises(AuthenticationFailed, match="invalid credentials with SASL mechanism GSSAPI"):
        accepting.evaluate(tokens[-1])
    for token in (TICKET, b"", SEAL + b"\1\0\0\0"):
        with pytest.raises(AuthenticationFailed):
            accepting.evaluate(token)


def test_an_exchange_does_not_go_on_for_ever() -> None:
    accepting = server(FakeContext(rounds=100))
    for _ in range(ROUNDS_MAX):
        accepting.evaluate(TICKET)
    with pytest.raises(AuthenticationFailed):
        accepting.evaluate(TICKET)


def test_a_principal_of_another_realm_is_refused() -> None:
    accepting = server(FakeContext(answers=[], peer="alice@ELSEWHERE"))
    accepting.evaluate(TICKET)
    with pytest.raises(AuthenticationFailed) as failure:
        accepting.evaluate(SEAL + b"\1\0\0\0")
    assert "no rule" in failure.value.detail


def test_a_client_and_a_broker() -> None:
    accepting, told = server(), []

    def exchange(token: bytes) -> bytes:
        step = accepting.evaluate(token)
        told.append(step.principal)
        return step.challenge

    log_in(FakeClient(), exchange)
    assert str(told[-1]) == "User:alice"


class FakeClient(FakeContext):
    """Has a ticket, and wants the broker's reply."""

    def step(self, token: bytes) -> bytes:
        self.is_complete = token == REPLY
        return TICKET if not token else b""


@pytest.mark.parametrize("offer", [SEAL + b"\2\0\0\0", SEAL + b"\6\0\0\0", SEAL, b"\1\0\0\0", b""])
def test_a_client_takes_no_other_layer_and_no_forged_offer(offer: bytes) -> None:
    with pytest.raises(KerberosError):
        log_in(FakeContext(answers=[TICKET], expected=b""), lambda token: offer)


def test_a_client_does_not_go_on_for_ever() -> None:
    with pytest.raises(KerberosError, match="end"):
        log_in(FakeContext(answers=[TICKET] * 100, expected=b"", rounds=100), lambda token: b"")


def test_the_service_has_one_name() -> None:
    assert service_name({"serviceName": "kafka"}, None) == service_name({}, "kafka") == "kafka"
    for options, configured in (({}, None), ({"serviceName": "a"}, "b")):
        with pytest.raises(ConfigError, match=r"sasl\.kerberos\.service\.name"):
            service_name(options, configured)


class Request:
    """A token on its way; the answer is noted, and whether the next frame may come then."""

    def __init__(self, session: SaslSession, token: bytes) -> None:
        self.frame = memoryview(encode_request(SaslAuthenticateRequest(auth_bytes=token), 2, 1, "")[4:])
        self.connection = SimpleNamespace(id="c", sasl=session)
        self._session = session
        self.answered: list[bool] = []

    def reply(self, answer: object) -> None:
        self.answered.append(not self._session.is_evaluating)

    def close_connection(self, reason: str) -> None:
        raise AssertionError(reason)


def test_the_next_token_may_come_as_soon_as_the_answer_is_sent() -> None:
    """A fast client is back before the handler thread is done with the request (librdkafka was closed)."""
    named: list[str] = []
    listener = SaslListener({"GSSAPI": server}, {}, 10_000, SYSTEM_CLOCK)
    session, gate = (
        listener.new_session(lambda principal: named.append(str(principal))),
        SaslGate(ExpirationReaper(), 0),
    )
    assert session.handshake("GSSAPI", 1)
    for token in (TICKET, b"", SEAL + b"\1\0\0\0"):
        request = Request(session, token)
        assert gate.begin(request, session, may_block=False) is False  # type: ignore[arg-type]
        assert gate.begin(request, session, may_block=True) is True  # type: ignore[arg-type]
        assert request.answered == [True]
    assert named == ["User:alice"]
    assert request.connection.sasl is None


SETTINGS = {
    "zookeeper.connect": "zk:2181",
    "listeners": "SASL_PLAINTEXT://localhost:9092",
    "security.inter.broker.protocol": "SASL_PLAINTEXT",
    "sasl.kerberos.service.name": "kafka",
    "listener.name.sasl_plaintext.gssapi.sasl.jaas.config": f"{KERBEROS_MODULE} required useKeyTab=true storeKey=true "
    'keyTab="/nowhere" principal="kafka/localhost@REALM";',
}


def test_without_the_extra_the_mechanism_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """GSSAPI is Kafka's default for `sasl.enabled.mechanisms`."""
    monkeypatch.setitem(sys.modules, "gssapi", None)
    with pytest.raises(ConfigError, match=r"GSSAPI needs Kerberos.*odradek\[kerberos\]"):
        check_listeners(BrokerConfig.from_properties(SETTINGS))
    module = f'{KERBEROS_MODULE} required useTicketCache=true serviceName="kafka";'
    with pytest.raises(ConfigError, match=r"odradek\[kerberos\]"):
        ClientSecurity({"security.protocol": "SASL_PLAINTEXT", "sasl.jaas.config": module})

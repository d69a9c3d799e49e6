"""SASL connections: the exchange over the wire, and every request that comes too early."""

import random
import socket
import struct
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from typing import Any

import pytest

from odradek.base.clock import SYSTEM_CLOCK, Clock
from odradek.base.errors import ErrorCode
from odradek.broker.api.sasl_gate import SaslGate
from odradek.broker.network.request import InboundRequest
from odradek.broker.network.server import SocketServer
from odradek.broker.network.settings import ListenerSettings, ServerSettings
from odradek.broker.purgatory.reaper import ExpirationReaper
from odradek.broker.quotas.core.address_limits import AddressLimits
from odradek.broker.quotas.core.failed_logins import FailedLogins
from odradek.broker.security.authentication.listener_security import ListenerSecurity
from odradek.broker.security.authentication.mechanisms import PlainServer, ScramServer, ScramSettings
from odradek.broker.security.authentication.sasl_session import SaslListener
from odradek.broker.security.core.scram_credentials import MECHANISMS, credential_of_password, credential_text
from odradek.broker.security.credential_store import KnownCredentials
from odradek.protocol.api_keys import APIS, ApiKey
from odradek.protocol.framing import decode_response, encode_request
from odradek.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from odradek.protocol.messages.sasl_handshake import SaslHandshakeRequest
from odradek.protocol.schema import Request
from odradek.security.scram import ScramClient
from waiting import eventually

SCRAM = credential_of_password(MECHANISMS["SCRAM-SHA-512"], "secret", b"salt of a user..", 4096)
PASSED = b"passed"
ALICE = b"\0alice\0secret"


def known() -> KnownCredentials:
    credentials = KnownCredentials()
    credentials.set_users({"alice": {"SCRAM-SHA-512": credential_text(SCRAM)}})
    return credentials


class Gated:
    """A dispatcher with a session; a request that passes is answered with PASSED and its key."""

    def __init__(self, gate: SaslGate) -> None:
        self._gate = gate

    def begin(self, request: InboundRequest) -> bool:
        session = request.connection.sasl
        if session is not None:
            served = self._gate.begin(request, session, may_block=False)
            if served is not None:
                return served
        name = str(request.connection.principal).encode()
        text = PASSED + bytes(request.frame[:2]) + name
        request.reply([struct.pack(">i", len(text)), text])
        return True

    def rounds(self) -> AbstractContextManager[Callable[[], None]]:
        return nullcontext(lambda: None)

    def run(self, request: InboundRequest) -> None: ...


@dataclass
class ShiftedClock:
    """The system's clock, moved forward by hand."""

    shift_ms: int = 0

    def now_ms(self) -> int:
        return SYSTEM_CLOCK.now_ms() + self.shift_ms

    def monotonic_ms(self) -> int:
        return SYSTEM_CLOCK.monotonic_ms() + self.shift_ms

    def __getattr__(self, name: str) -> Any:
        return getattr(SYSTEM_CLOCK, name)


class SaslClient:
    def __init__(self, port: int, address: str) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), 20, (address, 0))
        self._numbers = iter(range(1, 10_000))

    def send_frame(self, frame: bytes) -> None:
        self.socket.sendall(struct.pack(">i", len(frame)) + frame)

    def send(self, request: Request, version: int) -> None:
        self.socket.sendall(encode_request(request, version, next(self._numbers), "test"))

    def receive(self) -> bytes:
        size = struct.unpack(">i", self._exactly(4))[0]
        return self._exactly(size)

    def ask(self, request: Request, version: int) -> Any:
        self.send(request, version)
        return decode_response(APIS[request.KEY].response, memoryview(self.receive()), version)[1]

    def passes(self, key: int = ApiKey.METADATA) -> bytes:
        self.send_frame(struct.pack(">hhih", key, 0, 1, -1))
        answer = self.receive()
        assert answer.startswith(PASSED)
        return answer[len(PASSED) + 2 :]

    def log_in(self, user: bytes = ALICE, mechanism: str = "PLAIN", version: int = 2) -> Any:
        assert self.ask(SaslHandshakeRequest(mechanism=mechanism), 1).error_code == 0
        return self.ask(SaslAuthenticateRequest(auth_bytes=user), version)

    def is_closed(self) -> bool:
        with suppress(ConnectionResetError):
            return self.socket.recv(1) == b""
        return True

    def _exactly(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            chunk = self.socket.recv(size - len(data))
            if not chunk:
                raise EOFError
            data += chunk
        return data


@dataclass
class Served:
    connect: Callable[..., SaslClient]
    clock: ShiftedClock
    gate: SaslGate
    server: SocketServer


@pytest.fixture
def served() -> Iterator[Served]:
    yield from serving(0)


@pytest.fixture
def served_for_a_while() -> Iterator[Served]:
    """Sessions last a minute."""
    yield from serving(60_000)


@pytest.fixture
def served_with_penalties() -> Iterator[Served]:
    yield from serving(0, Penalties())


class Penalties(FailedLogins):
    """A failed login holds the connections of its address for a moment, and it does so until the end of the test."""

    def __init__(self) -> None:
        super().__init__(1)

    def wait_ms(self, address: str, now_ms: int) -> int:
        return 50 if address in self._windows else 0


def serving(max_reauth_ms: int, failed_logins: FailedLogins | None = None) -> Iterator[Served]:
    clock = ShiftedClock()
    typed: Clock = clock  # type: ignore[assignment]
    factories = {
        "PLAIN": lambda: PlainServer({"alice": "secret", "bob": "other"}),
        "SCRAM-SHA-512": lambda: ScramServer(ScramSettings("SCRAM-SHA-512", known(), b"x")),
    }
    listener = SaslListener(factories, dict.fromkeys(factories, max_reauth_ms), 10_000, typed)  # type: ignore[arg-type]
    reaper = ExpirationReaper()
    reaper.start()
    gate = SaslGate(reaper, 50, failed_logins)
    listeners = (ListenerSettings("SASL", "SASL_PLAINTEXT", "127.0.0.1", 0),)
    settings = ServerSettings(listeners=listeners, num_network_threads=1)
    limits = AddressLimits(failed_logins)
    server = SocketServer(settings, Gated(gate), limits, {"SASL": ListenerSecurity(None, listener)})
    server.start()
    clients: list[SaslClient] = []

    def connect(address: str = "127.0.0.1") -> SaslClient:
        clients.append(SaslClient(server.port("SASL"), address))
        return clients[-1]

    try:
        yield Served(connect, clock, gate, server)
    finally:
        for client in clients:
            client.socket.close()
        server.stop(0.2)
        reaper.stop()


def test_plain(served: Served) -> None:
    client = served.connect()
    answer = client.log_in()
    assert (answer.error_code, answer.session_lifetime_ms) == (0, 0)
    assert client.passes() == b"User:alice"
    assert client.passes(ApiKey.SASL_HANDSHAKE) == b"User:alice", "a handler answers it: ILLEGAL_SASL_STATE"


def test_scram(served: Served) -> None:
    client = served.connect()
    scram = ScramClient("SCRAM-SHA-512", "alice", "secret", "nonce")
    first = client.log_in(scram.first(), "SCRAM-SHA-512")
    final = client.ask(SaslAuthenticateRequest(auth_bytes=scram.final(first.auth_bytes)), 0)
    scram.verify(final.auth_bytes)
    assert client.passes() == b"User:alice"


def test_raw_tokens_after_a_handshake_of_version_0(served: Served) -> None:
    client = served.connect()
    assert client.ask(SaslHandshakeRequest(mechanism="PLAIN"), 0).error_code == 0
    client.send_frame(ALICE)
    assert client.receive() == b""
    assert client.passes() == b"User:alice"


def test_api_versions_is_served_before(served: Served) -> None:
    client = served.connect()
    assert client.passes(ApiKey.API_VERSIONS) == b"User:ANONYMOUS"
    assert client.log_in().error_code == 0


def test_api_versions_is_not_served_without_end(served: Served) -> None:
    client = served.connect()
    for _ in range(10):
        client.passes(ApiKey.API_VERSIONS)
    client.send_frame(struct.pack(">hhih", ApiKey.API_VERSIONS, 0, 1, -1))
    assert client.is_closed()


@pytest.mark.parametrize("token", [b"\0alice\0wrong", b"\0nobody\0secret", b"", b"\0\0", b"\0alice\0", b"\xff\0a\0b"])
def test_a_failure_is_answered_late_and_then_the_connection_is_closed(served: Served, token: bytes) -> None:
    client = served.connect()
    answer = client.log_in(token)
    assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert client.is_closed()


def test_requests_behind_a_failure_get_nothing(served: Served) -> None:
    client = served.connect()
    client.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1)
    client.send(SaslAuthenticateRequest(auth_bytes=b"\0alice\0wrong"), 2)
    client.send(SaslHandshakeRequest(mechanism="PLAIN"), 1)
    client.send(SaslAuthenticateRequest(auth_bytes=ALICE), 2)
    client.send_frame(struct.pack(">hhih", ApiKey.METADATA, 0, 1, -1))
    assert b"Invalid username or password" in client.receive()
    assert client.is_closed()


def test_unknown_user_and_wrong_password_have_one_answer(served: Served) -> None:
    told = {served.connect().log_in(token).error_message for token in (b"\0alice\0wrong", b"\0nobody\0secret")}
    assert len(told) == 1


def test_an_address_whose_logins_fail_too_often_is_held_and_others_are_served(served_with_penalties: Served) -> None:
    served, address = served_with_penalties, "127.0.0.7"
    assert served.connect(address).log_in().error_code == 0
    assert served.connect(address).log_in(b"\0alice\0wrong").error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    held = served.connect(address)
    held.send(SaslHandshakeRequest(mechanism="PLAIN"), 1)
    assert served.connect().log_in().error_code == 0
    assert held.is_closed(), "without an answer"


@pytest.mark.parametrize("said", [b"", struct.pack(">i", -1)])
def test_connections_that_never_log_in_count_as_failed_logins(served_with_penalties: Served, said: bytes) -> None:
    served, address = served_with_penalties, "127.0.0.8"
    client = served.connect(address)
    client.socket.sendall(said)
    client.socket.shutdown(socket.SHUT_WR)
    assert client.is_closed()

    def gets_no_answer() -> bool:
        """The end of the connection may be seen before it is counted; one that is answered is closed, and counts."""
        held = served.connect(address)
        held.send(SaslHandshakeRequest(mechanism="PLAIN"), 1)
        is_closed = held.is_closed()
        held.socket.close()
        return is_closed

    eventually(gets_no_answer)
    assert served.connect().log_in().error_code == 0


def test_another_authorization_id(served: Served) -> None:
    assert served.connect().log_in(b"bob\0alice\0secret").error_code == ErrorCode.SASL_AUTHENTICATION_FAILED


def test_a_mechanism_that_is_not_enabled(served: Served) -> None:
    client = served.connect()
    answer = client.ask(SaslHandshakeRequest(mechanism="GSSAPI"), 1)
    assert answer.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM
    assert set(answer.mechanisms) == {"PLAIN", "SCRAM-SHA-512"}
    assert client.is_closed()


ALLOWED_FIRST = {ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE}


@pytest.mark.parametrize("key", sorted(set(APIS) - ALLOWED_FIRST))
def test_any_other_request_first_closes_the_connection(served: Served, key: int) -> None:
    client = served.connect()
    client.send_frame(struct.pack(">hhih", key, 0, 1, -1) + bytes(50))
    assert client.is_closed()


def test_any_other_request_during_the_exchange_closes_the_connection(served: Served) -> None:
    for key in (ApiKey.METADATA, ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE, ApiKey.PRODUCE):
        client = served.connect()
        client.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1)
        client.send_frame(struct.pack(">hhih", key, 0, 1, -1) + bytes(50))
        assert client.is_closed()


def test_a_large_frame_before_authentication_closes_the_connection(served: Served) -> None:
    client = served.connect()
    client.socket.sendall(struct.pack(">i", 20_000))
    assert client.is_closed()
    logged_in = served.connect()
    logged_in.log_in()
    logged_in.send_frame(struct.pack(">hhih", ApiKey.PRODUCE, 0, 1, -1) + bytes(50_000))
    assert logged_in.receive().startswith(PASSED)


def test_any_bytes_in_any_order_pass_nothing(served: Served) -> None:
    """Frames of nonsense, of tokens and of requests: no answer but of ApiVersions, handshake and authentication."""
    chance = random.Random(18)
    pieces = [
        lambda: struct.pack(">hhih", chance.choice(sorted(APIS)), chance.randrange(4), 1, -1) + chance.randbytes(9),
        lambda: encode_request(
            SaslHandshakeRequest(mechanism=chance.choice(["PLAIN", "X"])), chance.randrange(2), 1, ""
        )[4:],
        lambda: encode_request(SaslAuthenticateRequest(auth_bytes=chance.randbytes(20)), chance.randrange(3), 1, "")[
            4:
        ],
        lambda: b"\0alice\0" + chance.randbytes(3),
        lambda: chance.randbytes(chance.randrange(40)),
    ]
    for _ in range(150):
        client = served.connect()
        with suppress(OSError):
            for _ in range(chance.randrange(1, 5)):
                client.send_frame(chance.choice(pieces)())
            client.socket.shutdown(socket.SHUT_WR)
        with suppress(EOFError, OSError):
            while True:
                answer = client.receive()
                assert not answer.startswith(PASSED) or answer[len(PASSED) :].startswith(b"\0\x12User:ANONYMOUS")
        client.socket.close()


def test_a_session_ends_unless_the_client_authenticates_again(served_for_a_while: Served) -> None:
    served = served_for_a_while
    client, lazy = served.connect(), served.connect()
    assert client.log_in().session_lifetime_ms == 60_000
    assert lazy.log_in(version=0).error_code == 0
    served.clock.shift_ms = 50_000
    assert client.passes() == b"User:alice"
    assert client.log_in().session_lifetime_ms == 60_000
    served.clock.shift_ms = 100_000
    assert client.passes() == b"User:alice"
    lazy.send_frame(struct.pack(">hhih", ApiKey.METADATA, 0, 1, -1))
    assert lazy.is_closed()
    counts = [sample.value for sample in served.gate.samples()]
    assert counts == [2, 1, 0, 1]


def test_an_expired_session_is_not_asked_for_its_versions(served_for_a_while: Served) -> None:
    served = served_for_a_while
    client = served.connect()
    client.log_in()
    served.clock.shift_ms = 100_000
    client.send_frame(struct.pack(">hhih", ApiKey.API_VERSIONS, 0, 1, -1))
    assert client.is_closed()


def test_nobody_becomes_another_by_authenticating_again(served_for_a_while: Served) -> None:
    served = served_for_a_while
    client, switching = served.connect(), served.connect()
    client.log_in()
    switching.log_in()
    served.clock.shift_ms = 2_000
    answer = client.log_in(b"\0bob\0other")
    assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert client.is_closed()
    refused = switching.ask(SaslHandshakeRequest(mechanism="SCRAM-SHA-512"), 1)
    assert refused.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM


def test_authenticating_again_at_once_is_refused(served_for_a_while: Served) -> None:
    client = served_for_a_while.connect()
    client.log_in()
    client.send(SaslHandshakeRequest(mechanism="PLAIN"), 1)
    assert client.is_closed()

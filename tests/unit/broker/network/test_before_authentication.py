"""Any order of bytes and requests before authentication: ApiVersions, handshake and tokens are answered, nothing else.

Drawn walks over three listeners, SASL_PLAINTEXT, SASL_SSL and SSL that demands a certificate, with mechanisms that are
judged on the network thread (PLAIN, SCRAM) and on handler threads (OAUTHBEARER, GSSAPI). A model of a few lines says
whether a walk logs in; nobody else may be served as anybody.
"""

import socket
import ssl
import struct
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from odradek.base.clock import SYSTEM_CLOCK
from odradek.broker.api.sasl_gate import SaslGate
from odradek.broker.network.request import InboundRequest
from odradek.broker.network.server import SocketServer
from odradek.broker.network.settings import ListenerSettings, ServerSettings
from odradek.broker.purgatory.reaper import ExpirationReaper
from odradek.broker.security.authentication.gssapi_server import GssapiServer
from odradek.broker.security.authentication.listener_security import ListenerSecurity
from odradek.broker.security.authentication.listener_tls import ListenerTls
from odradek.broker.security.authentication.mechanisms import PlainServer, SaslServer, ScramServer, ScramSettings
from odradek.broker.security.authentication.oauth_server import OAuthBearerServer
from odradek.broker.security.authentication.sasl_session import SaslListener
from odradek.broker.security.core.scram_credentials import MECHANISMS, credential_of_password, credential_text
from odradek.broker.security.credential_store import KnownCredentials
from odradek.protocol.api_keys import APIS, ApiKey
from odradek.protocol.framing import encode_request
from odradek.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from odradek.protocol.messages.sasl_handshake import SaslHandshakeRequest
from odradek.security.certificates import IssuedCertificate, issue, new_authority
from odradek.security.jwt import AccessToken, TokenRefused
from odradek.security.kerberos import KerberosError
from odradek.security.kerberos_names import ShortNames

ALICE = b"\0alice\0secret"
CORRELATION = 0x51A5
FRAME_BYTES_MAX = 5_000
CREDENTIAL = credential_of_password(MECHANISMS["SCRAM-SHA-512"], "secret", b"salt of a user..", 4096)
MECHANISM_NAMES = ("PLAIN", "SCRAM-SHA-512", "OAUTHBEARER", "GSSAPI")
TOKENS = (
    ALICE,
    b"\0alice\0wrong",
    b"\0nobody\0secret",
    b"n,,n=alice,r=nonce",
    b"c=biws,r=nonce,p=" + b"AAAA" * 16,
    b"n,,\x01auth=Bearer a.b.c\x01\x01",
    b"\x01",
    b"",
    b"\x60\x82ticket",
)


def _known() -> KnownCredentials:
    credentials = KnownCredentials()
    credentials.set_users({"alice": {"SCRAM-SHA-512": credential_text(CREDENTIAL)}})
    return credentials


class _NoContext:
    """Kerberos that takes no ticket."""

    is_complete, peer = False, ""

    def step(self, token: bytes) -> bytes:
        raise KerberosError("not a ticket")

    wrap = unwrap = step


def _no_token(text: str) -> AccessToken:
    raise TokenRefused("not a token")


FACTORIES: dict[str, Callable[[], SaslServer]] = {
    "PLAIN": lambda: PlainServer({"alice": "secret"}),
    "SCRAM-SHA-512": lambda: ScramServer(ScramSettings("SCRAM-SHA-512", _known(), b"x")),
    "OAUTHBEARER": lambda: OAuthBearerServer(_no_token),
    "GSSAPI": lambda: GssapiServer(_NoContext(), ShortNames(["DEFAULT"], "R")),
}


class _Application:
    """The dispatcher's use of the gate; notes each request that passes."""

    def __init__(self, gate: SaslGate) -> None:
        self._gate = gate
        self.passed: list[tuple[int, str]] = []

    def begin(self, request: InboundRequest) -> bool:
        return self._served(request, may_block=False)

    def run(self, request: InboundRequest) -> None:
        self._served(request, may_block=True)

    def rounds(self) -> AbstractContextManager[Callable[[], None]]:
        return nullcontext(lambda: None)

    def _served(self, request: InboundRequest, *, may_block: bool) -> bool:
        session = request.connection.sasl
        if session is not None:
            served = self._gate.begin(request, session, may_block=may_block)
            if served is not None:
                return served
        self.passed.append((int.from_bytes(request.frame[:2], "big"), str(request.connection.principal)))
        request.reply([struct.pack(">ii", 8, -1), b"PASS"])
        return True


@dataclass(frozen=True)
class Move:
    """One thing that a client sends."""

    kind: str
    """handshake, authenticate, request, frame; `bytes` without a frame; `record`: bytes beneath TLS."""
    data: bytes = b""
    mechanism: str = ""
    version: int = 0

    def frame(self) -> bytes:
        match self.kind:
            case "handshake":
                return encode_request(SaslHandshakeRequest(mechanism=self.mechanism), self.version, CORRELATION, "")[4:]
            case "authenticate":
                return encode_request(SaslAuthenticateRequest(auth_bytes=self.data), self.version, CORRELATION, "")[4:]
        return self.data


_handshakes = st.builds(
    Move,
    st.just("handshake"),
    mechanism=st.sampled_from((*MECHANISM_NAMES, "PLAIN", "plain", "EXTERNAL", "")),
    version=st.integers(0, 1),
)
_authentications = st.builds(
    Move, st.just("authenticate"), st.sampled_from(TOKENS) | st.binary(max_size=30), version=st.integers(0, 2)
)
_requests = st.builds(
    lambda key, version, rest: Move("request", struct.pack(">hhih", key, version, CORRELATION, -1) + rest),
    st.sampled_from((*APIS, ApiKey.API_VERSIONS, -1, 999)),
    st.integers(-1, 13),
    st.binary(max_size=20),
)
_frames = st.builds(Move, st.just("frame"), st.sampled_from(TOKENS) | st.binary(max_size=40))
_bytes = st.builds(
    Move, st.just("bytes"), st.binary(max_size=20) | st.sampled_from([b"\x7f\xff\xff\xff", b"\0\0\x20\0"])
)
_records = st.builds(Move, st.just("record"), st.binary(min_size=1, max_size=40))
walks = st.lists(
    st.one_of(_handshakes, _authentications, _handshakes, _authentications, _requests, _frames, _bytes, _records),
    max_size=6,
)


def logs_in(walk: list[Move]) -> bool:
    """Return whether the walk has a handshake for PLAIN and, next after it, the right password in the right form."""
    mechanism, raw = "", False
    for move in walk:
        if move.kind in ("bytes", "record") and not move.data:
            continue
        if mechanism:
            whole = move.frame() if raw else move.data if move.kind == "authenticate" else None
            return mechanism == "PLAIN" and move.kind not in ("bytes", "record") and whole == ALICE
        if move.kind == "handshake" and move.mechanism in MECHANISM_NAMES:
            mechanism, raw = move.mechanism, move.version == 0
        elif move.kind in ("bytes", "record") or move.frame()[:2] != b"\0\x12":
            return False
    return False


@dataclass
class Served:
    server: SocketServer
    application: _Application
    authority: IssuedCertificate
    context: ssl.SSLContext = field(init=False)

    def __post_init__(self) -> None:
        self.context = ssl.create_default_context(cadata=self.authority.certificate.decode())

    def connect(self, listener: str) -> socket.socket:
        plain = socket.create_connection(("127.0.0.1", self.server.port(listener)), 20)
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if listener == "SASL_PLAINTEXT":
            return plain
        return self.context.wrap_socket(plain, server_hostname="127.0.0.1")

    def walk(self, listener: str, walk: list[Move]) -> tuple[list[tuple[int, str]], bytes]:
        """Return the frames that passed, and the bytes of all answers until the broker closed the connection."""
        self.application.passed.clear()
        answers = b""
        with suppress(OSError):
            connection = self.connect(listener)
            with connection:
                with suppress(OSError):
                    for move in walk:
                        _send(connection, move)
                    socket.socket.shutdown(connection, socket.SHUT_WR)
                while chunk := connection.recv(4096):
                    answers += chunk
        return list(self.application.passed), answers


def _send(connection: socket.socket, move: Move) -> None:
    if move.kind == "record":
        socket.socket.sendall(connection, move.data)
    elif move.kind == "bytes":
        connection.sendall(move.data)
    else:
        frame = move.frame()
        connection.sendall(struct.pack(">i", len(frame)) + frame)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    directory = tmp_path_factory.mktemp("before")
    authority = new_authority("test CA", 1)
    issued = issue(authority, "broker", ["127.0.0.1"], 1)
    (directory / "ca.pem").write_bytes(authority.certificate)
    (directory / "broker.pem").write_bytes(issued.key + issued.certificate)
    sasl = SaslListener(FACTORIES, dict.fromkeys(FACTORIES, 0), FRAME_BYTES_MAX, SYSTEM_CLOCK)
    security = {
        "SASL_PLAINTEXT": ListenerSecurity(None, sasl),
        "SASL_SSL": ListenerSecurity(_tls(directory, "none"), sasl),
        "SSL": ListenerSecurity(_tls(directory, "required"), None),
    }
    reaper = ExpirationReaper()
    reaper.start()
    application = _Application(SaslGate(reaper, 1))
    listeners = tuple(ListenerSettings(name, name, "127.0.0.1", 0) for name in security)
    made = ServerSettings(listeners=listeners, num_network_threads=1, num_io_threads=2)
    server = SocketServer(made, application, None, security)
    server.start()
    yield Served(server, application, authority)
    server.stop(0.2)
    reaper.stop()


def _tls(directory: Path, client_auth: str) -> ListenerTls:
    stores = {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(directory / "broker.pem"),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(directory / "ca.pem"),
        "ssl.client.auth": client_auth,
    }
    return ListenerTls("T", stores, "DEFAULT")


drawn = settings(
    max_examples=100, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@pytest.mark.parametrize("listener", ["SASL_PLAINTEXT", "SASL_SSL"])
@drawn
@given(walk=walks)
def test_nothing_passes_a_sasl_listener_but_by_a_login(served: Served, listener: str, walk: list[Move]) -> None:
    passed, answers = served.walk(listener, walk)
    anonymous = {key for key, principal in passed if principal == "User:ANONYMOUS"}
    assert anonymous <= {ApiKey.API_VERSIONS}
    named = {principal for _, principal in passed} - {"User:ANONYMOUS"}
    assert named <= ({"User:alice"} if logs_in(walk) else set())
    asked = sum(move.kind in ("handshake", "authenticate", "frame", "request") for move in walk)
    assert len(answers) <= 400 * asked, "an answer says no more than a handshake or a refusal needs"


_BEGUN = {
    "at first": [],
    "after a handshake": [Move("handshake", mechanism="PLAIN", version=1)],
    "after a handshake of version 0": [Move("handshake", mechanism="SCRAM-SHA-512")],
    "between two tokens": [
        Move("handshake", mechanism="SCRAM-SHA-512", version=1),
        Move("authenticate", b"n,,n=alice,r=nonce"),
    ],
    "after a wrong password": [
        Move("handshake", mechanism="PLAIN", version=1),
        Move("authenticate", b"\0alice\0wrong"),
    ],
    "after an unknown mechanism": [Move("handshake", mechanism="EXTERNAL", version=1)],
}


@pytest.mark.parametrize("begun", _BEGUN.values(), ids=_BEGUN)
def test_no_request_passes_in_any_state_before_the_login(served: Served, begun: list[Move]) -> None:
    """Each request of the protocol, well-formed or not."""
    for key in APIS:
        request = Move("request", struct.pack(">hhih", key, 0, CORRELATION, -1) + bytes(8))
        passed, _ = served.walk("SASL_PLAINTEXT", [*begun, request])
        allowed = [(key, "User:ANONYMOUS")] if key == ApiKey.API_VERSIONS and not begun else []
        assert passed == allowed, ApiKey(key).name


@drawn
@given(walk=walks)
def test_nothing_passes_a_listener_that_demands_certificates(served: Served, walk: list[Move]) -> None:
    passed, answers = served.walk("SSL", walk)
    assert (passed, answers) == ([], b"")


@given(said=st.lists(st.binary(max_size=60), max_size=4), begins=st.sampled_from([b"", b"\x16\x03\x01\0\x20\x01"]))
@drawn
@pytest.mark.parametrize("listener", ["SSL", "SASL_SSL"])
def test_bytes_in_place_of_a_tls_handshake(served: Served, listener: str, said: list[bytes], begins: bytes) -> None:
    served.application.passed.clear()
    with socket.create_connection(("127.0.0.1", served.server.port(listener)), 20) as plain:
        answers = b""
        with suppress(OSError):
            for data in (begins, *said):
                plain.sendall(data)
            plain.shutdown(socket.SHUT_WR)
        with suppress(OSError):
            while chunk := plain.recv(4096):
                answers += chunk
    assert len(answers) <= 7, "an alert at most"
    assert served.application.passed == []


@pytest.mark.parametrize("listener", ["SASL_PLAINTEXT", "SASL_SSL"])
@pytest.mark.parametrize("version", [0, 1])
def test_the_model_s_own_login_passes(served: Served, listener: str, version: int) -> None:
    """The walks above would prove little if none of them could log in."""
    token = Move("frame", ALICE) if version == 0 else Move("authenticate", ALICE)
    metadata = Move("request", struct.pack(">hhih", ApiKey.METADATA, 0, 1, -1))
    walk = [Move("handshake", mechanism="PLAIN", version=version), token, metadata]
    assert logs_in(walk)
    assert served.walk(listener, walk)[0] == [(ApiKey.METADATA, "User:alice")]

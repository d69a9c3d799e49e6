"""TLS listeners: handshakes, records and frames, certificates of clients, and clients that misbehave."""

import shutil
import socket
import ssl
import struct
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext, suppress
from datetime import UTC, datetime, timedelta, tzinfo
from pathlib import Path
from types import SimpleNamespace

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, load_pem_private_key
from cryptography.x509.oid import NameOID

from odradek.base.errors import ConfigError
from odradek.base.file_slice import FileSlice
from odradek.broker.network.connection_timeouts import ConnectionSetups
from odradek.broker.network.placement import HEAVY
from odradek.broker.network.request import InboundRequest
from odradek.broker.network.server import SocketServer
from odradek.broker.network.settings import ListenerSettings, ServerSettings
from odradek.broker.network.tls_transport import TlsTransport
from odradek.broker.security.authentication import listener_tls
from odradek.broker.security.authentication.listener_security import ListenerSecurity
from odradek.broker.security.authentication.listener_tls import ListenerTls
from odradek.security.certificates import IssuedCertificate, issue, new_authority
from odradek.security.tls_contexts import client_context
from waiting import eventually

LARGE = 3_000_000


class Echo:
    """Answers a frame with itself; `file` with a slice of a file; `who` with the principal."""

    def __init__(self, path: Path) -> None:
        path.write_bytes(bytes(range(256)) * (LARGE // 256))
        self._file = path.open("rb", buffering=0)

    def begin(self, request: InboundRequest) -> bool:
        frame = bytes(request.frame)
        if frame == b"file":
            size = self._file.seek(0, 2)
            request.reply([struct.pack(">i", size), FileSlice(self._file, 0, size)])
        elif frame == b"who":
            name = str(request.connection.principal).encode()
            request.reply([struct.pack(">i", len(name)), name])
        else:
            request.reply([struct.pack(">i", len(frame)), frame])
        return True

    def rounds(self) -> AbstractContextManager[Callable[[], None]]:
        return nullcontext(lambda: None)

    def run(self, request: InboundRequest) -> None: ...


@pytest.fixture(scope="module")
def authority() -> IssuedCertificate:
    return new_authority("test CA", 2)


@pytest.fixture(scope="module")
def broker_settings(authority: IssuedCertificate, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    directory = tmp_path_factory.mktemp("tls")
    issued = issue(authority, "broker", ["localhost", "127.0.0.1"], 1)
    (directory / "broker.pem").write_bytes(issued.key + issued.certificate)
    (directory / "ca.pem").write_bytes(authority.certificate)
    return {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(directory / "broker.pem"),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(directory / "ca.pem"),
    }


Serve = Callable[..., SocketServer]


Refusals = list[tuple[str, str, str]]


@pytest.fixture
def refusals() -> Refusals:
    """Listener, address and reason of each refused certificate."""
    return []


@pytest.fixture
def serve(broker_settings: dict[str, str], tmp_path: Path, refusals: Refusals) -> Iterator[Serve]:
    servers: list[SocketServer] = []

    def start(rules: str = "DEFAULT", settings: dict[str, int] | None = None, **ssl_settings: str) -> SocketServer:
        given = {f"ssl.{key.replace('_', '.')}": value for key, value in ssl_settings.items()}
        tls = ListenerTls(
            "SSL", {**broker_settings, **given}, rules, on_refused=lambda *refusal: refusals.append(refusal)
        )
        security = ListenerSecurity(tls, None)
        listeners = (ListenerSettings("SSL", "SSL", "127.0.0.1", 0),)
        made = ServerSettings(listeners=listeners, **{"num_network_threads": 1, **(settings or {})})  # type: ignore[arg-type]
        server = SocketServer(made, Echo(tmp_path / "slice"), None, {"SSL": security})
        servers.append(server)
        server.start()
        return server

    yield start
    for server in servers:
        server.stop(0.2)


def connected(server: SocketServer, authority: IssuedCertificate, **options: str) -> ssl.SSLSocket:
    settings = {
        "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": authority.certificate.decode(),
        **{f"ssl.{key.replace('_', '.')}": value for key, value in options.items()},
    }
    plain = socket.create_connection(("127.0.0.1", server.port("SSL")), 20)
    return client_context(settings).wrap_socket(plain, server_hostname="127.0.0.1")


def key_settings(issued: IssuedCertificate) -> dict[str, str]:
    chain, key = issued.certificate.decode(), issued.key.decode()
    return {"keystore_type": "PEM", "keystore_certificate_chain": chain, "keystore_key": key}


def ask(connection: socket.socket, frame: bytes) -> bytes:
    connection.sendall(struct.pack(">i", len(frame)) + frame)
    return answer(connection)


def answer(connection: socket.socket) -> bytes:
    (size,) = struct.unpack(">i", receive(connection, 4))
    return receive(connection, size)


def receive(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        chunk = connection.recv(size - len(data))
        assert chunk, "closed"
        data += chunk
    return data


def until_closed(connection: socket.socket) -> bytes:
    """Return the bytes before the end, which is a reset where the broker had not read everything."""
    data = b""
    with suppress(ConnectionResetError):
        while chunk := connection.recv(1000):
            data += chunk
    return data


@pytest.mark.parametrize("version", ["TLSv1.2", "TLSv1.3"])
def test_frames_of_every_size(serve: Serve, authority: IssuedCertificate, version: str) -> None:
    with connected(serve(), authority, enabled_protocols=version) as connection:
        assert connection.version() == version
        for size in (1, 16384, 16385, 200_000, LARGE):
            frame = bytes([size % 251]) * size
            assert ask(connection, frame) == frame
        assert ask(connection, b"file") == bytes(range(256)) * (LARGE // 256)


def test_many_small_frames_in_few_records(serve: Serve, authority: IssuedCertificate) -> None:
    """Decrypted bytes of which no selector tells must not be forgotten."""
    with connected(serve(), authority) as connection:
        frames = [bytes([n % 256]) * (n % 700) for n in range(2000)]
        connection.sendall(b"".join(struct.pack(">i", len(frame)) + frame for frame in frames))
        assert [answer(connection) for _ in frames] == frames


def test_a_frame_in_many_records(serve: Serve, authority: IssuedCertificate) -> None:
    """As Java clients send it: size and header, batches, last bytes."""
    with connected(serve(), authority) as connection:
        for size in (100, 17_000, 400_000):
            data = struct.pack(">i", size) + bytes(n % 251 for n in range(size))
            for _ in range(5):
                for part in (data[:3], data[3:60], data[60:-3], data[-3:]):
                    connection.sendall(part)
            for _ in range(5):
                assert answer(connection) == data[4:]


def test_a_client_that_sends_tiny_records_without_end_has_short_turns() -> None:
    ours, theirs = socket.socketpair()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with ours, theirs:
        transport = TlsTransport(ours, context, lambda *_: None, lambda _: None)
        theirs.sendall(bytes(10_000))  # never taken
        transport._tls = SimpleNamespace(read=lambda size, buffer: 1)  # type: ignore[assignment]
        assert transport.recv_into(memoryview(bytearray(10_000))) == 80
        assert not transport.is_behind


def test_handshakes_run_off_the_network_threads(
    serve: Serve, authority: IssuedCertificate, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A step that takes long holds up no other client, and a connection that is closed meanwhile ends with it."""
    held, may_go_on, threads = threading.Event(), threading.Event(), list[str]()
    do_handshake = ssl.SSLSocket.do_handshake

    def slow(self: ssl.SSLSocket, block: bool = False) -> None:
        if self.server_side:
            threads.append(threading.current_thread().name)
            if self.getpeername() == slow_address:
                held.set()
                assert may_go_on.wait(20)
        do_handshake(self, block)

    server = serve(settings={"first_frame_timeout_ms": 3000})
    with socket.create_connection(("127.0.0.1", server.port("SSL")), 20) as plain:
        slow_address = plain.getsockname()
        monkeypatch.setattr(ssl.SSLSocket, "do_handshake", slow)
        plain.sendall(b"\x16\x03\x01\x02\x00\x01")
        assert held.wait(20)
        with connected(server, authority) as other:
            assert ask(other, b"x") == b"x"
            eventually(lambda: server.connections == 1)  # the slow one was not authenticated in time
            may_go_on.set()
            until_closed(plain)
            assert ask(other, b"y") == b"y"
    assert all(name.startswith("handshakes-") for name in threads)


def test_a_reader_that_is_slow(serve: Serve, authority: IssuedCertificate) -> None:
    server = serve()
    with connected(server, authority) as slow, connected(server, authority) as other:
        for _ in range(8):
            slow.sendall(struct.pack(">i", 4) + b"file")
        assert ask(other, b"hello") == b"hello"
        for _ in range(8):
            assert len(answer(slow)) == LARGE // 256 * 256


def test_the_principal_is_the_certificate_s_subject(serve: Serve, authority: IssuedCertificate) -> None:
    alice = key_settings(issue(authority, "alice", [], 1))
    with connected(serve(client_auth="required"), authority, **alice) as connection:
        assert ask(connection, b"who") == b"User:CN=alice,O=Odradek"
    with connected(serve("RULE:^CN=([^,]*).*$/$1/U", client_auth="requested"), authority, **alice) as connection:
        assert ask(connection, b"who") == b"User:ALICE"
    with connected(serve(client_auth="requested"), authority) as connection:
        assert ask(connection, b"who") == b"User:ANONYMOUS"


def refused(server: SocketServer, authority: IssuedCertificate, **options: str) -> bool:
    try:
        with connected(server, authority, **options) as connection:
            return not connection.recv(1)
    except OSError:
        return True


def test_certificates_of_clients_that_are_refused(
    serve: Serve, authority: IssuedCertificate, refusals: Refusals
) -> None:
    server = serve(client_auth="required")
    stranger = new_authority("another CA", 1)
    assert refused(server, authority)
    assert refused(server, authority, **key_settings(issue(stranger, "alice", [], 1)))
    assert refused(server, authority, **key_settings(issue(authority, "alice", [], -1)))
    assert refused(
        serve("RULE:^CN=bob$/x/", client_auth="required"), authority, **key_settings(issue(authority, "a", [], 1))
    )
    assert ("SSL", "127.0.0.1", "no rule of ssl.principal.mapping.rules applies to CN=a,O=Odradek") in refusals


def test_brokers_that_a_client_refuses(serve: Serve, authority: IssuedCertificate) -> None:
    def served_with(issued: IssuedCertificate) -> SocketServer:
        file = {"keystore_location": "", "keystore_certificate_chain": issued.certificate.decode()}
        return serve(**file, keystore_key=issued.key.decode())

    for issued in (issue(authority, "b", ["otherhost"], 1), issue(authority, "b", ["127.0.0.1"], -1)):
        with pytest.raises(ssl.SSLCertVerificationError):
            connected(served_with(issued), authority)
    with pytest.raises(ssl.SSLCertVerificationError):
        connected(serve(), new_authority("another CA", 1))
    with connected(
        served_with(issue(authority, "b", ["otherhost"], 1)), authority, endpoint_identification_algorithm=""
    ) as connection:
        assert ask(connection, b"x") == b"x"


def test_a_plaintext_client_is_closed(serve: Serve, authority: IssuedCertificate) -> None:
    server = serve()
    with socket.create_connection(("127.0.0.1", server.port("SSL")), 20) as plain:
        plain.sendall(struct.pack(">i", 8) + b"whatever" * 10)
        assert len(until_closed(plain)) < 20  # nothing but an alert
    with connected(server, authority) as connection:
        assert ask(connection, b"x") == b"x"


@pytest.mark.parametrize("said", [b"", b"\x16", b"\x16\x03\x01\x02\x00\x01", b"\x16\x03\x01\x00\x05hello"])
def test_half_open_handshakes_end(serve: Serve, authority: IssuedCertificate, said: bytes) -> None:
    server = serve(settings={"first_frame_timeout_ms": 200})
    with connected(server, authority) as connection:
        with socket.create_connection(("127.0.0.1", server.port("SSL")), 20) as silent:
            silent.sendall(said)
            until_closed(silent)
        assert ask(connection, b"x") == b"x"


def test_many_half_open_handshakes_displace_each_other(
    serve: Serve, authority: IssuedCertificate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ConnectionSetups.__init__, "__defaults__", (20,))
    server = serve()
    with connected(server, authority) as connection:
        assert ask(connection, b"x") == b"x"  # the server, too, has completed its handshake
        silent = [socket.create_connection(("127.0.0.1", server.port("SSL")), 20) for _ in range(60)]
        eventually(lambda: server.connections <= 21)
        assert ask(connection, b"x") == b"x"
        with connected(server, authority) as late:
            assert ask(late, b"y") == b"y"
        for half_open in silent:
            half_open.close()


def test_a_heavy_client_moves_to_another_thread_and_speaks_on(serve: Serve, authority: IssuedCertificate) -> None:
    server = serve(settings={"num_network_threads": 2})
    large = bytes(LARGE)
    with connected(server, authority) as connection:
        for _ in range(HEAVY):
            assert ask(connection, large) == large
        eventually(lambda: [processor.connections for processor in server.processors] == [0, 1])
        for frame in (b"small", large, b"small"):
            assert ask(connection, frame) == frame


def test_a_truncated_record_and_a_lost_client(serve: Serve, authority: IssuedCertificate) -> None:
    server = serve()
    connection = connected(server, authority)
    assert ask(connection, b"x") == b"x"
    raw = socket.socket(fileno=connection.detach())
    raw.sendall(b"\x17\x03\x03\x00\x50short")
    raw.close()
    eventually(lambda: server.connections == 0)


def s_client(server: SocketServer, *options: str, said: bytes = b"") -> str:
    """The output of `openssl s_client`, with keys and suites of any strength on its side."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("needs openssl")
    address = f"127.0.0.1:{server.port('SSL')}"
    command = [openssl, "s_client", "-connect", address, *options]
    run = subprocess.run(command, input=said, capture_output=True, timeout=30, check=False)
    return (run.stdout + run.stderr).decode(errors="replace")


def test_renegotiation_is_refused(serve: Serve, broker_settings: dict[str, str]) -> None:
    context = ListenerTls("SSL", broker_settings, "DEFAULT").context
    assert context.options & ssl.OP_NO_RENEGOTIATION
    assert context.options & ssl.OP_NO_COMPRESSION
    told = s_client(serve(), "-tls1_2", said=b"R\n")
    assert "RENEGOTIATING" in told
    assert "no renegotiation" in told


WEAK_SUITES = ("NULL", "aNULL", "EXPORT", "RC4", "3DES", "DES", "MD5", "SEED", "IDEA", "PSK", "SRP", "CAMELLIA")


def test_old_protocols_and_weak_suites_are_refused(serve: Serve) -> None:
    """As testssl probes a server: one offer at a time."""
    server = serve()
    assert "Cipher is (NONE)" not in s_client(server, "-tls1_2")
    assert "Cipher is (NONE)" not in s_client(server, "-tls1_3")
    for version in ("-tls1", "-tls1_1"):
        assert "Cipher is (NONE)" in s_client(server, version, "-cipher", "ALL:@SECLEVEL=0"), version
    for suites in WEAK_SUITES:
        told = s_client(server, "-tls1_2", "-cipher", f"{suites}:@SECLEVEL=0")
        assert "Cipher is (NONE)" in told or "no cipher match" in told or "no ciphers available" in told, suites
    told = s_client(server, "-tls1_2")
    assert "Compression: NONE" in told
    assert "Secure Renegotiation IS supported" in told


def weak_certificate(authority: IssuedCertificate, bits: int) -> IssuedCertificate:
    issuer = x509.load_pem_x509_certificate(authority.certificate)
    key, now = rsa.generate_private_key(65537, bits), datetime.now(UTC)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "alice")])
    builder = x509.CertificateBuilder(issuer.subject, name, key.public_key(), 7).not_valid_before(now)
    signing = load_pem_private_key(authority.key, None)
    signed = builder.not_valid_after(now + timedelta(days=1)).sign(signing, hashes.SHA256())  # type: ignore[arg-type]
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return IssuedCertificate(pem, signed.public_bytes(Encoding.PEM))


def test_weak_certificates_are_refused(serve: Serve, authority: IssuedCertificate, tmp_path: Path) -> None:
    """Keys under 2048 bits: of clients, and of the listener itself."""
    server = serve(client_auth="required")
    for bits, passes in ((2048, True), (1024, False)):
        weak = weak_certificate(authority, bits)
        file = tmp_path / f"{bits}.pem"
        file.write_bytes(weak.key + weak.certificate)
        context = ssl.create_default_context(cadata=authority.certificate.decode())
        context.set_ciphers("DEFAULT:@SECLEVEL=0")
        context.load_cert_chain(file)
        with (
            socket.create_connection(("127.0.0.1", server.port("SSL")), 20) as plain,
            context.wrap_socket(plain, server_hostname="127.0.0.1") as connection,
        ):
            if passes:
                assert ask(connection, b"who") == b"User:CN=alice"
            else:
                with pytest.raises(OSError):
                    ask(connection, b"who")
    weak = weak_certificate(authority, 1024)
    with pytest.raises(ConfigError, match="EE_KEY_TOO_SMALL"):
        serve(
            keystore_location="", keystore_key=weak.key.decode(), keystore_certificate_chain=weak.certificate.decode()
        )


@pytest.mark.parametrize("version", ["TLSv1.2", "TLSv1.3"])
def test_a_resumed_session_is_its_certificate_s_while_that_is_valid(
    serve: Serve, authority: IssuedCertificate, monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    """A handshake that resumes verifies nothing: the certificate's end is looked at again."""
    alice = key_settings(issue(authority, "alice", [], 1))
    server = serve(client_auth="required", enabled_protocols=version)
    options = {f"ssl.{key.replace('_', '.')}": value for key, value in alice.items()}
    context = client_context(
        {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": authority.certificate.decode(), **options}
    )

    def again(session: ssl.SSLSession | None) -> tuple[bytes, ssl.SSLSession | None, bool | None]:
        plain = socket.create_connection(("127.0.0.1", server.port("SSL")), 20)
        with context.wrap_socket(plain, server_hostname="127.0.0.1", session=session) as connection:
            who = ask(connection, b"who")
            return who, connection.session, connection.session_reused

    who, session, _ = again(None)
    assert again(session)[::2] == (who, True) == (b"User:CN=alice,O=Odradek", True)

    class Later(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> datetime:  # type: ignore[override]
            return datetime.now(tz) + timedelta(days=2)

    monkeypatch.setattr(listener_tls, "datetime", Later)
    with pytest.raises((OSError, AssertionError)):
        again(session)


def test_certificates_are_reloaded(authority: IssuedCertificate, tmp_path: Path) -> None:
    file = tmp_path / "broker.pem"

    def write(issued: IssuedCertificate) -> None:
        file.write_bytes(issued.key + issued.certificate)

    write(issue(authority, "broker", ["127.0.0.1"], 1))
    tls = ListenerTls("SSL", {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(file)}, "DEFAULT")
    before, expired_s = tls.context, tls.expires_s
    assert not tls.reload()
    write(issue(authority, "broker", ["127.0.0.1", "localhost"], 2))
    assert tls.reload()
    assert tls.context is not before
    assert tls.expires_s > expired_s
    good = tls.context
    write(issue(authority, "another", ["127.0.0.1", "localhost"], 2))
    assert not tls.reload()
    write(issue(authority, "broker", ["localhost"], 2))
    assert not tls.reload()
    file.write_text("nonsense")
    assert not tls.reload()
    file.unlink()
    assert not tls.reload()
    assert tls.context is good
    write(issue(authority, "broker", ["127.0.0.1", "localhost"], 2))
    assert tls.reload()

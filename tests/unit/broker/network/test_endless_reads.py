"""TLS connections that send messages of the protocol and no data, without end, before any login."""

import re
import select
import socket
import ssl
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest
from frame_client import Echo, framed

from odradek.broker.network.frame_reader import Scratch
from odradek.broker.network.read_watch import READ_NS_MAX, ReadWatch, WatchedReads
from odradek.broker.network.server import SocketServer
from odradek.broker.network.settings import ListenerSettings, ServerSettings
from odradek.broker.network.tls_transport import TlsFrameReader, TlsTransport
from odradek.broker.quotas.core.address_limits import AddressLimits
from odradek.broker.quotas.core.failed_logins import FailedLogins
from odradek.broker.security.authentication.listener_security import ListenerSecurity
from odradek.broker.security.authentication.listener_tls import ListenerTls
from odradek.security.certificates import issue, new_authority
from waiting import eventually

FLOODS, FLOOD_S = 2, 60.0


class Cut:
    def __init__(self) -> None:
        self.count = 0

    def cut(self) -> None:
        self.count += 1


def spend(ns: int) -> None:
    began = time.thread_time_ns()
    while time.thread_time_ns() - began < ns:
        pass


def test_a_read_that_costs_much_is_cut_and_one_that_stands_still_or_comes_again_is_not() -> None:
    reads, transport = WatchedReads(), Cut()
    watch = ReadWatch(lambda: [reads])
    reads.begin(transport)
    watch.look()
    watch.look()
    assert transport.count == 0, "the thread has had no time, however long that was"
    spend(READ_NS_MAX + 1_000_000)
    reads.begin(transport)
    watch.look()
    assert transport.count == 0, "it is another read"
    spend(READ_NS_MAX + 1_000_000)
    watch.look()
    assert transport.count == 1
    reads.transport = None
    watch.look()
    assert transport.count == 1


class Decrypted(TlsTransport):
    """Gives the bytes as pieces of TLS records would, and tells at each read whether it is watched."""

    def __init__(self, data: bytes, reads: WatchedReads) -> None:
        self._data, self._reads = data, reads
        self.watched: list[bool] = []
        self.handshaking = self.is_behind = self.was_cut = self.was_fruitless = False
        self.max_bytes = 1 << 20

    def pending(self) -> int:
        return len(self._data)

    def recv_into(self, buffer: memoryview) -> int:
        self.watched.append(self._reads.transport is self)
        count = min(len(buffer), self.max_bytes, len(self._data))
        buffer[:count], self._data = self._data[:count], self._data[count:]
        self.is_behind = count == min(len(buffer), self.max_bytes)
        return count


def test_all_steps_of_a_read_are_watched() -> None:
    """Of the frame that begins behind a large one, the size is read alone, and more than it may be asked for then."""
    scratch = Scratch(128 << 10)
    large = bytes(200 << 10)
    transport = Decrypted(framed(large) + framed(large)[:100], scratch.tls_reads)
    reader = TlsFrameReader(transport, 1 << 20, lambda: None)
    frames = reader.read(scratch)
    assert frames == [large]
    assert transport.pending() == 0
    assert transport.watched == [True] * 4
    assert scratch.tls_reads.transport is None


class Fruitless(Decrypted):
    def recv_into(self, buffer: memoryview) -> int:
        spend(20_000_000)
        raise BlockingIOError


def test_one_read_may_take_long_and_bring_nothing() -> None:
    """It may have been a collection of garbage that took its time."""
    scratch = Scratch(128 << 10)
    transport = Fruitless(b"", scratch.tls_reads)
    reader = TlsFrameReader(transport, 1 << 20, lambda: None)
    with pytest.raises(BlockingIOError):
        reader.read(scratch)
    assert not transport.was_cut
    with pytest.raises(OSError, match="no data"):
        reader.read(scratch)
    assert transport.was_cut


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[SocketServer, FailedLogins, ssl.SSLContext]]:
    authority = new_authority("test CA", 1)
    issued = issue(authority, "broker", ["127.0.0.1"], 1)
    (tmp_path / "broker.pem").write_bytes(issued.key + issued.certificate)
    stores = {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(tmp_path / "broker.pem")}
    failed = FailedLogins(100)
    listeners = (ListenerSettings("SSL", "SSL", "127.0.0.1", 0),)
    security = {"SSL": ListenerSecurity(ListenerTls("SSL", stores, "DEFAULT"), None)}
    settings = ServerSettings(listeners=listeners, num_network_threads=1)
    server = SocketServer(settings, Echo(), AddressLimits(failed), security)
    server.start()
    yield server, failed, ssl.create_default_context(cadata=authority.certificate.decode())
    server.stop(0.2)


def openssl() -> str:
    """Return the library that this interpreter has loaded."""
    found = re.search(r"/\S*libssl\.so\S*", Path("/proc/self/maps").read_text())
    if found is None:
        pytest.skip("OpenSSL is part of this interpreter, and can't be called from it")
    return found[0]


def test_key_updates_without_end_hold_up_others_for_a_moment_and_end_with_the_connection(
    served: tuple[SocketServer, FailedLogins, ssl.SSLContext],
) -> None:
    server, failed, context = served
    program = Path(__file__).with_name("key_updates.py")
    plain = socket.create_connection(("127.0.0.1", server.port("SSL")), 60)
    with context.wrap_socket(plain, server_hostname="127.0.0.1") as other:
        command = [sys.executable, str(program), openssl(), str(server.port("SSL")), str(FLOOD_S)]
        floods = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(FLOODS)]
        try:
            while any(flood.poll() is None for flood in floods):
                other.sendall(framed(b"x"))
                assert other.recv(100).endswith(b"x")
            assert all(flood.communicate()[0].endswith(" ended\n") for flood in floods)
        finally:
            for flood in floods:
                flood.kill()
                flood.wait()
        eventually(lambda: failed.wait_ms("127.0.0.1", int(time.monotonic() * 1000)) > 0)


class Notifying(socket.socket):
    """A TLS socket whose client sends more at the moment of close_notify, behind which OpenSSL reads."""

    client: socket.socket
    readable: list[bool]

    def unwrap(self) -> None:
        self.client.sendall(b"more")
        self.readable.append(bool(select.select([self], [], [], 0)[0]))


@pytest.mark.parametrize(("sent", "readable"), [(b"", [False]), (b"something", [])])
def test_nothing_is_read_behind_close_notify(sent: bytes, readable: list[bool]) -> None:
    """Else a client that goes on and on would have the thread that closes its connection."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        client = socket.create_connection(listening.getsockname(), 20)
        accepted, _ = listening.accept()
    with client, Notifying(fileno=accepted.detach()) as notifying:
        notifying.client, notifying.readable = client, []
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        transport = TlsTransport(notifying, context, lambda certificate, resumed: None, lambda reason: None)
        transport.handshaking, transport._plain = False, None
        transport._tls = cast(ssl.SSLSocket, notifying)
        client.sendall(sent)
        eventually(lambda: transport._arrived() == len(sent))
        transport.close()
        assert notifying.readable == readable


def test_who_closes_tells_a_client_that_says_nothing(
    served: tuple[SocketServer, FailedLogins, ssl.SSLContext],
) -> None:
    server, _, context = served
    plain = socket.create_connection(("127.0.0.1", server.port("SSL")), 20)
    with context.wrap_socket(plain, server_hostname="127.0.0.1", suppress_ragged_eofs=False) as client:
        client.sendall(framed(b"x"))
        assert client.recv(100).endswith(b"x")
        server.processors[0].close(next(iter(server.processors[0]._connections.values())), "its time is over")
        assert client.recv(100) == b"", "close_notify came before the end"


def test_a_step_of_a_handshake_ends_with_its_connection(
    served: tuple[SocketServer, FailedLogins, ssl.SSLContext], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a client that goes on and on would have the thread of the step."""
    server, _, _ = served
    began, ended = threading.Event(), threading.Event()

    def endless(self: ssl.SSLSocket, block: bool = False) -> None:
        began.set()
        socket.socket.setblocking(self, True)
        try:
            while socket.socket.recv(self, 1000):
                pass
        finally:
            ended.set()

    monkeypatch.setattr(ssl.SSLSocket, "do_handshake", endless)
    with socket.create_connection(("127.0.0.1", server.port("SSL")), 20) as plain:
        plain.sendall(struct.pack(">i", 1))
        assert began.wait(20)
        server.processors[0].close(next(iter(server.processors[0]._connections.values())), "its time is over")
        assert ended.wait(20)

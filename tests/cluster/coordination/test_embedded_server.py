"""The embedded coordination server as a process: crashes, sessions, hostile bytes, Apache ZooKeeper in its place."""

import os
import random
import signal
import socket
import struct
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from cluster.coordination.raw_client import Event, Operation, RawClient, create, nothing, read_names, read_stat
from odradek.local.coordination.core import jute
from odradek.local.coordination.core.protocol import Code, OpCode
from odradek.local.coordinators import CoordinationProcess
from odradek.local.zookeeper_server import EmbeddedZooKeeper

_EPHEMERAL, _SEQUENTIAL = 1, 2


@pytest.fixture
def server(tmp_path: Path) -> Iterator[CoordinationProcess]:
    started = CoordinationProcess(tmp_path / "zookeeper")
    started.start()
    yield started
    started.stop()


def exists(path: str, watch: bool = False) -> Operation:
    return Operation(OpCode.EXISTS, jute.string(path) + jute.boolean(watch), read_stat)


def children(path: str) -> Operation:
    return Operation(OpCode.GET_CHILDREN, jute.string(path) + jute.boolean(False), read_names)


def word(server: EmbeddedZooKeeper, text: bytes) -> str:
    host, _, port = server.connect.partition(":")
    with socket.create_connection((host, int(port)), timeout=10) as connection:
        connection.sendall(text)
        return b"".join(iter(lambda: connection.recv(4096), b"")).decode()


def test_a_session_outlives_a_crash_of_the_server_with_its_nodes(server: CoordinationProcess) -> None:
    client = RawClient(server.connect)
    assert client.call(create("/e", b"x", _EPHEMERAL)).error == 0
    for _ in range(3):
        server.kill()
        server.start()
        assert client.connect(), "the session is known"
        found = client.call(exists("/e"))
        assert isinstance(found.body, dict)
        assert found.body["owner"] == client.session_id
    other = RawClient(server.connect)
    other._password, other.session_id = bytes(16), client.session_id
    assert not other.connect(), "a session can't be taken without its password"
    assert client.close_session().error == 0
    assert RawClient(server.connect).call(exists("/e")).error == Code.NO_NODE


def test_killed_at_any_moment_it_has_all_that_it_answered(server: CoordinationProcess) -> None:
    RawClient(server.connect).call(create("/n", b"", 0))
    answered: set[str] = set()

    def write() -> None:
        client = RawClient(server.connect)
        try:
            while True:
                made = client.call(create("/n/", b"data", _SEQUENTIAL)).body
                assert isinstance(made, str)
                answered.add(made.rpartition("/")[2])
        except OSError:
            client.drop()

    for _ in range(4):
        before = len(answered)
        writers = [threading.Thread(target=write) for _ in range(4)]
        for writer in writers:
            writer.start()
        while len(answered) < before + 10:
            threading.Event().wait(random.random() / 50)
        server.kill()
        for writer in writers:
            writer.join()
        server.start()
    found = RawClient(server.connect).call(children("/n")).body
    assert isinstance(found, list)
    assert answered <= set(found)
    assert len(found) <= len(answered) + 4 * 4, "at most one of each writer was not answered"


def test_a_silent_session_expires_and_a_stopped_server_hears_its_clients_first(server: CoordinationProcess) -> None:
    watching = RawClient(server.connect, timeout_ms=20_000)
    silent = RawClient(server.connect, timeout_ms=1)
    assert silent.negotiated_ms == 1000
    silent.call(create("/e", b"", _EPHEMERAL))
    watching.call(exists("/e", watch=True))
    silent.drop()
    frame = watching.read_frame()
    assert struct.unpack_from(">ii", frame, 16) == (2, 3), "deleted"
    assert not silent.connect()

    live = RawClient(server.connect, timeout_ms=1)
    assert server.pid is not None
    os.kill(server.pid, signal.SIGSTOP)
    live.send(struct.pack(">ii", -2, OpCode.PING))
    threading.Event().wait(2.5)
    os.kill(server.pid, signal.SIGCONT)
    assert struct.unpack_from(">i", live.read_frame())[0] == -2
    assert live.ping().error == 0, "its ping was there in time"


def test_apache_zookeeper_goes_on_with_the_directory_and_back(server: CoordinationProcess, tmp_path: Path) -> None:
    client = RawClient(server.connect)
    client.call(create("/a", b"one", 0))
    client.call(create("/a/s-", None, _SEQUENTIAL))
    client.call(create("/a/", b"", 0))
    client.call(Operation(OpCode.SET_DATA, jute.string("/a") + jute.buffer(b"two") + jute.int32(0), read_stat))
    client.call(create("/mine", b"", 0, [(31, "ip", "127.0.0.1"), (1, "world", "anyone")]))
    client.close_session()
    before = _picture(server)
    server.kill()
    with (tmp_path / "zookeeper" / "data" / "version-2" / "log.1").open("r+b") as log:
        log.seek(len(log.read().rstrip(b"\0")))
        log.write(b"\0\0\0\0\1")
    server.start()
    assert _picture(server) == before
    server.stop()
    apache = EmbeddedZooKeeper(tmp_path / "zookeeper")
    apache.start()
    try:
        assert _picture(apache) == before
        client = RawClient(apache.connect)
        client.call(create("/by-apache", b"three", 0))
        client.close_session()
        after = _picture(apache)
    finally:
        apache.kill()
    server.start()
    assert _picture(server) == after
    assert "/by-apache" in after


def _picture(server: EmbeddedZooKeeper) -> dict[str, object]:
    client = RawClient(server.connect)
    found: dict[str, object] = {}
    pending = ["/"]
    while pending:
        path = pending.pop()
        read = Operation(
            OpCode.GET_CHILDREN2, jute.string(path) + jute.boolean(False), lambda r: (read_names(r), read_stat(r))
        )
        names, stat = client.call(read).body  # type: ignore[misc]
        acls = client.call(Operation(OpCode.GET_ACL, jute.string(path), lambda r: (r.raw(r.remaining - 68), r.raw(68))))
        found[path] = (stat, acls.body[0])  # type: ignore[index]
        pending += [f"{path.rstrip('/')}/{name}" for name in names]
    client.close_session()
    return found


def test_hostile_bytes_cost_nothing(server: CoordinationProcess) -> None:
    good = RawClient(server.connect)
    good.call(create("/a", b"", 0))
    good.call(exists("/a", watch=True))
    chance = random.Random(1)
    host, _, port = server.connect.partition(":")
    for n in range(60):
        with socket.create_connection((host, int(port)), timeout=10) as connection:
            if n % 3 == 0:
                connection.sendall(chance.randbytes(200))
            elif n % 3 == 1:
                connection.sendall(struct.pack(">i", chance.choice((-1, 1 << 30, 0xFFFFF + 1, 0))))
            else:
                connection.sendall(struct.pack(">i", 0xFFFFF) + bytes(100))
    for kind in (*OpCode, 99):
        hostile = RawClient(server.connect)
        for body in (b"", b"\xff" * 12, struct.pack(">i", 1 << 30) + b"abc", chance.randbytes(40), jute.string("/a")):
            try:
                hostile.send(struct.pack(">ii", 5, kind) + body)
                hostile.read_frame()
            except ConnectionError:
                break
        hostile.drop()
    good.call(Operation(OpCode.SET_DATA, jute.string("/a") + jute.buffer(b"x") + jute.int32(-1), read_stat))
    assert [(event.kind, event.path) for event in good.events] == [(3, "/a")]
    assert Event(good.seen_zxid, 3, "/a") in good.events
    with pytest.raises(ConnectionError):
        RawClient(server.connect).call(Operation(OpCode.RECONFIG, bytes(0x100000), nothing))


def test_a_client_that_takes_no_answers_waits_and_gets_them_all(server: CoordinationProcess) -> None:
    client = RawClient(server.connect)
    client.call(create("/large", bytes(900_000), 0))
    read = jute.string("/large") + jute.boolean(False)
    sender = threading.Thread(target=lambda: [client.send(struct.pack(">ii", n, 4) + read) for n in range(200)])
    sender.start()
    assert RawClient(server.connect).ping().error == 0
    assert [struct.unpack_from(">i", client.read_frame())[0] for _ in range(200)] == list(range(200))
    sender.join()


def test_four_letter_words(server: CoordinationProcess) -> None:
    client = RawClient(server.connect)
    client.call(exists("/a", watch=True))
    assert word(server, b"ruok") == "imok"
    assert "Mode: standalone\nNode count: 5\n" in word(server, b"srvr")
    assert "embedded coordination server for one machine" in word(server, b"stat")
    assert "zk_watch_count\t1\n" in word(server, b"mntr")
    assert "minSessionTimeout=1000\n" in word(server, b"conf")
    assert word(server, b"wchs") == "wchs is not executed because it is not in the whitelist.\n"

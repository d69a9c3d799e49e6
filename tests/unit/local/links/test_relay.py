"""A relay between this process, which plays a broker, and a server that says what it hears."""

import asyncio
import contextlib
import os
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from odradek.local.links import socket_owner
from odradek.local.links.cuts import CutFrom, write_cuts
from odradek.local.links.plan import Link, Plan
from odradek.local.links.relay import Relay
from odradek.local.links.socket_owner import owner
from odradek.local.zookeeper_server import free_port, port_is_taken

PATIENCE_S = 30
SILENCE_S = 0.5
ME = 7


@dataclass
class Stage:
    plan: Plan
    cuts: Path
    pids: list[tuple[int, int]]

    def connect(self, port: int) -> socket.socket:
        connection = socket.create_connection(("127.0.0.1", port), PATIENCE_S)
        connection.settimeout(PATIENCE_S)
        return connection


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    echo = socket.create_server(("127.0.0.1", 0))
    threading.Thread(target=_echo, args=(echo,), daemon=True).start()
    target = f"127.0.0.1:{echo.getsockname()[1]}"
    plan = Plan(target, (Link(free_port(), target),), {ME: Link(free_port(), target), 8: Link(free_port(), target)})
    loop = asyncio.new_event_loop()
    pids = [(ME, os.getpid())]
    relay = Relay(plan, tmp_path / "cuts.json", lambda: list(pids))
    running = loop.create_task(relay.run())
    thread = threading.Thread(target=_run, args=(loop, running), daemon=True)
    thread.start()
    while not all(port_is_taken(link.port) for link in (*plan.servers, *plan.brokers.values())):
        assert thread.is_alive()
    yield Stage(plan, tmp_path / "cuts.json", pids)
    loop.call_soon_threadsafe(running.cancel)
    thread.join(PATIENCE_S)
    echo.close()


def _run(loop: asyncio.AbstractEventLoop, running: "asyncio.Task[None]") -> None:
    asyncio.set_event_loop(loop)
    try:
        loop.run_until_complete(running)
    except asyncio.CancelledError:
        for task in asyncio.all_tasks(loop):
            task.cancel()
        loop.run_until_complete(asyncio.sleep(0.1))
        loop.close()


def _echo(server: socket.socket) -> None:
    while True:
        try:
            connection, _ = server.accept()
        except OSError:
            return
        threading.Thread(target=_answer, args=(connection,), daemon=True).start()


def _answer(connection: socket.socket) -> None:
    with connection, contextlib.suppress(OSError):
        while data := connection.recv(1 << 16):
            connection.sendall(data)


def _is_silent(connection: socket.socket) -> bool:
    connection.settimeout(SILENCE_S)
    try:
        connection.recv(1)
    except TimeoutError:
        return True
    finally:
        connection.settimeout(PATIENCE_S)
    return False


def _await_cut(connection: socket.socket) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while True:  # the relay looks ten times a second
        connection.sendall(b"2")
        if _is_silent(connection):
            return
        assert time.monotonic() < deadline, "the connection is not cut"


def _hears(connection: socket.socket, said: bytes) -> bool:
    heard = b""
    while len(heard) < len(said) and (data := connection.recv(len(said) - len(heard))):
        heard += data
    return heard == said


def test_bytes_are_carried(stage: Stage) -> None:
    with stage.connect(stage.plan.servers[0].port) as connection:
        said = os.urandom(3 << 20)
        threading.Thread(target=connection.sendall, args=(said,), daemon=True).start()
        assert _hears(connection, said)


def test_a_cut_is_silence_and_what_was_said_meanwhile_arrives_when_it_is_healed(stage: Stage) -> None:
    with stage.connect(stage.plan.servers[0].port) as before, stage.connect(stage.plan.brokers[8].port) as peer:
        before.sendall(b"one")
        assert _hears(before, b"one")
        write_cuts(stage.cuts, {ME: frozenset({CutFrom.ZOOKEEPER})})
        _await_cut(before)
        with stage.connect(stage.plan.servers[0].port) as during:
            during.sendall(b"three")
            assert _is_silent(during)
            peer.sendall(b"others")
            assert _hears(peer, b"others"), "only what is cut is silent"
            write_cuts(stage.cuts, {})
            assert _hears(before, b"2")
            assert _hears(during, b"three")


def test_a_broker_reaches_itself_whatever_is_cut(stage: Stage) -> None:
    write_cuts(stage.cuts, {ME: frozenset(CutFrom)})
    with stage.connect(stage.plan.brokers[8].port) as other, stage.connect(stage.plan.brokers[ME].port) as itself:
        _await_cut(other)
        itself.sendall(b"me")
        assert _hears(itself, b"me")


def test_a_broker_that_connects_before_its_process_is_known_is_cut_off_too(stage: Stage) -> None:
    stage.pids.clear()
    with stage.connect(stage.plan.servers[0].port) as connection:
        connection.sendall(b"one")
        assert _hears(connection, b"one")
        stage.pids.append((ME, os.getpid()))
        write_cuts(stage.cuts, {ME: frozenset({CutFrom.ZOOKEEPER})})
        _await_cut(connection)


def test_a_broker_whose_process_becomes_known_while_it_is_cut_off_is_cut_off(stage: Stage) -> None:
    stage.pids.clear()
    write_cuts(stage.cuts, {ME: frozenset({CutFrom.ZOOKEEPER})})
    with stage.connect(stage.plan.servers[0].port) as connection:
        connection.sendall(b"one")
        assert _hears(connection, b"one")
        stage.pids.append((ME, os.getpid()))
        _await_cut(connection)


def test_an_end_is_an_end_for_both(stage: Stage) -> None:
    with stage.connect(stage.plan.servers[0].port) as connection:
        connection.sendall(b"bye")
        connection.shutdown(socket.SHUT_WR)
        assert connection.recv(16) in (b"bye", b"")


def test_who_holds_the_other_end() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)) as client:
            here = client.getsockname()[1]
            inode = os.fstat(client.fileno()).st_ino
            assert socket_owner.listed(here, port) == inode
            assert socket_owner.asked(here, port) in (inode, None), "None where the kernel lacks sock_diag"
            assert owner(port, here, [(1, 1), (ME, os.getpid())]) == ME
            assert owner(port, here, [(1, os.getppid())]) is None
            assert owner(1, here, [(ME, os.getpid())]) is None

"""Limits of connections, and connections beyond them."""

import gc
import os
import resource
import subprocess
import sys
import time
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path

import pytest
from frame_client import Echo, FrameClient

from odradek.base.errors import FatalError
from odradek.broker.network import acceptor, connection_quotas
from odradek.broker.network.connection_quotas import ConnectionQuotas
from odradek.broker.network.server import SocketServer
from odradek.broker.network.settings import ListenerSettings, ServerSettings
from odradek.broker.quotas.core.address_limits import AddressLimits
from waiting import PATIENCE_S, eventually


def test_a_thousand_idle_connections_cost_little_and_leave_nothing(serve, connect):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < 3000:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 3000), hard))
    server = serve(Echo(), num_network_threads=2, socket_listen_backlog_size=1000)
    gc.collect()
    before = len(os.listdir("/proc/self/fd"))
    clients = [connect(server) for _ in range(1000)]
    eventually(lambda: server.connections == 1000)
    eventually(lambda: [processor.connections for processor in server.processors] == [1000, 0])
    assert clients[567].ask(b"hello") == b"hello"
    for client in clients:
        client.close()
    eventually(lambda: server.connections == 0)
    assert len(os.listdir("/proc/self/fd")) <= before  # fewer where an earlier test's server was freed meanwhile


def test_beyond_max_connections_the_next_one_waits_for_a_place(serve, connect):
    server = serve(Echo(), max_connections=2)
    first, second = connect(server), connect(server)
    assert first.ask(b"1") == b"1"
    assert second.ask(b"2") == b"2"
    third = connect(server)
    third.send(b"3")
    third.socket.settimeout(0.2)
    with pytest.raises(TimeoutError):
        third.receive()
    first.close()
    third.socket.settimeout(PATIENCE_S)
    assert third.receive() == b"3"


def test_the_inter_broker_listener_is_never_full(serve, connect):
    listeners = tuple(ListenerSettings(name, "PLAINTEXT", "127.0.0.1", 0) for name in ("CLIENTS", "BROKERS"))
    server = serve(Echo(), max_connections=1, listeners=listeners, inter_broker_listener="BROKERS")
    client = connect(server, "CLIENTS")
    assert client.ask(b"1") == b"1"
    broker = connect(server, "BROKERS")
    assert broker.ask(b"2") == b"2"
    assert client.is_closed()
    assert broker.ask(b"3") == b"3"


def two_listeners(**first: int) -> tuple[ListenerSettings, ...]:
    """The first one with settings of its own."""
    return (
        ListenerSettings("OUTSIDE", "PLAINTEXT", "127.0.0.1", 0, **first),
        ListenerSettings("INSIDE", "PLAINTEXT", "127.0.0.1", 0),
    )


@pytest.mark.parametrize("inter_broker_listener", ["INSIDE", "OUTSIDE"])
def test_a_full_listener_makes_its_own_clients_wait_and_no_others(serve, connect, inter_broker_listener):
    server = serve(Echo(), listeners=two_listeners(max_connections=1), inter_broker_listener=inter_broker_listener)
    first, waiting = connect(server, "OUTSIDE"), connect(server, "OUTSIDE")
    assert first.ask(b"1") == b"1"
    waiting.send(b"2")
    inside = [connect(server, "INSIDE") for _ in range(2)]
    assert [client.ask(b"x") for client in inside] == [b"x", b"x"]
    inside[0].close()
    waiting.socket.settimeout(0.2)
    with pytest.raises(TimeoutError):
        waiting.receive()
    first.close()
    waiting.socket.settimeout(PATIENCE_S)
    assert waiting.receive() == b"2"


def test_a_place_that_is_free_goes_to_the_listener_it_belongs_to(serve, connect):
    """A listener whose client waits later than that of another one."""
    listeners = tuple(ListenerSettings(name, "PLAINTEXT", "127.0.0.1", 0, max_connections=1) for name in ("A", "B"))
    server = serve(Echo(), listeners=listeners)
    holders = {name: connect(server, name) for name in ("A", "B")}
    assert [holder.ask(b"x") for holder in holders.values()] == [b"x", b"x"]
    waiting = {}
    for name in ("A", "B"):
        waiting[name] = connect(server, name)
        waiting[name].send(name.encode())
        waiting[name].socket.settimeout(0.2)
        with pytest.raises(TimeoutError):
            waiting[name].receive()
    holders["B"].close()
    waiting["B"].socket.settimeout(PATIENCE_S)
    assert waiting["B"].receive() == b"B"


def test_a_listener_has_a_rate_of_its_own(serve, connect):
    server = serve(Echo(), listeners=two_listeners(max_connection_creation_rate=20))
    began = time.monotonic()
    for _ in range(30):
        connect(server, "INSIDE")
    eventually(lambda: server.connections == 30)
    fast_s = time.monotonic() - began
    for _ in range(30):
        connect(server, "OUTSIDE")
    eventually(lambda: server.connections == 60)
    assert time.monotonic() - began - fast_s > 0.3


def test_a_listener_has_a_number_of_threads_of_its_own(serve):
    server = serve(Echo(), listeners=two_listeners(num_network_threads=1), num_network_threads=2)
    assert len(server.processors) == 3
    server.reconfigure(replace(server.settings, num_network_threads=4))
    eventually(lambda: len(server.processors) == 5)


def test_an_address_beyond_its_own_limit_is_refused(serve, connect):
    server = serve(Echo(), max_connections_per_ip=1)
    first = connect(server)
    assert first.ask(b"1") == b"1"
    assert connect(server).is_closed()
    assert first.ask(b"2") == b"2"
    first.close()
    eventually(lambda: server.connections == 0)
    assert connect(server).ask(b"3") == b"3"


def test_an_override_takes_the_place_of_the_limit_per_address(serve, connect):
    server = serve(Echo(), max_connections_per_ip=1, max_connections_per_ip_overrides={"127.0.0.1": 2})
    clients = [connect(server), connect(server)]
    assert [client.ask(b"x") for client in clients] == [b"x", b"x"]
    assert connect(server).is_closed()


def test_new_connections_come_no_faster_than_allowed(serve, connect):
    server = serve(Echo(), max_connection_creation_rate=20)
    began = time.monotonic()
    for _ in range(30):
        connect(server)
    eventually(lambda: server.connections == 30)
    assert time.monotonic() - began > 0.3


def test_new_connections_come_as_fast_as_allowed(monkeypatch):
    listener = ListenerSettings("PLAINTEXT", "PLAINTEXT", "127.0.0.1", 0)
    quotas = ConnectionQuotas(ServerSettings((listener,), max_connection_creation_rate=20), AddressLimits())
    now_s, admitted_at = 1000.0, []

    def sleep(seconds: float) -> None:
        nonlocal now_s
        now_s += seconds

    monkeypatch.setattr(connection_quotas, "monotonic", lambda: now_s)
    monkeypatch.setattr(quotas._changed, "wait", sleep)
    for _ in range(30):
        quotas.admit("PLAINTEXT", "127.0.0.1")
        admitted_at.append(now_s - 1000)
    at_once = 21  # a second's worth, and the one that overdraws it
    later = [number / 20 for number in range(1, 30 - at_once + 1)]
    assert admitted_at == pytest.approx([0.0] * at_once + later)


def test_a_taken_port_is_a_clear_error(serve):
    server = serve(Echo())
    listener = ListenerSettings("PLAINTEXT", "PLAINTEXT", "127.0.0.1", server.port("PLAINTEXT"))
    second = SocketServer(ServerSettings((listener,)), Echo())
    with pytest.raises(FatalError, match=r"listener PLAINTEXT can't listen on 127.0.0.1:\d+"):
        second.bind()


def test_clients_may_connect_between_bind_and_start(connect):
    server = SocketServer(ServerSettings((ListenerSettings("PLAINTEXT", "PLAINTEXT", "127.0.0.1", 0),)), Echo())
    server.bind()
    client = connect(server)
    client.send(b"early")
    server.start()
    assert client.receive() == b"early"
    server.stop(0.1)


def test_running_out_of_descriptors_pauses_accepting():
    command = [sys.executable, str(Path(__file__).with_name("full_server.py"))]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with ExitStack() as stack:
        server = stack.enter_context(
            subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)
        )
        stack.callback(server.kill)

        def tell(what: str) -> tuple[int, list[float]]:
            server.stdin.write(f"{what}\n")
            server.stdin.flush()
            connections, *failed_at_s = server.stdout.readline().split()
            return int(connections), [float(at_s) for at_s in failed_at_s]

        port = int(server.stdout.readline())
        good = stack.enter_context(closing(FrameClient(port)))
        assert good.ask(b"a") == b"a"
        tell("take")
        connected_at_s = time.monotonic()
        late = [stack.enter_context(closing(FrameClient(port))) for _ in range(10)]
        eventually(lambda: len(tell("how many")[1]) >= 4)
        assert good.ask(b"b") == b"b"
        connections, failed_at_s = tell("how many")
        assert connections <= 2, "accept may have had a descriptor for one already; the others wait in the kernel"
        tries_max = 1 + (failed_at_s[-1] - connected_at_s) / acceptor._PAUSE_AFTER_ERROR_S
        assert len(failed_at_s) <= tries_max, "it would try again at once"
        tell("free")
        assert [client.ask(b"late") for client in late] == [b"late"] * 10
        assert tell("how many")[0] == 11

"""A real server on loopback, and clients for it."""

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import pytest
from frame_client import FrameClient

from odradek.broker.network.request import Application
from odradek.broker.network.server import SocketServer
from odradek.broker.network.settings import ListenerSettings, ServerSettings

Serve: TypeAlias = Callable[..., SocketServer]


@pytest.fixture
def serve() -> Iterator[Serve]:
    servers = []

    def start(application: Application, **settings: Any) -> SocketServer:
        settings.setdefault("num_network_threads", 1)
        settings.setdefault("listeners", (ListenerSettings("PLAINTEXT", "PLAINTEXT", "127.0.0.1", 0),))
        server = SocketServer(ServerSettings(**settings), application)
        servers.append(server)
        server.start()
        return server

    yield start
    for server in servers:
        server.stop(0.2)


@pytest.fixture
def connect() -> Iterator[Callable[..., FrameClient]]:
    clients = []

    def open_client(*arguments: Any, **options: Any) -> FrameClient:
        clients.append(FrameClient(*arguments, **options))
        return clients[-1]

    yield open_client
    for client in clients:
        client.close()

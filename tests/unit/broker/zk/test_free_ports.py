"""Ports that are chosen before anybody listens on them."""

import socket

import pytest

from odradek.local import zookeeper_server
from odradek.local.zookeeper_server import free_port, port_is_taken


def test_a_port_is_given_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zookeeper_server, "_drawn", zookeeper_server._draws())  # the tests before drew some already
    given = [free_port() for _ in range(20)]
    assert len(set(given)) == len(given)


def test_a_port_that_somebody_listens_on_is_passed_over() -> None:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", free_port()))
        assert port_is_taken(listening.getsockname()[1])
    assert not port_is_taken(free_port())

"""The kernel drops attempts of an address, and of no other, and lets established connections be."""

import socket
from collections.abc import Iterator

import pytest

from odradek.broker.network.address_filter import ADDRESSES_MAX, AddressFilter

SHORT_S = 0.15


@pytest.fixture(params=[("127.0.0.1", "127.0.0.7", "127.0.0.8"), ("::1", "::1", None)], ids=["IPv4", "IPv6"])
def addresses(request: pytest.FixtureRequest) -> tuple[str, str, str | None]:
    """Of the listener, of the one who is dropped, and of another."""
    found: tuple[str, str, str | None] = request.param
    return found


@pytest.fixture
def listening(addresses: tuple[str, str, str | None]) -> Iterator[socket.socket]:
    family = socket.AF_INET6 if ":" in addresses[0] else socket.AF_INET
    try:
        made = socket.create_server((addresses[0], 0), family=family)
    except OSError:
        pytest.skip("no IPv6 here")
    with made:
        yield made


def connects(listening: socket.socket, source: str) -> bool:
    try:
        socket.create_connection(listening.getsockname()[:2], SHORT_S, (source, 0)).close()
    except TimeoutError:
        return False
    return True


def test_attempts_of_one_address(listening: socket.socket, addresses: tuple[str, str, str | None]) -> None:
    _, dropped, another = addresses
    attempts = AddressFilter(listening)
    with socket.create_connection(listening.getsockname()[:2], 20, (dropped, 0)) as before:
        attempts.drop(dropped, 5.0)
        assert attempts.next_end == 5.0
        assert not connects(listening, dropped)
        assert another is None or connects(listening, another)
        accepted, _ = listening.accept()
        before.sendall(b"x")
        assert accepted.recv(1) == b"x"
        accepted.close()
    attempts.end(4.9)
    assert not connects(listening, dropped)
    attempts.end(5.0)
    assert not attempts.next_end
    assert connects(listening, dropped)


def test_a_dual_stack_listener_sees_both_kinds() -> None:
    if not socket.has_dualstack_ipv6():
        pytest.skip("no IPv6 here")
    with socket.create_server(("", 0), family=socket.AF_INET6, dualstack_ipv6=True) as listening:
        attempts = AddressFilter(listening)
        attempts.drop("127.0.0.7", 1.0)
        attempts.drop("2001:db8::1", 1.0)
        port = listening.getsockname()[1]
        with pytest.raises(TimeoutError):
            socket.create_connection(("127.0.0.1", port), SHORT_S, ("127.0.0.7", 0))
        for other in ("127.0.0.8", "127.0.0.1"):
            socket.create_connection(("127.0.0.1", port), 20, (other, 0)).close()


def test_the_number_of_addresses_is_bounded_and_the_last_one_counts(listening: socket.socket) -> None:
    attempts = AddressFilter(listening)
    for number in range(ADDRESSES_MAX + 5):
        attempts.drop(f"10.0.0.{number}" if number % 2 else f"2001:db8::{number:x}", float(number))
    source = listening.getsockname()[0]
    assert connects(listening, source)
    attempts.end(1000.0)
    attempts.drop(source, 2000.0)
    assert not connects(listening, source)


def test_an_address_that_can_not_be_dropped_changes_nothing(listening: socket.socket) -> None:
    attempts = AddressFilter(listening)
    attempts.drop("not an address", 1.0)
    assert attempts.next_end is None
    assert connects(listening, listening.getsockname()[0])

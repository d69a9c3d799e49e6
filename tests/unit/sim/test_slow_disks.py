"""Disks that take long for a write."""

from odradek.base.clock import ManualClock
from odradek.sim.network import Network
from odradek.sim.slow_disks import SlowDisks


def network_with_clock() -> tuple[Network, ManualClock]:
    clock = ManualClock()
    return Network(lambda text: None, SlowDisks(clock)), clock


def post(network: Network, text: str, *, to: int, writes: bool) -> None:
    network.post(text, lambda: None, to=to, writes=writes)


def texts(network: Network) -> list[str]:
    return [message.text for message in network.first_ones()]


def test_while_a_write_takes_its_time_its_broker_takes_no_other() -> None:
    network, clock = network_with_clock()
    network.disks.write_ms[1] = 500
    for text, to, writes in (("batch", 1, True), ("next batch", 1, True), ("heartbeat", 1, False), ("other", 2, True)):
        post(network, text, to=to, writes=writes)
    network.arrive(network.messages[0])
    assert texts(network) == ["heartbeat", "other"]
    clock.advance(500)
    assert texts(network) == ["next batch", "heartbeat", "other"]


def test_a_fast_disk_takes_one_write_after_the_other() -> None:
    network, _ = network_with_clock()
    post(network, "batch", to=1, writes=True)
    post(network, "next batch", to=1, writes=True)
    network.arrive(network.messages[0])
    assert texts(network) == ["next batch"]


def test_a_write_that_waits_arrives_when_the_disk_is_fast_again() -> None:
    network, _ = network_with_clock()
    network.disks.write_ms[1] = 500
    post(network, "batch", to=1, writes=True)
    post(network, "next batch", to=1, writes=True)
    network.arrive(network.messages[0])
    network.disks.forget(1)
    assert texts(network) == ["next batch"]

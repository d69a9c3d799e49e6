"""Wrong logins from one address, ten thousand a second: clients of other addresses go on."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from odradek.client.broker_client import BrokerClient
from odradek.client.client_security import ClientSecurity
from odradek.local.zookeeper_server import free_port
from odradek.security.jaas import PLAIN_MODULE

from .own_broker import OwnBroker, batch_of, produce, running

RATE, MEASURED_S, SLOWER_MAX = 10_000, 4.0, 2.0


@contextmanager
def flooding(port: int) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, str(Path(__file__).with_name("login_flood.py")), str(port), "127.0.0.9", str(RATE)]
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, preexec_fn=lambda: os.nice(5)
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def attempts(process: subprocess.Popen[str]) -> int:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write("\n")
    process.stdin.flush()
    return int(process.stdout.readline())


def produced_per_s(client: BrokerClient) -> float:
    """One record after the other, each acknowledged."""
    began, count = time.monotonic(), 0
    while time.monotonic() - began < MEASURED_S:
        assert produce(client, "t", batch_of(b"x" * 100)).error_code == 0
        count += 1
    return count / (time.monotonic() - began)


@pytest.mark.soak
def test_a_flood_of_wrong_logins_slows_others_by_less_than_half(
    zookeeper: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    port, broker = free_port(), OwnBroker(tmp_path, zookeeper)
    plain = f'{PLAIN_MODULE} required username="b" password="b" user_b="b" user_alice="secret";'
    broker.set(
        {
            "listeners": f"PLAINTEXT://127.0.0.1:{broker.port},SASL_PLAINTEXT://127.0.0.1:{port}",
            "sasl.enabled.mechanisms": "PLAIN",
            "listener.name.sasl_plaintext.plain.sasl.jaas.config": plain,
        }
    )
    login = f'{PLAIN_MODULE} required username="alice" password="secret";'
    security = ClientSecurity(
        {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.jaas.config": login}
    )
    with running(broker):
        broker.create_topic("t")
        with BrokerClient("127.0.0.1", port, security=security) as client:
            produced_per_s(client)
            alone = produced_per_s(client)
            with flooding(port) as flood:
                before, began = attempts(flood), time.monotonic()
                beside = produced_per_s(client)
                tried = (attempts(flood) - before) / (time.monotonic() - began)
                BrokerClient("127.0.0.1", port, security=security).close()
            after = produced_per_s(client)
    with capsys.disabled():
        print(f"\n{alone:.0f}/s alone, {beside:.0f}/s beside {tried:.0f} wrong logins/s, {after:.0f}/s after")  # noqa: T201
    assert beside > min(alone, after) / SLOWER_MAX

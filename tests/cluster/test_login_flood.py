"""Wrong logins from one address, ten thousand a second: clients of other addresses go on.

The flood has a processor of its own, as on other machines: the kernel delivers its packets there too. The broker and
the client that is measured share another one, with and without it.
"""

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import pytest

from odradek.client.broker_client import BrokerClient
from odradek.client.client_security import ClientSecurity
from odradek.local.zookeeper_server import free_port
from odradek.protocol.framing import encode_request
from odradek.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from odradek.protocol.messages.sasl_handshake import SaslHandshakeRequest
from odradek.security.jaas import PLAIN_MODULE

from .own_broker import OwnBroker, batch_of, produce, running

RATE, MEASURED_S, SLOWER_MAX = 10_000, 4.0, 2.0
TRIED_AGAIN_MS = 1000  # TCP's first timeout
WRONG_LOGIN = encode_request(SaslHandshakeRequest(mechanism="PLAIN"), 1, 1, "") + encode_request(
    SaslAuthenticateRequest(auth_bytes=b"\0alice\0wrong"), 2, 2, ""
)


class Flood:
    """The program beside this file: it costs a small part of what a flood in Python would."""

    def __init__(self, program: Path, port: int, processors: set[int]) -> None:
        self._process = subprocess.Popen(
            [program, str(port), "127.0.0.9", str(RATE), WRONG_LOGIN.hex()],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            preexec_fn=lambda: os.sched_setaffinity(0, processors),
        )

    def counts(self) -> tuple[int, int, int]:
        """Connections opened, logins sent, connections ended, so far."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        opened, sent, ended = map(int, self._process.stdout.readline().split())
        return opened, sent, ended

    def stop(self) -> None:
        self._process.kill()
        self._process.communicate()


@contextmanager
def flooding(program: Path, port: int, processors: set[int]) -> Iterator[Flood]:
    flood = Flood(program, port, processors)
    try:
        yield flood
    finally:
        flood.stop()


@pytest.fixture
def flooder(tmp_path: Path) -> Path:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("the flood is written in C, and there is no compiler")
    program = tmp_path / "login_flood"
    subprocess.run([compiler, "-O2", "-o", program, Path(__file__).with_name("login_flood.c")], check=True)
    return program


@pytest.fixture
def processors() -> Iterator[tuple[set[int], set[int]]]:
    """Processors of the flood, and of all others; this process has the latter meanwhile."""
    known = os.sched_getaffinity(0)
    if len(known) < 2:
        pytest.skip("a flood beside a broker needs two processors")
    of_flood = {max(known)}
    os.sched_setaffinity(0, known - of_flood)
    try:
        yield of_flood, known - of_flood
    finally:
        os.sched_setaffinity(0, known)


@dataclass(frozen=True)
class Pace:
    """The work of a client that behaves."""

    produced_per_s: float
    """One record after the other, each acknowledged."""
    produce_ms: float
    """Median of their latencies."""
    login_ms: float
    """Median of new connections with their logins."""
    login_ms_max: float
    broker_cpu: float
    """Share of a core."""


def pace(broker: OwnBroker, client: BrokerClient, port: int, security: ClientSecurity) -> Pace:
    began, before, count = time.monotonic(), broker.cpu_s, 0
    logins_ms: list[float] = []
    produced_ms: list[float] = []
    while (elapsed := time.monotonic() - began) < MEASURED_S:
        sent = time.monotonic()
        assert produce(client, "t", batch_of(b"x" * 100)).error_code == 0
        produced_ms.append((time.monotonic() - sent) * 1000)
        count += 1
        if elapsed > len(logins_ms) * 0.1:
            at = time.monotonic()
            BrokerClient("127.0.0.1", port, security=security).close()
            logins_ms.append((time.monotonic() - at) * 1000)
    writing_s = elapsed - sum(logins_ms) / 1000
    broker_cpu = (broker.cpu_s - before) / elapsed
    return Pace(count / writing_s, median(produced_ms), median(logins_ms), max(logins_ms), broker_cpu)


@pytest.mark.soak
def test_a_flood_of_wrong_logins_slows_others_by_less_than_half(
    zookeeper: str,
    tmp_path: Path,
    flooder: Path,
    processors: tuple[set[int], set[int]],
    capsys: pytest.CaptureFixture[str],
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
            pace(broker, client, port, security)
            alone = pace(broker, client, port, security)
            with flooding(flooder, port, processors[0]) as flood:
                time.sleep(1.0)  # the first second's logins are judged
                before, began = flood.counts(), time.monotonic()
                beside = pace(broker, client, port, security)
                seconds = time.monotonic() - began
                rates = [(now - then) / seconds for now, then in zip(flood.counts(), before, strict=True)]
            after = pace(broker, client, port, security)
    with capsys.disabled():
        opened, sent, ended = rates
        print(  # noqa: T201
            f"\nflood: {opened:.0f} attempts/s, of which {sent:.0f}/s were accepted and sent a wrong login; "
            f"{ended:.0f}/s were ended, the others were dropped by the kernel"
        )
        for name, told in (("alone", alone), ("beside it", beside), ("after it", after)):
            print(f"{name}: {told}")  # noqa: T201
    assert beside.produce_ms < max(alone.produce_ms, after.produce_ms) * SLOWER_MAX
    assert beside.produced_per_s > min(alone.produced_per_s, after.produced_per_s) / SLOWER_MAX
    assert beside.login_ms < max(alone.login_ms, after.login_ms) * SLOWER_MAX
    assert beside.login_ms_max < TRIED_AGAIN_MS, "an attempt was lost in a full queue"
    if opened < 0.9 * RATE:
        pytest.skip(f"passed, but this machine made {opened:.0f} attempts a second instead of {RATE}")

"""A client that works while somebody attacks the broker, and what it notices of that.

How long it waits says little on a machine that is busy with something else. So its waits are measured twice, by what
doesn't depend on others: by the CPU time that the broker spends until it answers, which tells whether somebody else's
request was served at the good client's cost; and by the ticks of a thread that sleeps and wakes meanwhile, which come
as late as the machine makes everything come, and tell whether the broker waited for something.
"""

import contextlib
import threading
import time
from collections.abc import Iterator

from waiting import eventually

from .own_broker import OwnBroker, batch_of, produce

NETWORK_THREADS = 3
TOPIC = "good"
MEGABYTE = 1 << 20
# A few milliseconds are usual, and 50 to 140 while a frame of 40 MB arrives: on a busy machine the client may get no
# turn until all of that frame is read. If frames were parsed at the expense of others, it would be seconds.
HELD_UP_CPU_MS_MAX = 1000
# Three seconds, on a machine that has nothing else to do.
TICK_S = 0.005
HELD_UP_TICKS_MAX = 600


class Ticks:
    """Counts while the machine lets it."""

    def __init__(self) -> None:
        self.count = 0
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while not self._stopped.wait(TICK_S):
            self.count += 1

    def stop(self) -> None:
        self._stopped.set()
        self._thread.join()


class GoodClient:
    """Writes on one connection per processor, in turn, and notes its longest waits."""

    def __init__(self, broker: OwnBroker) -> None:
        self._broker = broker
        self._clients = [broker.client() for _ in range(NETWORK_THREADS)]
        self._stopped = threading.Event()
        self._ticks = Ticks()
        self._thread = threading.Thread(target=self._work)
        self.failure: Exception | None = None
        self.requests = 0
        self.longest_cpu_ms = 0.0
        self.longest_ticks = 0

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()
        self._thread.join()
        self._ticks.stop()
        for client in self._clients:
            client.close()

    def _work(self) -> None:
        records = batch_of(b"good")
        try:
            while not self._stopped.is_set():
                for client in self._clients:
                    cpu_s, ticks = self._broker.cpu_s, self._ticks.count
                    assert produce(client, TOPIC, records).error_code == 0
                    self.longest_cpu_ms = max(self.longest_cpu_ms, (self._broker.cpu_s - cpu_s) * 1000)
                    self.longest_ticks = max(self.longest_ticks, self._ticks.count - ticks)
                    self.requests += 1
                time.sleep(0.002)
        except Exception as error:
            self.failure = error


@contextlib.contextmanager
def unnoticed(broker: OwnBroker, growth_max: int) -> Iterator[None]:
    """Check that events in the block hurt neither the good client nor the broker."""
    good = GoodClient(broker)
    before = broker.rss_bytes
    broker.forget_peak_rss()
    good.start()
    try:
        yield
        served = good.requests
        eventually(lambda: good.failure is not None or good.requests > served + NETWORK_THREADS)
    finally:
        good.stop()
    grown = broker.peak_rss_bytes - before
    print(  # noqa: T201
        f"longest waits: {good.longest_cpu_ms:.0f} ms of CPU, {good.longest_ticks} ticks; {good.requests} requests; "
        f"grown {grown / MEGABYTE:.1f} MB"
    )
    assert good.failure is None
    assert good.longest_cpu_ms < HELD_UP_CPU_MS_MAX
    assert good.longest_ticks < HELD_UP_TICKS_MAX
    assert grown < growth_max

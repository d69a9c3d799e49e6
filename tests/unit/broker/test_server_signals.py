"""The main thread of a broker waits for a signal that the system may give to any thread."""

import signal
import threading

from odradek.base.config.broker_config import BrokerConfig
from odradek.broker.server import BrokerServer

WAIT_S = 20.0


def test_a_signal_that_interrupts_another_thread_ends_the_wait() -> None:
    server = BrokerServer(BrokerConfig.from_properties({"broker.id": "0", "zookeeper.connect": "unused:1"}))
    waited, rescued = threading.Event(), threading.Event()

    def get_the_signal() -> None:
        signal.pthread_kill(threading.get_ident(), signal.SIGUSR1)
        if not waited.wait(WAIT_S):
            rescued.set()
            server.ask_to_stop()

    before = signal.signal(signal.SIGUSR1, lambda *_: server.ask_to_stop())
    other = threading.Timer(0.2, get_the_signal)
    other.start()
    try:
        server.wait()
        waited.set()
    finally:
        other.join()
        signal.signal(signal.SIGUSR1, before)
    assert not rescued.is_set(), "the handler runs on the main thread, which slept on"

"""A server that runs out of descriptors when it is told to, in a process where nobody else frees one meanwhile.

Prints its port, and then answers each line: `take` all descriptors, `tell` how many connections there are and when
accepting failed, `free` the descriptors.
"""

import os
import resource
import sys
import time
from contextlib import ExitStack, suppress

from frame_client import Echo

from odradek.base.logs import Logger
from odradek.broker.network import acceptor
from odradek.broker.network.server import SocketServer
from odradek.broker.network.settings import ListenerSettings, ServerSettings

DESCRIPTORS = 100


class _Failures(Logger):
    """In place of the acceptor's log: when each line was written."""

    def __init__(self) -> None:
        super().__init__("acceptor")
        self.at_s: list[float] = []

    def error(self, event: str, **values: object) -> None:
        self.at_s.append(time.monotonic())


def _say(*words: object) -> None:
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


def main() -> None:
    acceptor.log = failures = _Failures()
    resource.setrlimit(resource.RLIMIT_NOFILE, (DESCRIPTORS, DESCRIPTORS))
    server = SocketServer(ServerSettings((ListenerSettings("PLAINTEXT", "PLAINTEXT", "127.0.0.1", 0),)), Echo())
    server.start()
    _say(server.port("PLAINTEXT"))
    with ExitStack() as taken:
        for line in sys.stdin:
            if line == "take\n":
                with suppress(OSError):
                    while True:
                        taken.enter_context(open(os.devnull))
            elif line == "free\n":
                taken.close()
            _say(server.connections, *failures.at_s)


if __name__ == "__main__":
    main()

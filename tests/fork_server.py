"""A process that has loaded the broker's modules and forks: each fork becomes one broker, as `python -m odradek` would.

    python -P fork_server.py ADDRESS PADDING

A client connects to the abstract Unix address, sends one request and gets the pid; later, on the same connection, the
exit status. The server ends with its standard input, that is with the process that started it; brokers live on, as
they do when they were started by command. `forked_brokers` is the client.
"""

import gc
import json
import os
import sys
from pathlib import Path
from selectors import EVENT_READ, DefaultSelector
from socket import AF_UNIX, SOCK_SEQPACKET, socket
from typing import NamedTuple, NoReturn

REQUEST_BYTES_MAX = 1 << 18


class Request(NamedTuple):
    """Everything in which a process differs from the next one."""

    arguments: list[str]
    """After `odradek`."""
    command: list[str]
    """What the system shows as its command line."""
    log_file: str
    directory: str
    environment: dict[str, str]


class Child(NamedTuple):
    pid: int
    client: socket


class ForkServer:
    def __init__(self, address: str) -> None:
        self._listener = socket(AF_UNIX, SOCK_SEQPACKET)
        self._listener.bind(f"\0{address}")
        self._listener.listen()
        self._selector = DefaultSelector()
        self._selector.register(self._listener, EVENT_READ)
        self._selector.register(sys.stdin, EVENT_READ)

    def run(self) -> Request | None:
        """In each child: its request. In the server: None, in the end."""
        while True:
            for key, _ in self._selector.select():
                if key.fileobj is sys.stdin:
                    return None
                if key.fileobj is self._listener:
                    if (request := self._fork()) is not None:
                        return request
                else:
                    self._reap(key.fd, key.data)

    def _fork(self) -> Request | None:
        client, _ = self._listener.accept()
        request = Request(*json.loads(client.recv(REQUEST_BYTES_MAX)))
        alive, held_by_child = os.pipe()  # the end of the child is the end of the pipe
        pid = os.fork()
        if pid == 0:
            os.close(alive)
            client.close()
            self._close()
            return request
        os.close(held_by_child)
        self._selector.register(alive, EVENT_READ, Child(pid, client))
        client.send(str(pid).encode())
        return None

    def _reap(self, alive: int, child: Child) -> None:
        self._selector.unregister(alive)
        os.close(alive)
        _, status = os.waitpid(child.pid, 0)
        with child.client as client:
            try:
                client.send(str(os.waitstatus_to_exitcode(status)).encode())
            except OSError:
                return  # the client has no more questions

    def _close(self) -> None:
        """Close what belongs to the server: this process is a child now."""
        self._listener.close()
        for key in list(self._selector.get_map().values()):
            if isinstance(key.data, Child):
                os.close(key.fd)
                key.data.client.close()
        self._selector.close()


def become(request: Request) -> NoReturn:
    """Run the command in this process, to the end of the interpreter."""
    os.setsid()
    os.chdir(request.directory)
    os.environ.clear()
    os.environ.update(request.environment)
    for file, flags, descriptors in (
        (os.devnull, os.O_RDONLY, (0,)),
        (request.log_file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, (1, 2)),
    ):
        opened = os.open(file, flags, 0o666)
        for descriptor in descriptors:
            os.dup2(opened, descriptor)
        os.close(opened)
    show_command(request.command)
    sys.argv = ["odradek", *request.arguments]
    from odradek.apps.cli.main import main

    main()


def show_command(command: list[str]) -> None:
    """Write over the command line of this process, by which `OwnedProcess` recognises it."""
    fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    start, end = int(fields[45]), int(fields[46])
    shown = b"\0".join(map(os.fsencode, command)) + b"\0"
    assert len(shown) <= end - start, "the padding is too short"
    with open("/proc/self/mem", "r+b", buffering=0) as memory:
        os.pwrite(memory.fileno(), shown.ljust(end - start, b"\0"), start)


def load() -> None:
    import odradek.apps.cli.broker
    import odradek.broker.main  # noqa: F401
    from odradek.broker.api.registry import load_all

    load_all()
    gc.collect()
    gc.freeze()  # else each child's first collection would copy every page


if __name__ == "__main__":
    server = ForkServer(sys.argv[1])
    print("listening", flush=True)  # noqa: T201
    load()
    request = server.run()
    if request is not None:
        become(request)

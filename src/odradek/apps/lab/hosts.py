"""Hosts on one machine: a network namespace each, joined by a bridge, so that any two of them can be cut apart.

    10.x.y.1       this process and its clients
    10.x.y.2       ZooKeeper, on an address of its own, so that it can be cut off alone
    10.x.y.10+N    host N

A cut is a blackhole route on both sides: connections stay open and go silent, as with a broken switch. Needs root and
iproute2: see `available`.
"""

import os
import random
import shutil
import subprocess
from collections.abc import Sequence
from functools import cache
from types import TracebackType
from typing import Self


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True, timeout=30)


@cache
def available() -> bool:
    """Return whether this machine allows network namespaces."""
    if os.geteuid() != 0 or shutil.which("ip") is None:
        return False
    try:
        with Hosts(1):
            return True
    except (OSError, subprocess.SubprocessError):
        return False


class Hosts:
    """`count` hosts, as a context manager: they exist inside of the block."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._tag = f"odr{os.getpid() % 100_000:x}{random.randrange(256):02x}"
        self._prefix = f"10.{random.randrange(100, 200)}.{random.randrange(256)}"
        self._cuts: set[tuple[int, str]] = set()
        self.client_address = f"{self._prefix}.1"
        self.zookeeper_address = f"{self._prefix}.2"

    def address(self, host: int) -> str:
        return f"{self._prefix}.{10 + host}"

    def command(self, host: int, command: Sequence[str]) -> list[str]:
        """The command as it runs on the host."""
        return ["ip", "netns", "exec", self._namespace(host), *command]

    def __enter__(self) -> Self:
        try:
            self._build()
        except BaseException:
            self._remove()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._remove()

    # ---- cutting

    def cut(self, host: int, *others: int) -> None:
        """The host and the others can't reach each other."""
        for other in others:
            self._swallow(host, self.address(other))
            self._swallow(other, self.address(host))

    def cut_from_zookeeper(self, host: int) -> None:
        self._swallow(host, self.zookeeper_address)

    def cut_from_clients(self, host: int) -> None:
        self._swallow(host, self.client_address)

    def heal(self) -> None:
        for host, address in self._cuts:
            _ip("-n", self._namespace(host), "route", "del", "blackhole", f"{address}/32")
        self._cuts.clear()

    def _swallow(self, host: int, address: str) -> None:
        if (host, address) not in self._cuts:
            _ip("-n", self._namespace(host), "route", "add", "blackhole", f"{address}/32")
            self._cuts.add((host, address))

    # ---- building

    @property
    def _bridge(self) -> str:
        return f"{self._tag}b"

    def _namespace(self, host: int) -> str:
        return f"{self._tag}n{host}"

    def _build(self) -> None:
        _ip("link", "add", self._bridge, "type", "bridge")
        _ip("addr", "add", f"{self.client_address}/24", "dev", self._bridge)
        _ip("addr", "add", f"{self.zookeeper_address}/24", "dev", self._bridge)
        _ip("link", "set", self._bridge, "up")
        for host in range(self._count):
            namespace, outside = self._namespace(host), f"{self._tag}v{host}"
            _ip("netns", "add", namespace)
            _ip("link", "add", outside, "type", "veth", "peer", "name", "eth0", "netns", namespace)
            _ip("link", "set", outside, "master", self._bridge, "up")
            _ip("-n", namespace, "addr", "add", f"{self.address(host)}/24", "dev", "eth0")
            _ip("-n", namespace, "link", "set", "eth0", "up")
            _ip("-n", namespace, "link", "set", "lo", "up")

    def _remove(self) -> None:
        for host in range(self._count):
            subprocess.run(["ip", "netns", "del", self._namespace(host)], capture_output=True, timeout=30, check=False)
        subprocess.run(["ip", "link", "del", self._bridge], capture_output=True, timeout=30, check=False)

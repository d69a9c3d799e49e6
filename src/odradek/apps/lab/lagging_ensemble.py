"""A real ZooKeeper ensemble of three, one of whose servers lags: it receives the leader's decisions late.

The slow server's connection to the leader is a `Line` with a delay, so that its clients see changes and watches later
than other clients do. It has the lowest id and starts last, so that it is never elected. Writes need two of three: they
don't wait for it.
"""

from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Self

from odradek.apps.lab.line import Line
from odradek.local.zookeeper_server import EmbeddedZooKeeper, four_letter_word, free_port

SLOW = 1
_SERVERS = (1, 2, 3)
_SETTINGS = "initLimit=20\nsyncLimit=20\n4lw.commands.whitelist=srvr,mntr\n"
_FIRED = ("node_created", "node_deleted", "node_changed", "node_children")


class LaggingEnsemble:
    def __init__(self, directory: Path, lag_ms: int) -> None:
        self._peer_ports = {n: (free_port(), free_port()) for n in _SERVERS}
        self._lines: dict[int, Line] = {}
        if lag_ms:
            self._lines = {n: Line(("127.0.0.1", self._peer_ports[n][0]), lag_ms) for n in _SERVERS if n != SLOW}
        self._servers = {
            n: EmbeddedZooKeeper(directory / f"zookeeper-{n}", settings=_SETTINGS + self._addresses(n))
            for n in _SERVERS
        }
        for n in _SERVERS:
            data = directory / f"zookeeper-{n}" / "data"
            data.mkdir(parents=True)
            (data / "myid").write_text(f"{n}\n")

    def _addresses(self, seen_by: int) -> str:
        lines = []
        for n, (quorum, election) in self._peer_ports.items():
            port = self._lines[n].port if seen_by == SLOW and n in self._lines else quorum
            lines.append(f"server.{n}=127.0.0.1:{port}:{election}\n")
        return "".join(lines)

    @property
    def servers(self) -> list[str]:
        """Addresses of the servers, the slow one first."""
        return [server.connect for server in self._servers.values()]

    @property
    def fast(self) -> str:
        """Connect string of the servers that don't lag."""
        return ",".join(server.connect for n, server in self._servers.items() if n != SLOW)

    def __enter__(self) -> Self:
        try:
            prompt = [n for n in _SERVERS if n != SLOW]
            for n in prompt:
                self._servers[n].spawn()
            for n in prompt:
                self._servers[n].start()
            self._servers[SLOW].start()
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()

    def _end(self) -> None:
        for server in self._servers.values():
            server.kill()
        for line in self._lines.values():
            line.close()

    def counters(self) -> dict[str, int]:
        """Counters of the servers, summed: watches that fired, reads and writes of their clients."""
        monitored = [_monitored(server.connect) for server in self._servers.values()]
        return {
            "notifications": _sum(monitored, [f"zk_sum_{name}_watch_count" for name in _FIRED]),
            "reads": _sum(monitored, ["zk_cnt_readlatency"]),
            "writes": _sum(monitored, ["zk_cnt_updatelatency"]),
        }


def _sum(monitored: Iterable[dict[str, str]], names: Iterable[str]) -> int:
    wanted = list(names)
    return sum(int(float(values.get(name, "0"))) for values in monitored for name in wanted)


def _monitored(address: str) -> dict[str, str]:
    answer = four_letter_word(address, "mntr", timeout_s=10)
    return dict(line.split("\t", 1) for line in answer.splitlines() if "\t" in line)

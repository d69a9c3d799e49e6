"""Actions of the console's laboratory on the brokers of a directory of `odradek up`."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from odradek.base.errors import FatalError
from odradek.local.cluster_processes import LocalCluster
from odradek.local.links.cuts import CutFrom
from odradek.local.local_broker import LocalBroker


class LocalMachine:
    def __init__(self, data: Path) -> None:
        self._cluster = LocalCluster(data)

    def processes(self) -> dict[int, str]:
        return {broker.id: _state(broker.pid) for broker in self._cluster.brokers}

    def kill(self, broker: int) -> None:
        self._cluster.broker(broker).kill()

    def stop(self, broker: int) -> None:
        self.resume(broker)
        self._cluster.broker(broker).stop()

    def start(self, broker: int) -> None:
        self._cluster.start_broker(broker)

    def pause(self, broker: int) -> None:
        self._running(broker).process.pause()

    def resume(self, broker: int) -> None:
        self._running(broker).process.resume()

    def cuts(self) -> Mapping[int, frozenset[CutFrom]]:
        return self._cluster.links.cuts

    def can_be_cut(self, broker: int) -> bool:
        return self._cluster.broker(broker).is_linked

    def cut(self, broker: int, whom: Iterable[CutFrom]) -> None:
        self._cluster.cut(broker, whom)

    def heal(self, broker: int) -> None:
        self._cluster.heal(broker)

    def _running(self, broker: int) -> LocalBroker:
        found = self._cluster.broker(broker)
        if found.pid is None:
            raise FatalError(f"broker {broker} is not running")
        return found


def _state(pid: int | None) -> str:
    """State of the process according to the kernel, where T is stopped."""
    if pid is None:
        return "stopped"
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return "stopped"
    return "paused" if status.rpartition(")")[2].split()[0] in ("T", "t") else "running"

"""Four-letter words: commands that operators and probes send in place of a session."""

import os
import platform
import resource
from collections.abc import Mapping

from odradek import __version__
from odradek.base.value_classes import dataclass
from odradek.local.coordination.core.coordinator import Coordinator
from odradek.local.coordination.settings import ServerSettings

_ANSWERED = ("conf", "envi", "isro", "mntr", "ruok", "srvr", "stat")
_APACHES = ("cons", "crst", "dirs", "dump", "gtmk", "hash", "srst", "stmk", "wchc", "wchp", "wchs")
KNOWN = frozenset((*_ANSWERED, *_APACHES))
"""Four-letter words; none of them can be the length of a request."""
VERSION = f"3.9.0-odradek-{__version__}, embedded coordination server for one machine"


@dataclass(slots=True)
class Traffic:
    """Packets and latencies since the start of the server."""

    received: int = 0
    sent: int = 0
    connections: int = 0
    answered: int = 0
    latency_ms_sum: float = 0.0
    latency_ms_min: float = 0.0
    latency_ms_max: float = 0.0

    def add(self, requests: int, latency_ms: float) -> None:
        """Add requests that were all answered that long after the first of them was read."""
        self.latency_ms_min = min(self.latency_ms_min, latency_ms) if self.answered else latency_ms
        self.latency_ms_max = max(self.latency_ms_max, latency_ms)
        self.latency_ms_sum += requests * latency_ms
        self.answered += requests

    @property
    def latency_ms_average(self) -> float:
        return self.latency_ms_sum / self.answered if self.answered else 0.0


@dataclass(frozen=True, slots=True)
class Answers:
    settings: ServerSettings
    coordinator: Coordinator
    traffic: Traffic
    clients: tuple[str, ...]

    def to(self, word: str) -> str:
        if word not in self.settings.words and "*" not in self.settings.words:
            return f"{word} is not executed because it is not in the whitelist.\n"
        match word:
            case "ruok":
                return "imok"
            case "isro":
                return "rw"
            case "srvr":
                return f"Zookeeper version: {VERSION}\n{self._status()}"
            case "stat":
                clients = "".join(f" {client}\n" for client in self.clients)
                return f"Zookeeper version: {VERSION}\nClients:\n{clients}\n{self._status()}"
            case "mntr":
                return "".join(f"zk_{key}\t{value}\n" for key, value in self._figures().items())
            case "conf":
                return "".join(f"{key}={value}\n" for key, value in self._configuration().items())
            case "envi":
                environment = {"zookeeper.version": VERSION, "os.name": platform.system(), "user.dir": os.getcwd()}
                return "Environment:\n" + "".join(f"{key}={value}\n" for key, value in environment.items())
        return f"{word} is not supported by the embedded coordination server.\n"

    def _status(self) -> str:
        traffic = self.traffic
        latency = f"{traffic.latency_ms_min:.0f}/{traffic.latency_ms_average:.4f}/{traffic.latency_ms_max:.0f}"
        return (
            f"Latency min/avg/max: {latency}\n"
            f"Received: {traffic.received}\nSent: {traffic.sent}\nConnections: {traffic.connections}\nOutstanding: 0\n"
            f"Zxid: 0x{self.coordinator.last_zxid:x}\nMode: standalone\nNode count: {len(self.coordinator.tree)}\n"
        )

    def _figures(self) -> Mapping[str, object]:
        tree, traffic = self.coordinator.tree, self.traffic
        return {
            "version": VERSION,
            "server_state": "standalone",
            "avg_latency": f"{traffic.latency_ms_average:.4f}",
            "max_latency": f"{traffic.latency_ms_max:.0f}",
            "min_latency": f"{traffic.latency_ms_min:.0f}",
            "packets_received": traffic.received,
            "packets_sent": traffic.sent,
            "num_alive_connections": traffic.connections,
            "outstanding_requests": 0,
            "znode_count": len(tree),
            "watch_count": len(self.coordinator.watches),
            "ephemerals_count": tree.ephemerals_count,
            "approximate_data_size": tree.data_bytes,
            "global_sessions": len(self.coordinator.sessions),
            "open_file_descriptor_count": len(os.listdir("/proc/self/fd")),
            "max_file_descriptor_count": resource.getrlimit(resource.RLIMIT_NOFILE)[0],
        }

    def _configuration(self) -> Mapping[str, object]:
        settings = self.settings
        return {
            "clientPort": settings.port,
            "dataDir": settings.data_dir / "version-2",
            "dataLogDir": settings.data_dir / "version-2",
            "tickTime": settings.tick_ms,
            "maxClientCnxns": 0,
            "minSessionTimeout": settings.session_timeout_ms_min,
            "maxSessionTimeout": settings.session_timeout_ms_max,
            "serverId": 0,
        }

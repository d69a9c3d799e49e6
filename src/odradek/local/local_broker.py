"""One broker process of a local cluster: its directory, its settings, its start and stop."""

import os
import time
from collections.abc import Collection, Mapping
from pathlib import Path

from odradek.base.config.properties import format_properties, parse_properties
from odradek.base.errors import FatalError
from odradek.base.log_rotation import LOG_FILE_VARIABLE
from odradek.local.cluster_security import INTERNAL_PORTS_AFTER, ClusterSecurity, secured_listeners
from odradek.local.links.local_links import LocalLinks
from odradek.local.links.plan import is_linked
from odradek.local.local_settings import SettingChanges
from odradek.local.moved_directory import follow_directory
from odradek.local.server_process import ServerProcess, serves
from odradek.local.zookeeper_server import port_is_taken

DEFAULT_PORT = 9092
_PORT_SECONDS_MAX = 1.0
_ARENAS, _ARENAS_MAX = "MALLOC_ARENA_MAX", "2"
"""Setting of the C library: else each thread has memory of its own, 1 MB of a broker at rest."""


def _freed(port: int) -> bool:
    """Return whether the port is free; a process that was just killed gets a moment to let go."""
    deadline = time.monotonic() + _PORT_SECONDS_MAX
    while port_is_taken(port):
        if time.monotonic() >= deadline:
            return False
        time.sleep(0.02)
    return True


class LocalBroker:
    def __init__(self, directory: Path, broker_id: int, links: LocalLinks, security: ClusterSecurity) -> None:
        self.id = broker_id
        self._links = links
        self._security = security
        self._directory = directory
        self.properties_file = directory / "server.properties"
        log = directory / "broker.log"
        environment = {LOG_FILE_VARIABLE: str(log.absolute()), _ARENAS: os.environ.get(_ARENAS, _ARENAS_MAX)}
        self.process = ServerProcess(f"broker {broker_id}", self.properties_file, log, environment=environment)
        self._kept: str | None = None
        self._is_changed = False

    @property
    def pid(self) -> int | None:
        return self.process.pid

    @property
    def log_file(self) -> Path:
        return self.process.log_file

    @property
    def address(self) -> tuple[str, int]:
        """Host and port of the first listener."""
        return _first_address(self._properties())

    @property
    def is_linked(self) -> bool:
        """True if its links can be cut."""
        return is_linked(self._properties())

    def wanted_properties(
        self,
        zookeeper: str,
        port: int | None,
        defaults: Mapping[str, str],
        changes: SettingChanges,
        *,
        secure: bool = False,
        outgrown: Collection[str] = (),
    ) -> dict[str, str]:
        """Settings of an earlier server.properties that aren't given anew, removed or outgrown, without links."""
        gone = {*changes.removed, *outgrown}
        kept = {key: text for key, text in self.kept_properties().items() if key not in gone}
        properties = {
            "broker.id": str(self.id),
            "listeners": self._listeners(DEFAULT_PORT + self.id, secure=secure),
            "log.dirs": str(self._directory / "logs"),
            **defaults,
            **(self._security.broker_settings(self.id) if secure else {}),
            **kept,
            "zookeeper.connect": zookeeper,
        }
        if port is not None:
            properties["listeners"] = self._listeners(port, secure=secure)
        return {**properties, **changes.given}

    def _listeners(self, port: int, *, secure: bool) -> str:
        return secured_listeners(port) if secure else f"PLAINTEXT://127.0.0.1:{port}"

    def kept_properties(self) -> dict[str, str]:
        """Settings of the earlier start, without links; empty before the first one."""
        if not self.properties_file.exists():
            return {}
        return follow_directory(self._links.unlinked(self._properties()), self._directory)

    def is_configured(self, zookeeper: str | None, port: int | None, changes: SettingChanges) -> bool:
        """True if it already has all of the given settings."""
        known = self.kept_properties()
        ensemble, secure = zookeeper or known["zookeeper.connect"], self._security.exists
        return self.wanted_properties(ensemble, port, {}, changes, secure=secure) == known

    def configure(self, properties: Mapping[str, str], *, linked: bool = False) -> None:
        """Writes server.properties; `restore` brings the earlier one back."""
        self._kept = self.properties_file.read_text() if self.properties_file.exists() else None
        self._directory.mkdir(parents=True, exist_ok=True)
        self._write(format_properties(self._links.linked(self.id, properties) if linked else properties))
        self._is_changed = True

    def restore(self) -> None:
        if not self._is_changed:
            return
        if self._kept is None:
            self.properties_file.unlink(missing_ok=True)
        else:
            self._write(self._kept)

    def _write(self, text: str) -> None:
        """Replace the file as a whole: a full disk must not leave half of the settings. Its owner alone reads it, for
        settings may be passwords."""
        new = self.properties_file.with_suffix(".new")
        try:
            new.unlink(missing_ok=True)
            new.touch(mode=0o600)
            new.write_text(text)
            new.replace(self.properties_file)
        finally:
            new.unlink(missing_ok=True)

    def start(self) -> None:
        """Starts the process unless it runs already; `await_serving` says when it is ready."""
        if self.pid is not None:
            return
        _, port = self.address
        if not _freed(port):
            raise FatalError(
                f"port {port} of broker {self.id} is taken by another process: stop that process, "
                "or choose another port with: odradek up --port PORT"
            )
        self.process.start()

    def await_serving(self) -> None:
        self.process.await_serving(self._serves)

    def _serves(self) -> bool:
        """A secured broker is asked as another broker would ask it."""
        host, port = self.address
        if self._security.exists:
            return serves((host, port + INTERNAL_PORTS_AFTER), self._security.inter_broker_client(self.id))
        return serves((host, port))

    def stop(self) -> bool:
        return self.process.stop()

    def kill(self) -> bool:
        return self.process.kill()

    def _properties(self) -> dict[str, str]:
        return parse_properties(self.properties_file.read_text())


def _first_address(properties: Mapping[str, str]) -> tuple[str, int]:
    listener = properties["listeners"].split(",")[0]
    host, _, port = listener.partition("://")[2].rpartition(":")
    return host.strip("[]") or "127.0.0.1", int(port)

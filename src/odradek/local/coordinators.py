"""Coordination server of a local cluster: Apache ZooKeeper, or the embedded one, which needs no Java.

Both keep the same files, so a cluster may change between two starts. Apache's is taken where it can be started and
nothing else is wanted: docs/decisions/0024-embedded-coordination-server.md.
"""

import os
import sys
from enum import StrEnum
from pathlib import Path

from odradek.base.errors import FatalError
from odradek.local.java import find_java
from odradek.local.zookeeper_jars import zookeeper_classpath
from odradek.local.zookeeper_server import EmbeddedZooKeeper


class CoordinationProcess(EmbeddedZooKeeper):
    """The embedded coordination server as a process of its own, in a directory like Apache ZooKeeper's."""

    def _command(self) -> list[str]:
        return [sys.executable, "-m", "odradek.local.coordination"]


VARIABLE = "ODRADEK_COORDINATOR"
"""Kind of a new cluster's coordination server where the command doesn't name one."""


class CoordinatorKind(StrEnum):
    EMBEDDED = "embedded"
    APACHE = "apache"


class LocalCoordinator:
    """The coordination server of one directory, which remembers of which kind it is."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._file = directory / "coordinator"
        self._servers = {
            CoordinatorKind.EMBEDDED: CoordinationProcess(directory),
            CoordinatorKind.APACHE: EmbeddedZooKeeper(directory),
        }

    @property
    def server(self) -> EmbeddedZooKeeper:
        """The server, of the same kind as at the last start."""
        return self._servers[self.kind or CoordinatorKind.APACHE]

    def refuse_other(self, wanted: CoordinatorKind | None) -> None:
        """Raise FatalError if one of another kind runs."""
        if wanted not in (None, self.kind) and self.server.pid is not None:
            raise FatalError(
                f"the coordination server of {self._directory} is already running and is {self.kind}, not {wanted}: "
                "to change it, stop the cluster first with: odradek down"
            )

    def start(self, wanted: CoordinatorKind | None = None) -> EmbeddedZooKeeper:
        """Start it, unless it runs already, and wait until it serves."""
        server = self.spawn(wanted)
        server.await_serving()
        return server

    def spawn(self, wanted: CoordinatorKind | None = None) -> EmbeddedZooKeeper:
        """Start it, unless it runs already. The embedded one serves before a broker has loaded its modules; Apache's
        does not, and is waited for."""
        self.refuse_other(wanted)
        if self.server.pid is None:
            named = wanted or (_of_environment() if self.kind is None else None)
            kind = named or self.kind or CoordinatorKind.APACHE
            if named is None and kind is CoordinatorKind.APACHE and not apache_can_start():
                kind = CoordinatorKind.EMBEDDED
            self._directory.mkdir(parents=True, exist_ok=True)
            self._file.write_text(f"{kind}\n")
        self.server.spawn()
        if self.kind is CoordinatorKind.APACHE:
            self.server.await_serving()
        return self.server

    @property
    def kind(self) -> CoordinatorKind | None:
        """Kind that was started the last time; None before the first start."""
        try:
            return CoordinatorKind(self._file.read_text().strip())
        except FileNotFoundError:
            return CoordinatorKind.APACHE if (self._directory / "zoo.cfg").exists() else None
        except ValueError as error:
            raise FatalError(f"{self._file}: {error}; valid: {', '.join(CoordinatorKind)}") from error


def apache_can_start() -> bool:
    try:
        zookeeper_classpath()
        find_java()
    except FatalError:
        return False
    return True


def _of_environment() -> CoordinatorKind | None:
    text = os.environ.get(VARIABLE)
    if not text:
        return None
    try:
        return CoordinatorKind(text)
    except ValueError:
        raise FatalError(f"{VARIABLE}={text} is not valid; valid: {', '.join(CoordinatorKind)}") from None

"""Coordination server of a local cluster: Apache ZooKeeper, or the embedded one, which needs no Java.

Both keep the same files, so a cluster may change between two starts. Apache's is taken where it can be started and
nothing else is wanted: docs/decisions/0024-embedded-coordination-server.md.
"""

import os
from enum import StrEnum
from pathlib import Path

from odradek.base.errors import FatalError
from odradek.local.coordination_process import CoordinationProcess
from odradek.local.java import find_java
from odradek.local.zookeeper_jars import zookeeper_classpath
from odradek.local.zookeeper_server import EmbeddedZooKeeper

VARIABLE = "ODRADEK_COORDINATOR"
"""What is taken where a command says nothing."""


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
        """Of the kind that was started the last time."""
        return self._servers[self.kind or CoordinatorKind.APACHE]

    def start(self, wanted: CoordinatorKind | None = None) -> EmbeddedZooKeeper:
        """Start it, unless it runs already. Another kind than that which runs is refused."""
        before = self.kind
        if self.server.pid is not None:
            if wanted not in (None, before):
                raise FatalError(
                    f"the coordination server of {self._directory} runs already, and is not {wanted}: to change it, "
                    "stop the cluster first with: odradek down"
                )
            return self.server
        kind = wanted or _of_environment() or before or CoordinatorKind.APACHE
        if wanted is None and kind is CoordinatorKind.APACHE and not apache_can_start():
            kind = CoordinatorKind.EMBEDDED
        self._directory.mkdir(parents=True, exist_ok=True)
        self._file.write_text(f"{kind}\n")
        server = self.server
        server.start()
        return server

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

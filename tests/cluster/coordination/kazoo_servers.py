"""A pytest plugin for kazoo's own test suite: the servers that it starts are embedded coordination servers.

    ZOOKEEPER_VERSION=3.9.3 pytest -p kazoo_servers --pyargs kazoo.tests

Stands in for `kazoo.testing.common`, which starts Apache ZooKeeper with keys and certificates, and needs packages for
them. Nothing of the suite itself is changed.
"""

import gc
import importlib.util
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType

from odradek.local.coordinators import CoordinationProcess


class Server:
    def __init__(self) -> None:
        self._directory = Path(tempfile.mkdtemp(prefix="kazoo-suite-"))
        self._process = CoordinationProcess(self._directory)

    @property
    def address(self) -> str:
        return self._process.connect

    @property
    def running(self) -> bool:
        return self._process.pid is not None

    def run(self) -> None:
        self._process.start()

    def stop(self) -> None:
        self._process.stop()

    def destroy(self) -> None:
        self.stop()
        shutil.rmtree(self._directory, ignore_errors=True)


class ZookeeperCluster:
    """Servers in the way that kazoo's harness asks for them; ports and settings are ours, settings of Java ignored."""

    def __init__(self, size: int = 1, **_settings_of_apache: object) -> None:
        self._servers = [Server() for _ in range(size)]

    def __getitem__(self, number: int) -> Server:
        return self._servers[number]

    def __iter__(self) -> Iterator[Server]:
        return iter(self._servers)

    def start(self) -> None:
        for server in self:
            server.run()

    def terminate(self) -> None:
        for server in self:
            server.destroy()

    def get_logs(self) -> Sequence[str]:
        return ()


def _count(type_name: str) -> int:
    return sum(type(known).__name__ == type_name for known in gc.get_objects())


def _stand_in(name: str, **content: object) -> None:
    module = ModuleType(name)
    module.__dict__.update(content)
    sys.modules[name] = module


_stand_in("kazoo.testing.common", ZookeeperCluster=ZookeeperCluster)
if importlib.util.find_spec("objgraph") is None:
    _stand_in("objgraph", count=_count)

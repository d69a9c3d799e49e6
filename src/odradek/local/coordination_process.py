"""The embedded coordination server as a process of its own, in place of Apache ZooKeeper.

Its directory is one of Apache's: `zoo.cfg`, the port, the data in Apache's file formats. So a cluster may change from
one to the other between two starts, and keeps all its znodes.
"""

import sys

from odradek.local.zookeeper_server import EmbeddedZooKeeper


class CoordinationProcess(EmbeddedZooKeeper):
    def _command(self) -> list[str]:
        return [sys.executable, "-m", "odradek.local.coordination"]

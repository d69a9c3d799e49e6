"""The coordination server of tests: Apache ZooKeeper, or with ODRADEK_COORDINATOR=embedded the embedded one."""

import os
from pathlib import Path

from odradek.local.coordinators import VARIABLE, CoordinationProcess, CoordinatorKind
from odradek.local.zookeeper_server import EmbeddedZooKeeper


def coordination_server(directory: Path, host: str = "127.0.0.1") -> EmbeddedZooKeeper:
    is_embedded = os.environ.get(VARIABLE) == CoordinatorKind.EMBEDDED
    return (CoordinationProcess if is_embedded else EmbeddedZooKeeper)(directory, host=host)

"""Stage of the demo: three brokers, the topics, and a pipeline project that `pipeline init` wrote."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from odradek.apps.pipeline.scaffold import init_project
from odradek.apps.pipeline.spark_home import SWITCH
from odradek.base.errors import FatalError
from odradek.client.cluster_client import ClusterClient
from odradek.client.topic_admin import create_topic
from odradek.local.cluster_processes import LocalCluster
from odradek.local.zookeeper_server import free_ports

BROKERS = 3
NAME = "shop"
ORDERS, CATEGORIES, REVENUE, DEAD_LETTERS = (f"{NAME}.{n}" for n in ("orders", "categories", "revenue", "dead-letters"))
_PARTITIONS = 6
_STOP_SECONDS_MAX = 60
_SETTINGS = {"default.replication.factor": "3", "min.insync.replicas": "2", "offsets.topic.num.partitions": "6"}


class Stage:
    def __init__(self, directory: Path) -> None:
        self.cluster = LocalCluster(directory / "cluster")
        self.project = directory / NAME
        self._pipeline: subprocess.Popen[bytes] | None = None
        self._log = directory / "pipeline.log"

    @property
    def bootstrap(self) -> str:
        return self.cluster.bootstrap_servers

    def start_cluster(self) -> None:
        self.cluster.start(zookeeper=None, port=free_ports(*range(1, BROKERS)), settings=_SETTINGS, brokers=BROKERS)
        with ClusterClient(self.bootstrap) as client:
            for topic in (ORDERS, REVENUE, DEAD_LETTERS):
                create_topic(client, topic, partitions=_PARTITIONS, replication_factor=BROKERS)
            compacted = {"cleanup.policy": "compact"}
            create_topic(client, CATEGORIES, partitions=1, replication_factor=BROKERS, configs=compacted)

    def start_pipeline(self) -> None:
        init_project(self.project, NAME, self.bootstrap)
        command = [sys.executable, "-m", "odradek", "pipeline", "run", str(self.project), "--master", "local[2]"]
        environment = os.environ | {SWITCH: "off"}  # a demo leaves nothing behind, and its end doesn't wait
        with self._log.open("ab") as log:
            self._pipeline = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, env=environment
            )

    def status(self) -> dict[str, Any] | None:
        """Return the status of the pipeline; FatalError if it has ended."""
        if self._pipeline is not None and self._pipeline.poll() is not None:
            words = self._log.read_text(errors="replace").strip().splitlines()[-1:] or ["it left no message"]
            raise FatalError(f"the pipeline ended: {words[0]}")
        try:
            document: dict[str, Any] = json.loads((self.project / ".odradek" / "status.json").read_text())
        except FileNotFoundError:
            return None
        return document

    def stop_pipeline(self) -> None:
        if self._pipeline is None:
            return
        self._pipeline.terminate()
        try:
            self._pipeline.wait(_STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            self._pipeline.kill()
            self._pipeline.wait()
        self._pipeline = None

    def leaders(self) -> dict[int, int]:
        """Number of the orders' partitions that each live broker leads."""
        with ClusterClient(self.bootstrap, timeout_ms=5_000) as client:
            counts = dict.fromkeys(client.brokers(), 0)
            for partition in client.topic(ORDERS).partitions:
                if partition.leader in counts:
                    counts[partition.leader] += 1
        return counts

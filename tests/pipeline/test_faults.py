"""Pipelines as processes of their own, on three brokers: drivers are killed, brokers are, and the books still match."""

import os
import random
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from odradek.base.java import find_java
from odradek.client.cluster_client import ClusterClient
from odradek.client.topic_admin import add_partitions, create_topic
from odradek.demo.proof import Proof, prove
from odradek.pipeline.sample_orders import CATEGORIES, OrderMaker, Sent, Shop
from odradek.pipeline.scaffold import init_project
from odradek.pipeline.status import read_status
from odradek.testing import OdradekCluster
from odradek.zk.server import free_port

pytestmark = [pytest.mark.soak, pytest.mark.timeout(1200)]

PATIENCE_S = 400


class Driver:
    """`odradek pipeline run` on a project, which can be killed and started again."""

    def __init__(self, project: Path, *arguments: str) -> None:
        self._project = project
        self._arguments = arguments
        self._log = project.parent / "run.log"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        command = [sys.executable, "-m", "odradek", "pipeline", "run", str(self._project), *self._arguments]
        with self._log.open("ab") as log:
            # a session of its own: with the driver its JVM and workers must die too, as on a machine that is gone
            self.process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)

    def kill(self) -> None:
        assert self.process is not None
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def stop(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()
            assert self.process.wait(PATIENCE_S) == 0, self._log.read_text()

    def await_rows(self, count: int) -> None:
        """Until every query has nothing left to read, and the table's has seen so many."""
        deadline, calm = time.monotonic() + PATIENCE_S, 0
        while calm < 4:
            assert self.process is not None
            assert self.process.poll() is None, self._log.read_text()
            assert time.monotonic() < deadline, read_status(self._project)
            status = read_status(self._project)
            # what the run before this one has left says nothing
            queries = status["queries"] if status and status["pid"] == self.process.pid else []
            done = queries and all(q["lag"] == 0 for q in queries) and queries[0]["input_rows_total"] >= count
            calm = calm + 1 if done else 0
            time.sleep(0.5)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[OdradekCluster]:
    brokers = OdradekCluster(tmp_path / "cluster", brokers=3)
    try:
        brokers.start_all()
        with ClusterClient(brokers.bootstrap_servers) as client:
            for name in ("orders", "revenue", "dead-letters"):
                config = {"min.insync.replicas": "2"}
                create_topic(client, f"shop.{name}", partitions=4, replication_factor=3, configs=config)
            compacted = {"cleanup.policy": "compact"}
            create_topic(client, "shop.categories", partitions=1, replication_factor=3, configs=compacted)
        yield brokers
    finally:
        brokers.stop_all()


def sell(cluster: OdradekCluster, seconds: float, rate: int = 150, seed: int = 1) -> Sent:
    with Shop(cluster.bootstrap_servers, orders="shop.orders", categories="shop.categories") as shop:
        shop.describe(CATEGORIES)
        return shop.sell(OrderMaker(seed), rate, seconds)


def selling(cluster: OdradekCluster, seconds: float, seed: int = 1) -> tuple[threading.Thread, Callable[[], Sent]]:
    sent: list[Sent] = []
    thread = threading.Thread(target=lambda: sent.append(sell(cluster, seconds, seed=seed)))
    thread.start()

    def result() -> Sent:
        thread.join()
        return sent[0]

    return thread, result


def books(cluster: OdradekCluster, project: Path, sent: Sent) -> Proof:
    return prove(sent, project / "data" / "orders", cluster.bootstrap_servers, "shop.dead-letters", "shop.revenue")


def test_a_driver_that_is_killed_again_and_again(cluster: OdradekCluster, tmp_path: Path) -> None:
    project = tmp_path / "shop"
    init_project(project, "shop", cluster.bootstrap_servers)
    driver, chance = Driver(project, "--master", "local[2]"), random.Random(7)
    thread, sent = selling(cluster, seconds=90)
    kills = 0
    try:
        while thread.is_alive():
            driver.start()
            # from the first moments of a start to well into the batches
            time.sleep(chance.uniform(2, 30))
            driver.kill()
            kills += 1
        driver.start()
        driver.await_rows(0)
    finally:
        driver.stop()
    assert kills >= 3
    proof = books(cluster, project, sent())
    assert proof.ok, proof.checks


def test_a_broker_dies_and_partitions_are_added_while_queries_run(cluster: OdradekCluster, tmp_path: Path) -> None:
    project = tmp_path / "shop"
    init_project(project, "shop", cluster.bootstrap_servers)
    driver = Driver(project, "--master", "local[2]", "--metrics-port", "0")
    driver.start()
    try:
        first = sell(cluster, seconds=10)
        driver.await_rows(first.total)
        _, sent = selling(cluster, seconds=40, seed=2)
        time.sleep(5)
        cluster.kill(1)
        time.sleep(15)
        cluster.start(1)
        with ClusterClient(cluster.bootstrap_servers) as client:
            add_partitions(client, "shop.orders", 6)
        second = sent()
        third = sell(cluster, seconds=5, seed=3)
        driver.await_rows(first.total + second.total + third.total)
        status = read_status(project)
        assert status is not None
        with urllib.request.urlopen(f"http://127.0.0.1:{status['metrics_port']}/metrics", timeout=30) as answer:
            assert 'odradek_pipeline_lag_records{pipeline="shop",query="orders_table"} 0.0' in answer.read().decode()
    finally:
        driver.stop()
    proof = books(cluster, project, Sent(first.records + second.records + third.records))
    assert proof.ok, proof.checks


def test_on_a_cluster_of_two_workers(cluster: OdradekCluster, tmp_path: Path) -> None:
    project = tmp_path / "shop"
    init_project(project, "shop", cluster.bootstrap_servers)
    with StandaloneSpark(tmp_path / "spark", workers=2) as master:
        sent = sell(cluster, seconds=10)
        driver = Driver(project, "--master", master)
        driver.start()
        try:
            driver.await_rows(sent.total)
        finally:
            driver.stop()
    proof = books(cluster, project, sent)
    assert proof.ok, proof.checks


class StandaloneSpark:
    """A Spark master and workers of one core each, on free ports."""

    def __init__(self, directory: Path, workers: int) -> None:
        self._directory = directory
        self._workers = workers
        self._processes: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> str:
        import pyspark

        self._directory.mkdir()
        jars = Path(pyspark.__file__).parent / "jars"
        port = free_port()
        self._spawn(jars, "master.Master", "--host", "127.0.0.1", "--port", str(port), "--webui-port", "0")
        master = f"spark://127.0.0.1:{port}"
        for _ in range(self._workers):
            work = ("--host", "127.0.0.1", "--cores", "1", "--memory", "1g", "--webui-port", "0")
            self._spawn(jars, "worker.Worker", *work, "--work-dir", str(self._directory / "work"), master)
        return master

    def __exit__(self, *_: object) -> None:
        for process in self._processes:
            process.kill()
            process.wait()

    def _spawn(self, jars: Path, role: str, *arguments: str) -> None:
        environment = {**os.environ, "SPARK_HOME": str(jars.parent), "PYSPARK_PYTHON": sys.executable}
        command = [str(find_java()), "-Xmx256m", "-cp", f"{jars}/*", f"org.apache.spark.deploy.{role}", *arguments]
        with (self._directory / "spark.log").open("ab") as log:
            self._processes.append(subprocess.Popen(command, stdout=log, stderr=log, env=environment))

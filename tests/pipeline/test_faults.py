"""Pipelines as processes of their own, on three brokers: drivers are killed, brokers are, and the books still match."""

import random
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from odradek.apps.pipeline.sample_orders import Sent
from odradek.apps.pipeline.scaffold import init_project
from odradek.apps.pipeline.status import read_status
from odradek.client.cluster_client import ClusterClient
from odradek.client.elections import ElectionType, elect_leaders
from odradek.client.reassignments import alter_reassignments, ongoing_reassignments
from odradek.client.topic_admin import add_partitions, create_topic
from odradek.model.topology import TopicPartition
from odradek.testing import OdradekCluster
from waiting import eventually

from .shop_stage import PATIENCE_S, Driver, StandaloneSpark, books, sell, selling

pytestmark = [pytest.mark.soak, pytest.mark.timeout(1200)]


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


@contextmanager
def running_shop(cluster: OdradekCluster, tmp_path: Path, *options: str) -> Iterator[Driver]:
    project = tmp_path / "shop"
    init_project(project, "shop", cluster.bootstrap_servers)
    driver = Driver(project, "--master", "local[2]", *options)
    driver.start()
    try:
        yield driver
    finally:
        driver.stop()


def check_books(cluster: OdradekCluster, project: Path, *sent: Sent) -> None:
    proof = books(cluster.bootstrap_servers, project, Sent([record for each in sent for record in each.records]))
    assert proof.ok, proof.checks


def test_a_driver_that_is_killed_again_and_again(cluster: OdradekCluster, tmp_path: Path) -> None:
    """Once while it starts, then in the middle of batches, each time after it has finished some."""
    project = tmp_path / "shop"
    init_project(project, "shop", cluster.bootstrap_servers)
    file = project / "pipeline.toml"
    file.write_text(file.read_text().replace("[pipeline]", "[pipeline]\nrecords_per_batch_max = 500"))
    driver, chance = Driver(project, "--master", "local[2]"), random.Random(7)
    _, sent = selling(cluster.bootstrap_servers, seconds=60)
    try:
        driver.start()
        time.sleep(chance.uniform(1, 8))
        driver.kill()
        for _ in range(3):
            wanted = finished_batches(project) + 3
            driver.start()
            eventually(partial(has_finished, project, wanted), within_s=PATIENCE_S)
            time.sleep(chance.uniform(0, 3))
            driver.kill()
        sold = sent()
        driver.start()
        driver.await_rows(0)
    finally:
        driver.stop()
    check_books(cluster, project, sold)


def has_finished(project: Path, batches: int) -> bool:
    return finished_batches(project) >= batches


def finished_batches(project: Path) -> int:
    """Offsets of all queries together, as Spark's checkpoints have them."""
    commits = (project / ".odradek" / "checkpoint").glob("g1/*/commits/*")
    return sum(path.name.isdecimal() for path in commits)


def test_a_broker_dies_and_partitions_are_added_while_queries_run(cluster: OdradekCluster, tmp_path: Path) -> None:
    with running_shop(cluster, tmp_path, "--metrics-port", "0") as driver:
        first = sell(cluster.bootstrap_servers, seconds=10)
        driver.await_rows(first.total)
        _, sent = selling(cluster.bootstrap_servers, seconds=40, seed=2)
        time.sleep(5)
        cluster.kill(1)
        time.sleep(15)
        cluster.start(1)
        with ClusterClient(cluster.bootstrap_servers) as client:
            add_partitions(client, "shop.orders", 6)
        second = sent()
        third = sell(cluster.bootstrap_servers, seconds=5, seed=3)
        driver.await_rows(first.total + second.total + third.total)
        status = read_status(tmp_path / "shop")
        assert status is not None
        with urllib.request.urlopen(f"http://127.0.0.1:{status['metrics_port']}/metrics", timeout=30) as answer:
            assert 'odradek_pipeline_lag_records{pipeline="shop",query="orders"} 0.0' in answer.read().decode()
    check_books(cluster, tmp_path / "shop", first, second, third)


def test_all_brokers_are_restarted_while_queries_run(cluster: OdradekCluster, tmp_path: Path) -> None:
    """All at once as if the power had gone, then one after the other."""
    with running_shop(cluster, tmp_path) as driver:
        first = sell(cluster.bootstrap_servers, seconds=5)
        driver.await_rows(first.total)
        _, sent = selling(cluster.bootstrap_servers, seconds=40, seed=2)
        time.sleep(5)
        for broker in range(3):
            cluster.kill(broker)
        for broker in range(3):
            cluster.start(broker)
        for broker in range(3):
            cluster.stop(broker)
            cluster.start(broker)
        second = sent()
        driver.await_rows(first.total + second.total)
    check_books(cluster, tmp_path / "shop", first, second)


def test_leaders_move_while_queries_run(cluster: OdradekCluster, tmp_path: Path) -> None:
    """Each partition goes to other brokers and is led by another one, again and again."""
    with running_shop(cluster, tmp_path) as driver:
        first = sell(cluster.bootstrap_servers, seconds=5)
        driver.await_rows(first.total)
        thread, sent = selling(cluster.bootstrap_servers, seconds=40, seed=2)
        rounds = 0
        while thread.is_alive():
            move_everything(cluster.bootstrap_servers, rounds)
            rounds += 1
            time.sleep(3)
        second = sent()
        driver.await_rows(first.total + second.total)
    assert rounds >= 3
    check_books(cluster, tmp_path / "shop", first, second)


def move_everything(bootstrap: str, turn: int) -> None:
    """Two of three brokers have each partition, in the next turn two others do, and another one leads."""
    with ClusterClient(bootstrap) as client:
        topics = client.topics([f"shop.{name}" for name in ("orders", "revenue", "dead-letters", "categories")])
        partitions = [TopicPartition(topic.name, p.partition) for topic in topics.values() for p in topic.partitions]
        leaders = {tp: (tp.partition + turn) % 3 for tp in partitions}
        alter_reassignments(client, {tp: [leader, (leader + 1) % 3] for tp, leader in leaders.items()})
        eventually(lambda: not ongoing_reassignments(client))
        elect_leaders(client, ElectionType.PREFERRED, partitions)

        def all_lead() -> bool:
            found = client.topics(list(topics))
            return {TopicPartition(t, p.partition): p.leader for t in found for p in found[t].partitions} == leaders

        eventually(all_lead)


def test_on_a_cluster_of_two_workers(cluster: OdradekCluster, tmp_path: Path) -> None:
    project = tmp_path / "shop"
    init_project(project, "shop", cluster.bootstrap_servers)
    with StandaloneSpark(tmp_path / "spark", workers=2) as master:
        sent = sell(cluster.bootstrap_servers, seconds=10)
        driver = Driver(project, "--master", master)
        driver.start()
        try:
            driver.await_rows(sent.total)
        finally:
            driver.stop()
    check_books(cluster, project, sent)

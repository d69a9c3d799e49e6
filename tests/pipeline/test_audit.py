"""`odradek audit` over the files of a three-broker cluster: nothing to find, and what was broken on purpose."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from pyspark.sql import SparkSession

from odradek.pipeline.audit.findings import Kind
from odradek.pipeline.audit.job import audit
from odradek.testing import OdradekCluster


@pytest.fixture(scope="module")
def stopped_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The files of three brokers that held 2 × 3 replicas of one topic, and were stopped cleanly."""
    cluster = OdradekCluster(tmp_path_factory.mktemp("audited"), brokers=3)
    try:
        cluster.start_all()
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
        admin.create_topics([NewTopic("orders", 2, 3)])["orders"].result(30)
        producer = Producer(
            {"bootstrap.servers": cluster.bootstrap_servers, "enable.idempotence": True, "linger.ms": 0}
        )
        for i in range(200):
            producer.produce("orders", b"order %d" % i, b"%d" % i, i % 2)
            if i % 20 == 0:
                producer.flush(60)
        assert producer.flush(60) == 0
    finally:
        cluster.stop_all()
    yield cluster.data_dir


def test_replicas_that_agree_have_no_findings(spark: SparkSession, stopped_cluster: Path) -> None:
    report = audit(spark, [str(stopped_cluster)])

    assert report.findings == ()
    assert report.brokers == (0, 1, 2)
    [orders] = [topic for topic in report.topics if topic.topic == "orders"]
    assert (orders.partitions, orders.replicas, orders.records, orders.uncommitted) == (2, 6, 200, 0)


def test_a_flipped_byte_is_found(spark: SparkSession, stopped_cluster: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(stopped_cluster, tmp_path / "copy")
    [segment] = (copy / "broker-1" / "logs" / "orders-0").glob("*.log")
    damaged = bytearray(segment.read_bytes())
    damaged[len(damaged) // 2] ^= 0x10
    segment.write_bytes(damaged)

    report = audit(spark, [str(copy)], frozenset({"orders"}))

    assert {finding.kind for finding in report.findings} >= {Kind.BROKEN}
    assert {(f.topic, f.partition, f.brokers) for f in report.findings} == {("orders", 0, (1,))}

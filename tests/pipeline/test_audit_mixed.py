"""`odradek audit` over the files of a cluster of Apache Kafka and Odradek: no false alarm, and every true one."""

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from apache_kafka import broker_command
from odradek.apps.cli.audit_assignment import find_assignment
from odradek.apps.lab.cluster import ChaosCluster
from odradek.apps.pipeline.audit.findings import Kind
from odradek.protocol.record_batch import build_batch
from odradek.protocol.records import Record

from .mixed_files import COMMITS, KAFKA, LEFT, ODRADEK, SETTINGS, files_of, leave_files
from .test_audit import audited, flip_a_byte

pytestmark = pytest.mark.soak  # the findings themselves are tested in tests/pipeline/test_audit.py


@pytest.fixture(scope="module")
def mixed(
    tmp_path_factory: pytest.TempPathFactory, zookeeper: str, kafka_lib: Path
) -> Iterator[tuple[ChaosCluster, int]]:
    directory = tmp_path_factory.mktemp("mixed") / "cluster"
    launch = {KAFKA: broker_command(kafka_lib)}
    with ChaosCluster(directory, zookeeper, launch=launch, settings=SETTINGS) as cluster:
        yield cluster, leave_files(cluster)


def test_nothing_is_wrong_and_left_over_files_are_named(mixed: tuple[ChaosCluster, int]) -> None:
    cluster, records = mixed
    command = [sys.executable, "-m", "odradek", "audit", str(files_of(cluster)), "--format", "json"]
    ended = subprocess.run(
        [*command, "-b", cluster.brokers[KAFKA].bootstrap], capture_output=True, text=True, timeout=500, check=False
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    report = json.loads(ended.stdout)
    assert report["findings"] == []
    counted = {topic["topic"]: (topic["replicas"], topic["records"]) for topic in report["topics"]}
    assert counted["orders"] == (2, records)
    assert counted["__consumer_offsets"][1] >= COMMITS
    left = cluster.brokers[LEFT].log_dir / "orders-0"
    assert report["left_overs"] == [
        {
            "topic": "orders",
            "partition": 0,
            "broker": LEFT,
            "bytes": sum(path.stat().st_size for path in left.glob("*.log")),
            "path": str(left),
            "reason": "the replicas are on brokers 0, 1",
        }
    ]


def test_planted_faults_are_found(spark: SparkSession, mixed: tuple[ChaosCluster, int], tmp_path: Path) -> None:
    """One on a broker of each kind, and one in what the brokers agree on."""
    cluster, records = mixed
    assignment = find_assignment(cluster.brokers[ODRADEK].bootstrap, [])
    copy = shutil.copytree(files_of(cluster), tmp_path / "copy")
    [flipped] = (copy / f"broker-{KAFKA}" / "logs" / "orders-0").glob("*.log")
    flip_a_byte(flipped)
    assert [(f.kind, f.brokers) for f in audited(spark, copy, "orders", assignment=assignment).findings] == [
        (Kind.BROKEN, (KAFKA,))
    ]

    copy = shutil.copytree(files_of(cluster), tmp_path / "another")
    again = build_batch(
        [Record(records, 1_700_000_000_000, None, b"again")],
        base_offset=records,
        producer_id=_producer_id(spark, copy),
        producer_epoch=0,
        base_sequence=0,
    )
    for broker in (KAFKA, ODRADEK):
        logs = copy / f"broker-{broker}" / "logs"
        [segment] = (logs / "orders-0").glob("*.log")
        segment.write_bytes(segment.read_bytes() + again)
        checkpoint = logs / "replication-offset-checkpoint"
        checkpoint.write_text(checkpoint.read_text().replace(f"orders 0 {records}\n", f"orders 0 {records + 1}\n"))
    found = audited(spark, copy, "orders", assignment=assignment).findings
    assert [(f.kind, f.offset, f.brokers) for f in found] == [(Kind.DUPLICATE, records, (KAFKA, ODRADEK))]


def _producer_id(spark: SparkSession, directory: Path) -> int:
    """Id of the producer that wrote most of the records, with epoch 0."""
    batches = spark.read.format("odradek-log").option("rows", "batches").option("topics", "orders").load(str(directory))
    return int(batches.where("producerId >= 0 and producerEpoch = 0 and baseSequence = 0").first().producerId)

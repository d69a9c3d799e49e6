"""`format("odradek-log")` over the files of a running broker: the same rows that the broker gives."""

from pathlib import Path

import pytest
from confluent_kafka import Producer
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from odradek.testing import OdradekCluster
from pipeline.conftest import TopicMaker, TopicReader
from waiting import eventually


def test_files_hold_what_the_broker_gives(
    spark: SparkSession, odradek_cluster: OdradekCluster, new_topic: TopicMaker, read_topic: TopicReader
) -> None:
    topics = [new_topic(partitions=2, retention_ms="-1") for _ in range(2)]
    for topic, codec in zip(topics, ("none", "zstd"), strict=True):
        producer = Producer({"bootstrap.servers": odradek_cluster.bootstrap_servers, "compression.type": codec})
        for i in range(3000):
            headers = [("n", b"%d" % i), ("empty", None)] if i % 3 else None
            value = None if i % 7 == 0 else b"value %d" % i
            producer.produce(
                topic, value, b"%d" % i if i % 5 else None, i % 2, headers=headers, timestamp=1_700_000_000_000 + i
            )
        assert producer.flush(60) == 0

    names = ",".join(topics)
    cold = spark.read.format("odradek-log").option("topics", names).option("includeHeaders", "true")
    files = cold.load(str(odradek_cluster.data_dir)).drop("broker")

    brokers = read_topic(names, includeHeaders="true")
    assert files.columns == brokers.columns
    assert files.count() == 6000
    assert files.exceptAll(brokers).count() == 0
    batches = spark.read.format("odradek-log").option("topics", names).option("rows", "batches")
    summary = batches.load(str(odradek_cluster.data_dir)).groupBy("codec").sum("records").collect()
    assert sorted(tuple(row) for row in summary) == [("none", 3000), ("zstd", 3000)]


def test_committed_reads_from_brokers_and_files(
    spark: SparkSession, odradek_cluster: OdradekCluster, new_topic: TopicMaker, read_topic: TopicReader
) -> None:
    """One transaction is committed, one aborted, and one is open when the query runs."""
    topic = new_topic(retention_ms="-1")
    producer = Producer({"bootstrap.servers": odradek_cluster.bootstrap_servers, "transactional.id": topic})
    producer.init_transactions(60)
    for outcome in ("committed", "aborted", "committed", "open"):
        producer.begin_transaction()
        for i in range(5):
            producer.produce(topic, f"{outcome} {i}")
        assert producer.flush(60) == 0
        if outcome == "committed":
            producer.commit_transaction(60)
        elif outcome == "aborted":
            producer.abort_transaction(60)
    expected = sorted(f"committed {i}" for i in range(5) for _ in range(2))

    def values(frame: DataFrame) -> list[str]:
        return sorted(row.value.decode() for row in frame.select("value").collect())

    eventually(lambda: values(read_topic(topic, **{"kafka.isolation.level": "read_committed"})) == expected)
    assert len(values(read_topic(topic))) == 20
    files = spark.read.format("odradek-log").option("topics", topic)
    committed = files.option("isolationLevel", "read_committed")
    # Below the checkpointed high watermark alone, which is written every five seconds.
    eventually(lambda: values(committed.load(str(odradek_cluster.data_dir))) == expected)
    producer.abort_transaction(60)


def test_what_is_no_log_directory_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(PySparkException, match=r"is not a log directory of a broker"):
        spark.read.format("odradek-log").load(str(tmp_path)).count()

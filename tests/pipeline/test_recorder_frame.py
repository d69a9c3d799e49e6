"""The flight recorder's journal as a DataFrame: Spark reads the lines as they are (row G2)."""

import time

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from odradek.testing import OdradekCluster

from .conftest import TopicMaker

PATIENCE_S = 60


def test_spark_finds_what_led_to_a_leader(
    spark: SparkSession, odradek_cluster: OdradekCluster, new_topic: TopicMaker
) -> None:
    topic = new_topic(3)
    pattern = str(odradek_cluster.data_dir / "broker-*" / "logs" / "recorder-*.jsonl")

    def caused() -> DataFrame:
        journal = spark.read.json(pattern)
        states = journal.where((f.col("what") == "PartitionState") & (f.col("topic") == topic)).alias("state")
        events = journal.where(f.col("kind") == "event").alias("event")
        same = (f.col("state.broker") == f.col("event.broker")) & (f.col("state.cause") == f.col("event.seq"))
        return states.join(events, same).select("state.partition", "state.leader", "state.isr", "event.what")

    # the topic is created before its lines are on disk
    deadline = time.monotonic() + PATIENCE_S
    while len(rows := sorted(map(tuple, caused().collect()))) < 3 and time.monotonic() < deadline:
        time.sleep(0.5)
    assert rows == [(partition, 0, [0], "TopicsChanged") for partition in range(3)]

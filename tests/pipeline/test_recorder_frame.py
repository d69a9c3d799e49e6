"""The flight recorder's journal as a DataFrame: Spark reads the lines as they are (row G2)."""

import time
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as f

from odradek.broker.recorder.core.entry import Entry, Kind
from odradek.broker.recorder.journals import file_name
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


def test_spark_finds_what_is_missing(spark: SparkSession, tmp_path: Path) -> None:
    entries = [Entry(seq, 1, seq, Kind.EVENT, "BrokersChanged") for seq in (1, 2, 5)]
    told = Entry(9, 1, 9, Kind.GAP, "NotWritten", count=3, after=5, since_ms=5, text="no space left")
    (tmp_path / file_name(1, 1)).write_text("".join(entry.as_line() for entry in (*entries, told)))

    journal = spark.read.json(str(tmp_path / "recorder-*.jsonl"))
    before = f.lag("seq").over(Window.partitionBy("broker").orderBy("seq"))
    lines = journal.select("broker", "seq", "time_ms").distinct()
    jumps = lines.withColumn("before", before).where("seq > before + 1")

    assert sorted((row.before, row.seq) for row in jumps.collect()) == [(2, 5), (5, 9)]
    assert [row["count"] for row in journal.where("kind = 'gap'").collect()] == [3]

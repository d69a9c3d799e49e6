"""`format("odradek")` as a sink with `exactlyOnce`: a batch that comes again is written once. librdkafka judges."""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from confluent_kafka import Consumer, TopicPartition
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from odradek.apps.pipeline.source.exactly_once import end_part, write_part
from odradek.client.cluster_client import ClusterClient

from .conftest import TopicFiller, TopicMaker
from .test_streaming import copy_query

PARTITIONS = 2


def rows(topic: str, *values: str) -> Iterator[pa.RecordBatch]:
    content = [value.encode() for value in values]
    headers = pa.nulls(len(values), pa.list_(pa.struct({"key": pa.string(), "value": pa.binary()})))
    yield pa.record_batch({"topic": [topic] * len(values), "key": content, "value": content, "headers": headers})


def committed_values(bootstrap: str, topic: str) -> list[str]:
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "judge",
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
        }
    )
    consumer.assign([TopicPartition(topic, number, 0) for number in range(PARTITIONS)])
    found: list[str] = []
    ends = 0
    try:
        while ends < PARTITIONS:
            message = consumer.poll(30)
            assert message is not None
            if message.error():
                ends += 1
            else:
                found.append((message.value() or b"").decode())
        return sorted(found)
    finally:
        consumer.close()


def test_a_crash_between_the_commits_of_two_tasks_leaves_each_row_once(bootstrap: str, new_topic: TopicMaker) -> None:
    topic = new_topic(PARTITIONS)
    ids = (f"{topic}-0", f"{topic}-1")
    with ClusterClient(bootstrap) as client:
        first = [write_part(client, ids[task], 7, rows(topic, f"a{task}", f"b{task}")) for task in (0, 1)]
        assert first[0] is not None
        end_part(client, first[0], commit=True)  # and here the driver dies
        again = [write_part(client, ids[task], 7, rows(topic, f"a{task}", f"b{task}")) for task in (0, 1)]
        assert again[0] is None, "the part that was committed is known by the name of its batch"
        assert again[1] is not None
        assert first[1] is not None
        end_part(client, again[1], commit=True)
        assert committed_values(bootstrap, topic) == ["a0", "a1", "b0", "b1"]
        assert write_part(client, ids[0], 8, iter(())) is None, "a task without rows has nothing to commit"
        following = write_part(client, ids[0], 9, rows(topic, "c"))
        assert following is not None
        end_part(client, following, commit=True)
    assert committed_values(bootstrap, topic) == ["a0", "a1", "b0", "b1", "c"]


def test_a_batch_that_spark_gives_again_is_there_once(
    spark: SparkSession, bootstrap: str, new_topic: TopicMaker, fill: TopicFiller, tmp_path: Path
) -> None:
    source, sink = new_topic(partitions=2), new_topic(PARTITIONS)
    fill(source, [(b"%d" % i, b"%d" % i) for i in range(30)], partition=0)
    fill(source, [(b"%d" % i, b"%d" % i) for i in range(30, 40)], partition=1)
    copy_query(spark, bootstrap, source, sink, tmp_path, sink_options={"exactlyOnce": "true"})
    wanted = sorted(str(i) for i in range(40))
    assert committed_values(bootstrap, sink) == wanted

    last = max(int(path.name) for path in (tmp_path / "commits").glob("[0-9]*"))
    for name in (str(last), f".{last}.crc"):  # as if the driver had died before Spark noted the batch
        (tmp_path / "commits" / name).unlink(missing_ok=True)
    fill(source, [(b"new", b"new")])
    copy_query(spark, bootstrap, source, sink, tmp_path, sink_options={"exactlyOnce": "true"})
    assert committed_values(bootstrap, sink) == sorted([*wanted, "new"])


def test_what_it_can_not_promise_is_refused(spark: SparkSession, bootstrap: str, new_topic: TopicMaker) -> None:
    frame = spark.createDataFrame([("a",)], "value STRING")
    writer = frame.write.format("odradek").mode("append").option("kafka.bootstrap.servers", bootstrap)
    with pytest.raises(PySparkException, match="exactlyOnce is for streaming queries"):
        writer.option("topic", new_topic(1)).option("exactlyOnce", "true").save()

"""Batch queries over topics with `format("odradek")`: the columns, the ranges, the splits, the refusals."""

import json
from typing import Any

import pytest
from confluent_kafka import Producer
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from pipeline.conftest import TopicFiller, TopicMaker, TopicReader


def offsets(frame: DataFrame) -> list[tuple[int, int]]:
    return sorted((row.partition, row.offset) for row in frame.select("partition", "offset").collect())


def test_rows_have_the_connectors_columns(read_topic: TopicReader, new_topic: TopicMaker, fill: TopicFiller) -> None:
    topic = new_topic()
    fill(topic, [(b"k", b"v"), (None, b""), (b"gone", None)])

    frame = read_topic(topic)

    assert frame.schema.simpleString() == (
        "struct<key:binary,value:binary,topic:string,partition:int,offset:bigint,timestamp:timestamp,timestampType:int>"
    )
    rows = frame.orderBy("offset").collect()
    assert [(r.key, r.value, r.topic, r.partition, r.offset, r.timestampType) for r in rows] == [
        (b"k", b"v", topic, 0, 0, 0),
        (None, b"", topic, 0, 1, 0),
        (b"gone", None, topic, 0, 2, 0),
    ]


def test_ranges_by_offset_and_splits(read_topic: TopicReader, new_topic: TopicMaker, fill: TopicFiller) -> None:
    topic = new_topic(partitions=2)
    fill(topic, [(None, b"%d" % i) for i in range(100)], partition=0)
    fill(topic, [(None, b"%d" % i) for i in range(10)], partition=1)
    start, end = {topic: {"0": 90, "1": -2}}, {topic: {"0": -1, "1": 3}}

    ranged = read_topic(topic, startingOffsets=json.dumps(start), endingOffsets=json.dumps(end))

    assert offsets(ranged) == [*((0, i) for i in range(90, 100)), *((1, i) for i in range(3))]
    split = read_topic(topic, minPartitions="5")
    assert split.rdd.getNumPartitions() == 5
    assert len(offsets(split)) == 110


def test_headers_and_times(spark: SparkSession, bootstrap: str, read_topic: TopicReader, new_topic: TopicMaker) -> None:
    topic = new_topic(retention_ms="-1")
    producer = Producer({"bootstrap.servers": bootstrap})
    for i in range(10):
        producer.produce(
            topic, b"%d" % i, timestamp=1_700_000_000_000 + i, headers=[("n", b"%d" % i), ("n", None)] if i else None
        )
    assert producer.flush(60) == 0

    rows = read_topic(topic, includeHeaders="true", startingTimestamp="1700000000004").orderBy("offset").collect()

    assert [r.offset for r in rows] == [4, 5, 6, 7, 8, 9]
    assert [(h.key, h.value) for h in rows[0].headers] == [("n", b"4"), ("n", None)]
    assert rows[0].timestamp.microsecond == 4000
    ending = json.dumps({topic: {"0": 1_700_000_000_002}})
    first = read_topic(topic, includeHeaders="true", endingOffsetsByTimestamp=ending).orderBy("offset").collect()
    assert [(r.offset, r.headers is None) for r in first] == [(0, True), (1, False)]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({}, "Exactly one of subscribe, subscribePattern and assign"),
        ({"subscribe": "x", "assign": '{"x": [0]}'}, "Exactly one of"),
        ({"subscribe": "x", "startingOffsets": "latest"}, "can't be latest in a batch query"),
        ({"subscribe": "x", "startingOffsets": "soon"}, "startingOffsets takes JSON like"),
        ({"subscribe": "x", "kafka.auto.offset.reset": "earliest"}, "say startingOffsets instead"),
        ({"subscribe": "no-such-topic"}, "there is no topic no-such-topic"),
        ({"subscribe": "x", "minPartitions": "none"}, "minPartitions takes a whole number"),
    ],
)
def test_refusals_are_one_sentence(spark: SparkSession, bootstrap: str, options: dict[str, Any], sentence: str) -> None:
    frame = spark.read.format("odradek").option("kafka.bootstrap.servers", bootstrap).options(**options)
    with pytest.raises(PySparkException) as refused:
        frame.load().collect()
    assert sentence in str(refused.value)

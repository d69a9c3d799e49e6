"""Batch writes through `format("odradek")`: where rows go, and which are refused."""

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from pipeline.conftest import TopicMaker, TopicReader


def test_rows_go_where_their_columns_say(
    spark: SparkSession, bootstrap: str, new_topic: TopicMaker, read_topic: TopicReader
) -> None:
    one, two = new_topic(), new_topic(partitions=3)
    rows = [(one, None, "k", "v", None), (two, 2, None, "w", [("h", b"1"), ("h", None)]), (two, 1, "x", None, [])]
    schema = "topic string, partition int, key string, value string, headers array<struct<key: string, value: binary>>"

    frame = spark.createDataFrame(rows, schema)
    frame.write.format("odradek").option("kafka.bootstrap.servers", bootstrap).mode("append").save()

    found = read_topic(f"{one},{two}", includeHeaders="true").collect()
    written = sorted((r.topic, r.partition, r.key, r.value, [tuple(h) for h in r.headers or []]) for r in found)
    expected = [
        (one, 0, b"k", b"v", []),
        (two, 1, b"x", None, []),
        (two, 2, None, b"w", [("h", b"1"), ("h", None)]),
    ]
    assert written == sorted(expected), "topic 10 is before topic 9"


@pytest.mark.parametrize(
    ("schema", "sentence"),
    [
        ("key string", "There is no column value"),
        ("topic string, value int", "The column value must be string or binary, not int"),
        ("value string", "Which topic?"),
    ],
)
def test_rows_that_are_no_records_are_refused(spark: SparkSession, bootstrap: str, schema: str, sentence: str) -> None:
    frame = spark.createDataFrame([], schema)
    with pytest.raises(PySparkException) as refused:
        frame.write.format("odradek").option("kafka.bootstrap.servers", bootstrap).mode("append").save()
    assert sentence in str(refused.value)

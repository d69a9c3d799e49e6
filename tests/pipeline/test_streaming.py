"""Streaming queries through `format("odradek")`: checkpoints, limits, availableNow, topics to topics."""

from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQuery

from pipeline.conftest import TopicFiller, TopicMaker, TopicReader


def copy_query(
    spark: SparkSession,
    bootstrap: str,
    source: str,
    sink: str,
    checkpoint: Path,
    sink_options: dict[str, str] | None = None,
    **options: str,
) -> StreamingQuery:
    """Everything that `source` has now, copied to `sink`."""
    rows = (
        spark.readStream.format("odradek")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("subscribe", source)
        .option("startingOffsets", "earliest")
        .options(**options)
        .load()
    )
    query = (
        rows.select("key", "value")
        .writeStream.format("odradek")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("topic", sink)
        .option("checkpointLocation", str(checkpoint))
        .options(**(sink_options or {}))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(120)
    return query


def test_topic_to_topic_from_checkpoint_to_checkpoint(
    spark: SparkSession,
    bootstrap: str,
    new_topic: TopicMaker,
    fill: TopicFiller,
    read_topic: TopicReader,
    tmp_path: Path,
) -> None:
    source, sink = new_topic(partitions=2), new_topic(partitions=3)
    fill(source, [(b"a%d" % i, b"%d" % i) for i in range(50)], partition=0)
    fill(source, [(b"b%d" % i, b"%d" % i) for i in range(20)], partition=1)

    first = copy_query(spark, bootstrap, source, sink, tmp_path, maxOffsetsPerTrigger="30")

    progress = first.recentProgress
    assert [p.numInputRows for p in progress if p.numInputRows] == [29, 29, 12]
    assert progress[-1].sources[0].endOffset == f'{{"{source}": {{"0": 50, "1": 20}}}}'
    fill(source, [(b"late", b"50")])
    copy_query(spark, bootstrap, source, sink, tmp_path)

    copied = sorted((r.key, r.value) for r in read_topic(sink).collect())
    expected = [(b"a%d" % i, b"%d" % i) for i in range(50)] + [(b"b%d" % i, b"%d" % i) for i in range(20)]
    assert copied == sorted([*expected, (b"late", b"50")])

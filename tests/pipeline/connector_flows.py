"""Run by an interpreter with pyspark 4.0.0: Spark's own Kafka connector against the cluster, in every flow it has.

    python connector_flows.py BOOTSTRAP WORK_DIRECTORY IVY_DIRECTORY [PROPERTIES [PREFIX]]

PROPERTIES are settings of Kafka's clients, given to the connector as `kafka.…`; PREFIX begins the names of topics and
groups.

Writes a topic in a batch, reads it in a batch, copies it in a stream, with headers, splits, limits and times; prints
what it found as one line of JSON. Knows nothing of Odradek.
"""

import json
import sys
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import array, col, expr, lit, struct

CONNECTOR = "org.apache.spark:spark-sql-kafka-0-10_2.13:4.0.0"
ROWS = 5000


_security: dict[str, str] = {}
_prefix = ""


def main(bootstrap: str, work: Path, ivy: Path, properties: str = "", prefix: str = "") -> dict[str, Any]:
    global _prefix
    _prefix = prefix
    if properties:
        lines = (line.partition("=") for line in Path(properties).read_text().splitlines())
        _security.update({f"kafka.{key}": value for key, _, value in lines if not key.startswith("bootstrap")})
        _security["groupIdPrefix"] = f"{prefix}connector"
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.jars.packages", CONNECTOR)
        .config("spark.jars.ivy", str(ivy))
        .config("spark.ui.enabled", "false")
        .config("spark.driver.memory", "700m")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.local.dir", str(work / "local"))
        .config("spark.log.level", "ERROR")
        .getOrCreate()
    )
    try:
        return flows(spark, bootstrap, work)
    finally:
        spark.stop()


def flows(spark: SparkSession, bootstrap: str, work: Path) -> dict[str, Any]:
    found: dict[str, Any] = {"spark": spark.version}
    batch_write(spark, bootstrap)
    rows = batch_read(spark, bootstrap, subscribe=_topic("in"), includeHeaders="true", minPartitions="6")
    found["tasks"] = rows.rdd.getNumPartitions()
    found["read"] = rows.count()
    found["keys"] = rows.select("key").distinct().count()
    found["headers"] = rows.where("headers[0].key = 'n' and headers[0].value = value").count()
    tail = batch_read(spark, bootstrap, subscribePattern=_topic("i."), startingOffsets=tail_offsets(rows))
    found["tail"] = tail.count()
    times = [row.ms for row in rows.select(expr("unix_millis(timestamp) as ms")).distinct().collect()]
    since = batch_read(spark, bootstrap, subscribe=_topic("in"), startingTimestamp=str(max(times)),
                       startingOffsetsByTimestampStrategy="latest")  # fmt: skip
    found["since_newest"] = since.count() == rows.where(expr(f"unix_millis(timestamp) >= {max(times)}")).count()
    found["batches"] = [copied for copied in stream_copy(spark, bootstrap, work) if copied]
    batch_write(spark, bootstrap)
    found["batches_after_restart"] = [copied for copied in stream_copy(spark, bootstrap, work) if copied]
    copied = batch_read(spark, bootstrap, assign=json.dumps({_topic("out"): [0, 1]}))
    found["copied"] = copied.count()
    found["copied_values"] = copied.select("value").distinct().count()
    return found


def _topic(name: str) -> str:
    return f"{_prefix}connector-{name}"


def batch_write(spark: SparkSession, bootstrap: str) -> None:
    header = struct(lit("n").alias("key"), col("id").cast("string").cast("binary").alias("value"))
    rows = spark.range(ROWS).select(
        col("id").cast("string").alias("key"), col("id").cast("string").alias("value"), array(header).alias("headers")
    )
    options = {"kafka.bootstrap.servers": bootstrap, "topic": _topic("in"), "includeHeaders": "true", **_writing()}
    rows.write.format("kafka").options(**options).save()


def batch_read(spark: SparkSession, bootstrap: str, **options: str) -> DataFrame:
    reader = spark.read.format("kafka").option("kafka.bootstrap.servers", bootstrap)
    return reader.options(**_security, **options).load()


def _writing() -> dict[str, str]:
    return {name: value for name, value in _security.items() if name.startswith("kafka.")}


def tail_offsets(rows: DataFrame) -> str:
    """Ten before the end of each partition."""
    ends = rows.groupBy("partition").agg(expr("max(offset) as last")).collect()
    return json.dumps({_topic("in"): {str(row.partition): row.last - 9 for row in ends}})


def stream_copy(spark: SparkSession, bootstrap: str, work: Path) -> list[int]:
    rows = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("subscribe", _topic("in"))
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", "2000")
        .options(**_security)
        .load()
    )
    query = (
        rows.select("key", "value")
        .writeStream.format("kafka")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("topic", _topic("out"))
        .options(**_writing())
        .option("checkpointLocation", str(work / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    return [progress.numInputRows for progress in query.recentProgress]


if __name__ == "__main__":
    found = main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]), *sys.argv[4:])
    sys.stdout.write(json.dumps(found) + "\n")

"""The sample pipeline's work as one would write it by hand: Spark's own connector, three queries, no Odradek.

    python plain_job.py BOOTSTRAP NAME DIRECTORY FORMAT IVY_DIRECTORY [TRIGGER]

FORMAT is `kafka` (the connector, whose jars Ivy keeps), or `odradek` to see what the data source alone changes. Reads
what is there, in batches of at most 250,000, and ends; with a TRIGGER (`1 second`) goes on until it is stopped.
"""

import sys

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

CONNECTOR = "org.apache.spark:spark-sql-kafka-0-10_2.13:4.0.0"
SCHEMA = "order_id STRING, customer STRING, category_id INT, quantity INT, amount DOUBLE, at TIMESTAMP"


def main(bootstrap: str, name: str, directory: str, source: str, ivy: str, trigger: str = "") -> None:
    builder = SparkSession.builder.config("spark.ui.enabled", "false").config("spark.sql.shuffle.partitions", "2")
    if source == "kafka":
        builder = builder.config("spark.jars.packages", CONNECTOR).config("spark.jars.ivy", ivy)
    spark = builder.config("spark.log.level", "ERROR").config("spark.sql.session.timeZone", "UTC").getOrCreate()
    brokers = {"kafka.bootstrap.servers": bootstrap}
    limits = {"startingOffsets": "earliest", "maxOffsetsPerTrigger": "250000"}
    raw = spark.readStream.format(source).options(**brokers, **limits).option("subscribe", f"{name}.orders").load()
    fields = F.from_json(F.col("value").cast("string"), SCHEMA)
    parsed = raw.select("key", "value", "timestamp", fields.alias("o")).select("key", "value", "timestamp", "o.*")
    is_good = F.expr(
        "order_id IS NOT NULL AND amount > 0 AND customer IS NOT NULL AND quantity BETWEEN 1 AND 100 AND "
        "at < timestamp + INTERVAL 1 MINUTE AND at >= timestamp - INTERVAL 1 MINUTE"
    )
    good = parsed.where(F.coalesce(is_good, F.lit(False))).drop("key", "value", "timestamp")
    orders = good.withWatermark("at", "2 minutes").dropDuplicatesWithinWatermark(["order_id"])
    rows = spark.read.format(source).options(**brokers).option("subscribe", f"{name}.categories").load()
    named = F.from_json(F.col("value").cast("string"), "category_id INT, category STRING")
    categories = rows.select(named.alias("c")).select("c.*").dropDuplicates(["category_id"])
    priced = orders.join(F.broadcast(categories), "category_id", "left")
    sums = priced.groupBy(F.window("at", "10 seconds"), "category").agg(F.count("*"), F.sum("amount"))
    windows = sums.select(F.col("category").alias("key"), F.to_json(F.struct("*")).alias("value"))
    bad = parsed.where(~F.coalesce(is_good, F.lit(False))).select("key", "value")
    table = priced.writeStream.format("parquet").option("path", f"{directory}/orders")
    topic = windows.writeStream.format(source).options(**brokers).option("topic", f"{name}.plain-revenue")
    letters = bad.writeStream.format(source).options(**brokers).option("topic", f"{name}.plain-dead-letters")
    for number, writer in enumerate((table, topic.outputMode("update"), letters)):
        kept = writer.option("checkpointLocation", f"{directory}/checkpoint-{number}")
        (kept.trigger(processingTime=trigger) if trigger else kept.trigger(availableNow=True)).start()
    for query in spark.streams.active:
        query.awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])

"""Run by any interpreter with pyspark: a stream on a topic through the named data source, whenever it is asked for.

    python loss_flows.py FORMAT BOOTSTRAP WORK_DIRECTORY [PACKAGE IVY_DIRECTORY]

Each line of its input is a topic and what `failOnDataLoss` shall be. The answer is a line of JSON: the values that the
stream read from where it stood, or "failed". Knows nothing of Odradek.
"""

import json
import sys
from pathlib import Path

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession


def session(work: Path, package: str, ivy: str) -> SparkSession:
    settings = {
        "spark.ui.enabled": "false",
        "spark.driver.memory": "700m",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.local.dir": str(work / "local"),
        "spark.log.level": "OFF",
        **({"spark.jars.packages": package, "spark.jars.ivy": ivy} if package else {}),
    }
    builder = SparkSession.builder.master("local[2]")
    for key, value in settings.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def what_came(spark: SparkSession, format: str, bootstrap: str, checkpoint: Path, topic: str, strict: str) -> object:
    found: list[str] = []

    def keep(batch: DataFrame, _: int) -> None:
        found.extend(
            row.value for row in batch.orderBy("offset").selectExpr("cast(value as string) as value").collect()
        )

    options = {"subscribe": topic, "startingOffsets": "earliest", "failOnDataLoss": strict}
    rows = spark.readStream.format(format).option("kafka.bootstrap.servers", bootstrap).options(**options).load()
    writer = rows.writeStream.foreachBatch(keep).option("checkpointLocation", str(checkpoint))
    try:
        writer.trigger(availableNow=True).start().awaitTermination()
    except StreamingQueryException as error:
        sys.stderr.write(f"{format} {topic} {strict}: {str(error)[:400]}\n")
        return "failed"
    return found


def main(format: str, bootstrap: str, work: Path, package: str = "", ivy: str = "") -> None:
    spark = session(work, package, ivy)
    try:
        for line in sys.stdin:
            topic, strict = line.split()
            found = what_came(spark, format, bootstrap, work / topic, topic, strict)
            sys.stdout.write(json.dumps(found) + "\n")
            sys.stdout.flush()
    finally:
        spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]), *sys.argv[4:])

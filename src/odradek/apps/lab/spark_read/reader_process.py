"""One Spark session that reads topics on request. Runs under any pyspark, without Odradek.

    python reader_process.py CONNECTOR IVY_DIRECTORY

Each line of standard input is a JSON object: format, options, and `work`, a directory, if it is to be a stream into a
table there. The answer is a line of JSON: rows, seconds, the CPU seconds of the session and its workers, which say more
than seconds do on a machine that others use too, and the most memory that a Python worker ever had.
"""

import json
import os
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

CONNECTOR = "org.apache.spark:spark-sql-kafka-0-10_2.13:4.0.0"
_TICKS = os.sysconf("SC_CLK_TCK")


def session(connector: str, ivy: str) -> SparkSession:
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    settings = {
        "spark.driver.memory": "1g",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.sql.shuffle.partitions": "2",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
    }
    if connector == "kafka":
        settings |= {"spark.jars.packages": CONNECTOR, "spark.jars.ivy": ivy}
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def read(spark: SparkSession, source: str, options: dict[str, str]) -> int:
    # a new query each time: a DataFrame that is collected again doesn't read again
    rows = spark.read.format(source).options(**options).load()
    everything = rows.selectExpr("count(*)", "sum(length(key) + length(value))", "max(offset)", "max(timestamp)")
    return int(everything.collect()[0][0])


def stream(spark: SparkSession, source: str, options: dict[str, str], work: Path) -> int:
    """Topic, windows of a second for each of a hundred keys, Parquet; all that is there, in batches."""
    rows = spark.readStream.format(source).options(**options).load()
    windows = (
        rows.selectExpr("timestamp", "substring(cast(key as string), -2) as shop", "length(value) as size")
        .withWatermark("timestamp", "2 seconds")
        .groupBy(F.window("timestamp", "1 second"), "shop")
        .agg(F.count("*").alias("events"), F.sum("size").alias("bytes"))
    )
    shutil.rmtree(work / "stream", ignore_errors=True)
    query = (
        windows.writeStream.format("parquet")
        .option("checkpointLocation", str(work / "stream" / "checkpoint"))
        .option("path", str(work / "stream" / "table"))
        .outputMode("append")
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    return sum(progress.numInputRows for progress in query.recentProgress)


def family() -> Iterator[tuple[int, list[str]]]:
    """Return this process and all below it, with the fields of /proc/PID/stat after the name."""
    fields: dict[int, list[str]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(FileNotFoundError, ProcessLookupError):
            fields[int(path.parent.name)] = path.read_text().rpartition(") ")[2].split()
    pids, before = {os.getpid()}, 0
    while len(pids) != before:
        before = len(pids)
        pids |= {pid for pid, values in fields.items() if int(values[1]) in pids}
    return ((pid, fields[pid]) for pid in pids if pid in fields)


def cpu_seconds() -> float:
    """Processor seconds of the family, ended processes included."""
    return sum(int(ticks) for _, values in family() for ticks in values[11:15]) / _TICKS


def worker_mb() -> float:
    """The most that a Python worker has had in memory so far; 0 if there is none."""
    most = 0
    for pid, _ in family():
        with suppress(FileNotFoundError, ProcessLookupError):
            if pid != os.getpid() and Path(f"/proc/{pid}/comm").read_text().startswith("python"):
                status = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
                most = max(most, int(status["VmHWM"].split()[0]))
    return most / 1024


def answer(spark: SparkSession, order: dict[str, Any]) -> dict[str, Any]:
    cpu, started = cpu_seconds(), time.monotonic()
    if order["work"]:
        rows = stream(spark, order["format"], order["options"], Path(order["work"]))
    else:
        rows = read(spark, order["format"], order["options"])
    elapsed = time.monotonic() - started
    return {"rows": rows, "s": elapsed, "cpu_s": cpu_seconds() - cpu, "worker_mb": worker_mb()}


def main(connector: str, ivy: str) -> None:
    spark = session(connector, ivy)
    for line in sys.stdin:
        try:
            reply = answer(spark, json.loads(line))
        except Exception as error:
            reply = {"error": str(error)[:2000]}
        sys.stdout.write(json.dumps(reply) + "\n")
        sys.stdout.flush()
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])

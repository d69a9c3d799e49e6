"""One Spark session that reads one topic again and again, when told to. Runs under any pyspark, without Odradek.

    python reader_process.py FORMAT IVY_DIRECTORY OPTION=VALUE ...

For each line of standard input it reads everything once and answers with a line of JSON: rows, seconds, and the CPU
seconds of the session and its workers, which say more than seconds do on a machine that others use too.
"""

import json
import os
import sys
import time
from contextlib import suppress
from pathlib import Path

from pyspark.sql import SparkSession

CONNECTOR = "org.apache.spark:spark-sql-kafka-0-10_2.13:4.0.0"
_TICKS = os.sysconf("SC_CLK_TCK")


def session(reads_with: str, ivy: str) -> SparkSession:
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    settings = {
        "spark.driver.memory": "1g",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
    }
    if reads_with == "kafka":
        settings |= {"spark.jars.packages": CONNECTOR, "spark.jars.ivy": ivy}
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def cpu_seconds() -> float:
    """Of this process and all below it, those that have ended included."""
    fields: dict[int, list[str]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(FileNotFoundError, ProcessLookupError):
            fields[int(path.parent.name)] = path.read_text().rpartition(") ")[2].split()
    family, before = {os.getpid()}, 0
    while len(family) != before:
        before = len(family)
        family |= {pid for pid, values in fields.items() if int(values[1]) in family}
    return sum(int(ticks) for pid in family if pid in fields for ticks in fields[pid][11:15]) / _TICKS


def main(reads_with: str, ivy: str, options: dict[str, str]) -> None:
    spark = session(reads_with, ivy)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    for _ in sys.stdin:
        cpu, started = cpu_seconds(), time.monotonic()
        # a new query each time: a DataFrame that is collected again reads nothing again
        rows = spark.read.format(reads_with).options(**options).load()
        everything = rows.selectExpr("count(*)", "sum(length(key) + length(value))", "max(offset)", "max(timestamp)")
        count, size, _, _ = everything.collect()[0]
        answer = {"rows": count, "bytes": size, "s": time.monotonic() - started, "cpu_s": cpu_seconds() - cpu}
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], dict(text.split("=", 1) for text in sys.argv[3:]))

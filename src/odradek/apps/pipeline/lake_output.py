"""Tables in Delta Lake or Apache Iceberg, where their packages are on Spark's class path. Each batch is there once.

A commit of either is atomic, and can carry a name. Delta keeps the last batch of each writer (`txnAppId`, `txnVersion`)
and skips a repeated one; an Iceberg snapshot has the batch's name in its summary, which is checked before the batch is
written.
"""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from odradek.apps.pipeline.spec import TableFormat
from odradek.apps.pipeline.topic_output import BATCH_HEADER
from odradek.base.errors import FatalError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_PACKAGES = {
    TableFormat.DELTA: "io.delta:delta-spark_2.13",
    TableFormat.ICEBERG: "org.apache.iceberg:iceberg-spark-runtime",
}
# io.delta:delta-spark_4.2_2.13:4.4.0, org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0: between them, Spark's
_MADE_FOR = re.compile(r"[-_](\d+\.\d+)_2\.\d+:")


@dataclass(frozen=True, slots=True)
class DeltaOutput:
    table: Path
    partition_by: tuple[str, ...]
    writer: str

    def __call__(self, batch: "DataFrame", number: int) -> None:
        options = {"txnAppId": self.writer, "txnVersion": str(number), "mergeSchema": "true"}
        writer = batch.write.format("delta").mode("append").options(**options)
        if self.partition_by:
            writer = writer.partitionBy(*self.partition_by)
        writer.save(str(self.table))


@dataclass(frozen=True, slots=True)
class IcebergOutput:
    """The table is one of a catalog that the directory above it makes, as Iceberg's own `hadoop` catalogs are."""

    table: Path
    partition_by: tuple[str, ...]
    writer: str
    catalog: str

    def __call__(self, batch: "DataFrame", number: int) -> None:
        from pyspark.sql import functions as F

        spark, tag = batch.sparkSession, f"{self.writer}/{number}"
        name = self._in_catalog(spark)
        writer = batch.writeTo(name).option(f"snapshot-property.{BATCH_HEADER}", tag)
        if not spark.catalog.tableExists(name):
            made = writer.using("iceberg").tableProperty("write.spark.accept-any-schema", "true")
            if self.partition_by:
                made = made.partitionedBy(*(F.col(f"`{column}`") for column in self.partition_by))
            made.create()
        elif spark.table(f"{name}.snapshots").where(F.col("summary")[BATCH_HEADER] == tag).isEmpty():
            writer.option("mergeSchema", "true").append()

    def _in_catalog(self, spark: "SparkSession") -> str:
        setting = f"spark.sql.catalog.{self.catalog}"
        spark.conf.set(setting, "org.apache.iceberg.spark.SparkCatalog")
        spark.conf.set(f"{setting}.type", "hadoop")
        spark.conf.set(f"{setting}.warehouse", str(self.table.parent))
        return f"{self.catalog}.`{self.table.name}`"


def check_format(spark: "SparkSession", format: TableFormat) -> None:
    """Raise FatalError if Spark lacks the format, or has a package of it for another Spark."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    given = spark.conf.get("spark.jars.packages", "") or ""
    if (wanted := spark_of_package(given, format)) and not spark.version.startswith(f"{wanted}."):
        raise _not_made_for(spark, format, f", but for Spark {wanted}")
    try:
        _ = spark.read.format(format.value).load("/nonexistent-odradek").schema  # Spark Connect looks no earlier
    except PySparkException as error:
        if "DATA_SOURCE_NOT_FOUND" in str(error) or "ClassNotFound" in str(error):
            raise FatalError(
                f"tables in {format.value} need its package on Spark's class path: give it in [spark], "
                f'"spark.jars.packages" = "{_PACKAGES[format]}:VERSION"'
            ) from None
    except Py4JError as error:
        if "IncompatibleClassChange" in str(error) or "NoSuchMethod" in str(error) or "NoClassDef" in str(error):
            raise _not_made_for(spark, format) from None
        raise


def spark_of_package(packages: str, format: TableFormat) -> str | None:
    """Return the Spark version of the format's package; with others it may fail at the second batch."""
    named = [_MADE_FOR.search(package) for package in packages.split(",") if format.value in package]
    return next((found[1] for found in named if found), None)


def _not_made_for(spark: "SparkSession", format: TableFormat, but: str = "") -> FatalError:
    what = f"the package for tables in {format.value} is not made for Spark {spark.version}, which is used here"
    return FatalError(what + but)

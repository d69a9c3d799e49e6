"""Tables in Delta Lake or Apache Iceberg, where their packages are on Spark's class path.

Delta remembers the last batch of each writer (`txnAppId`, `txnVersion`), so a batch that comes again is left out:
exactly once. Iceberg has no such memory for appended batches: at least once.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from odradek.base.errors import FatalError
from odradek.pipeline.spec import TableFormat

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_PACKAGES = {
    TableFormat.DELTA: "io.delta:delta-spark_2.13",
    TableFormat.ICEBERG: "org.apache.iceberg:iceberg-spark-runtime",
}


@dataclass(frozen=True, slots=True)
class LakeOutput:
    format: TableFormat
    path: str
    partition_by: tuple[str, ...]
    writer: str

    def __call__(self, batch: "DataFrame", number: int) -> None:
        writer = batch.write.format(self.format.value).mode("append")
        if self.partition_by:
            writer = writer.partitionBy(*self.partition_by)
        if self.format is TableFormat.DELTA:
            writer = writer.option("txnAppId", self.writer).option("txnVersion", number)
        writer.save(self.path)


def check_format(spark: "SparkSession", format: TableFormat) -> None:
    """FatalError where Spark doesn't have the format."""
    from pyspark.errors import PySparkException

    try:
        spark.read.format(format.value).load("/nonexistent-odradek")
    except PySparkException as error:
        if "DATA_SOURCE_NOT_FOUND" in str(error) or "ClassNotFound" in str(error):
            raise FatalError(
                f"tables in {format.value} need its package on Spark's class path: give it in [spark], "
                f'"spark.jars.packages" = "{_PACKAGES[format]}:VERSION"'
            ) from None

"""Revenue by category, in windows of ten seconds."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F


def revenue(priced: DataFrame) -> DataFrame:
    """`priced` is the transform of that name: parameters are named after what they take."""
    windows = priced.groupBy(F.window("at", "10 seconds").alias("span"), "category")
    sums = windows.agg(F.count("*").alias("orders"), F.round(F.sum("amount"), 2).alias("revenue"))
    start = F.date_format("span.start", "yyyy-MM-dd'T'HH:mm:ss'Z'").alias("window_start")
    return sums.select(start, "category", "orders", "revenue")

"""The transforms on a handful of rows: `pytest` runs it, without a broker."""

import sys
from datetime import datetime
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.testing import assertDataFrameEqual

PROJECT = Path(__file__).parent.parent
sys.path.insert(0, str(PROJECT / "transforms"))


@pytest.fixture(scope="session")
def spark():
    session = SparkSession.builder.master("local[1]").config("spark.sql.session.timeZone", "UTC").getOrCreate()
    yield session
    session.stop()


def test_an_order_gets_the_name_of_its_category(spark):
    at = datetime(2026, 1, 1, 12, 0, 3)
    columns = "order_id STRING, customer STRING, category_id INT, quantity INT, amount DOUBLE, at TIMESTAMP"
    spark.createDataFrame([("a", "ann", 1, 2, 10.0, at), ("b", "bob", 9, 1, 5.0, at)], columns).createOrReplaceTempView(
        "orders"
    )
    spark.createDataFrame([(1, "books")], "category_id INT, category STRING").createOrReplaceTempView("categories")
    priced = spark.sql((PROJECT / "transforms" / "priced.sql").read_text()).select("order_id", "category")
    assertDataFrameEqual(priced, spark.createDataFrame([("a", "books"), ("b", "unknown")], priced.schema))


def test_revenue_is_summed_by_window_and_category(spark):
    from revenue import revenue

    rows = [(datetime(2026, 1, 1, 12, 0, second), "books", 10.0) for second in (1, 9, 11)]
    result = revenue(spark.createDataFrame(rows, "at TIMESTAMP, category STRING, amount DOUBLE"))
    expected = [("2026-01-01T12:00:00Z", "books", 2, 20.0), ("2026-01-01T12:00:10Z", "books", 1, 10.0)]
    assertDataFrameEqual(result, spark.createDataFrame(expected, result.schema))

"""Version of Spark that a package is made for, as far as its name says so."""

import pytest

from odradek.apps.pipeline.lake_output import spark_of_package
from odradek.apps.pipeline.spec import TableFormat


@pytest.mark.parametrize(
    ("packages", "format", "spark"),
    [
        ("io.delta:delta-spark_4.2_2.13:4.4.0", TableFormat.DELTA, "4.2"),
        ("a:b:1,org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0", TableFormat.ICEBERG, "4.1"),
        ("io.delta:delta-spark_2.13:4.0.0", TableFormat.DELTA, None),
        ("org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0", TableFormat.DELTA, None),
        ("", TableFormat.DELTA, None),
    ],
)
def test_the_spark_of_a_package(packages: str, format: TableFormat, spark: str | None) -> None:
    assert spark_of_package(packages, format) == spark

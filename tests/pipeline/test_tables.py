"""Delta tables written by real Spark and committed without a jar, read by Spark, delta-rs, DuckDB and Polars."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import duckdb
import polars
import pytest
from deltalake import DeltaTable
from pyspark.sql import DataFrame, SparkSession

from odradek.apps.pipeline.tables.delta_output import DeltaTableOutput
from odradek.apps.pipeline.tables.maintenance import maintain
from odradek.apps.pipeline.tables.reading import Moment, read_table
from odradek.base.errors import FatalError

ROWS = """
SELECT id, concat('k +%/', id % 2) AS kind, timestamp'2026-01-01 12:00:00' + make_interval(0,0,0,0,0,0,id) AS at,
       cast(id AS DECIMAL(9,2)) AS amount, array(id) AS many, named_struct('a', id) AS s, date'2026-01-01' AS day
FROM range({first}, {last})
"""


def output(table: Path, *partition_by: str) -> DeltaTableOutput:
    return DeltaTableOutput("s", table, partition_by, "p/s/g1", 1, table.parent / "checkpoint")


def rows(spark: SparkSession, first: int, last: int) -> DataFrame:
    return spark.sql(ROWS.format(first=first, last=last))


def test_every_reader_sees_the_same_table(spark: SparkSession, tmp_path: Path) -> None:
    table = tmp_path / "table"
    written = output(table, "kind", "day")
    for number in range(3):
        written(rows(spark, number * 4, number * 4 + 4), number)
    output(table, "kind", "day")(rows(spark, 8, 12), 2)  # comes again after a restart
    before = read_table(spark, table).orderBy("id").collect()
    assert before == rows(spark, 0, 12).orderBy("id").collect()
    assert maintain(table, everything=True).files_after < 12
    assert read_table(spark, table).orderBy("id").collect() == before, "merged files have the same rows and types"
    assert read_table(spark, table, Moment(batch=1)).count() == 8
    dataset = DeltaTable(table).to_pyarrow_dataset()
    assert dataset is not None
    found = duckdb.sql("SELECT kind, count(*), sum(amount) FROM dataset GROUP BY ALL ORDER BY kind")
    assert found.fetchall() == [("k +%/0", 6, 30), ("k +%/1", 6, 36)]
    by_polars = polars.scan_delta(str(table)).filter(polars.col("kind") == "k +%/1").collect()
    assert sorted(by_polars["id"].to_list()) == [1, 3, 5, 7, 9, 11]


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    place = tmp_path / "small"
    place.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=512k", "tmpfs", place], capture_output=True)
    if mounted.returncode:
        pytest.skip("no file system can be mounted here")
    yield place
    subprocess.run(["umount", "-l", place], check=True)  # Spark may hold files that it could not close


def test_a_full_table_directory(spark: SparkSession, small_disk: Path) -> None:
    table = small_disk / "table"
    written = output(table)
    written(rows(spark, 0, 10), 0)
    random_text = "SELECT id, sha2(cast(rand() AS STRING), 512) AS text FROM range(20000)"
    with pytest.raises(FatalError, match=r"no space left for the table .*: batch 1 is not in it"):
        written(spark.sql(random_text), 1)
    assert DeltaTable(table).to_pyarrow_table().num_rows == 10
    subprocess.run(["mount", "-o", "remount,size=16m", small_disk], check=True)
    written(rows(spark, 10, 20), 1)
    assert DeltaTable(table).to_pyarrow_table().num_rows == 20

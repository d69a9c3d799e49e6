"""Features of a declaration, each once on real Spark: formats, joins of streams, windows, the sample."""

import importlib.util
import io
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import fastavro
import pyarrow.dataset
import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from pyspark.sql import SparkSession
from pyspark.testing import assertDataFrameEqual

from odradek.apps.pipeline.scaffold import init_project

from .conftest import TopicFiller, TopicMaker
from .pipeline_stage import declare, run_once

pytestmark = pytest.mark.timeout(900)

NOON = datetime(2026, 1, 1, 12, 0, 0)
PROJECT = """
[pipeline]
name = "p-{orders}"
bootstrap = "{bootstrap}"
[sources.orders]
topic = "{orders}"
format = "csv"
options = {{ sep = ";" }}
schema = "id STRING NOT NULL, amount DOUBLE, at TIMESTAMP"
watermark = {{ column = "at", delay = "1 minute" }}
[sources.payments]
topic = "{payments}"
format = "avro"
avro_schema = "payment.avsc"
schema = "id STRING NOT NULL, paid DECIMAL(9,2), at TIMESTAMP"
watermark = {{ column = "at", delay = "1 minute" }}
[sources.clicks]
topic = ["{clicks}", "{more_clicks}"]
format = "protobuf"
descriptors = "click.desc"
message = "shop.Click"
schema = "page STRING, seconds BIGINT"
[transforms.settled]
sql = "settled.sql"
[transforms.minutes]
sql = "minutes.sql"
[sinks.table_of_settled]
from = "settled"
table = "settled"
partition_by = ["id"]
[sinks.table_of_minutes]
from = "minutes"
table = "minutes"
[sinks.table_of_clicks]
from = "clicks"
table = "clicks"
"""
FILES = {
    "settled.sql": """
SELECT orders.id, orders.amount, payments.paid FROM orders JOIN payments
ON orders.id = payments.id AND payments.at BETWEEN orders.at AND orders.at + INTERVAL 10 MINUTES
""",
    "minutes.sql": """
SELECT date_format(window.start, 'HH:mm') AS minute, count(*) AS orders, sum(amount) AS amount
FROM orders GROUP BY window(at, '1 minute')
""",
    "payment.avsc": json.dumps(
        {
            "type": "record",
            "name": "payment",
            "fields": [
                {"name": "id", "type": "string"},
                {"name": "paid", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
                {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
            ],
        }
    ),
}


def order(name: str, amount: float, minute: int) -> tuple[None, bytes]:
    return None, f"{name};{amount};{(NOON + timedelta(minutes=minute)).isoformat()}Z".encode()


def payment(name: str, paid: str, minute: int) -> tuple[None, bytes]:
    from decimal import Decimal

    stream = io.BytesIO()
    at = (NOON + timedelta(minutes=minute)).replace(tzinfo=UTC)
    schema = fastavro.parse_schema(json.loads(FILES["payment.avsc"]))
    fastavro.schemaless_writer(stream, schema, {"id": name, "paid": Decimal(paid), "at": at})
    return None, stream.getvalue()


def click_descriptors() -> descriptor_pb2.FileDescriptorSet:
    file = descriptor_pb2.FileDescriptorProto(name="c.proto", package="shop", syntax="proto3")
    kind = descriptor_pb2.FieldDescriptorProto
    click = file.message_type.add(name="Click")
    click.field.add(name="page", number=1, type=kind.TYPE_STRING, label=kind.LABEL_OPTIONAL)
    click.field.add(name="seconds", number=2, type=kind.TYPE_INT64, label=kind.LABEL_OPTIONAL)
    return descriptor_pb2.FileDescriptorSet(file=[file])


def click(page: str, seconds: int) -> tuple[None, bytes]:
    pool = descriptor_pool.DescriptorPool()
    pool.Add(click_descriptors().file[0])
    message = message_factory.GetMessageClass(pool.FindMessageTypeByName("shop.Click"))
    return None, message(page=page, seconds=seconds).SerializeToString()


def rows(table: Path, *columns: str) -> list[tuple[object, ...]]:
    found = pyarrow.dataset.dataset(table, format="parquet", partitioning="hive").to_table(list(columns))
    return sorted(tuple(row.values()) for row in found.to_pylist())


@pytest.mark.soak
def test_every_format_a_join_of_streams_and_windows_that_are_final(
    spark: SparkSession, bootstrap: str, new_topic: TopicMaker, fill: TopicFiller, tmp_path: Path
) -> None:
    topics = {name: new_topic(1) for name in ("orders", "payments", "clicks", "more_clicks")}
    project = tmp_path / "project"
    project.mkdir()
    (project / "click.desc").write_bytes(click_descriptors().SerializeToString())
    pipeline = declare(project, PROJECT.format(bootstrap=bootstrap, **topics), FILES)
    fill(topics["orders"], [order("a", 1.5, 0), order("b", 2.0, 0), order("c", 4.0, 1), (None, b"no;csv")])
    fill(topics["payments"], [payment("a", "1.50", 3), payment("b", "2.00", 30), (None, b"\x00")])
    fill(topics["clicks"], [click("/", 2**40)])
    fill(topics["more_clicks"], [click("/cart", 0)])
    run_once(spark, pipeline)
    assert rows(project / "clicks", "page", "seconds") == [("/", 2**40), ("/cart", 0)]
    assert [(name, float(str(paid))) for name, paid in rows(project / "settled", "id", "paid")] == [("a", 1.5)]
    assert [path.name for path in project.glob("settled/batch-*/id=*")] == ["id=a"]
    assert not list(project.glob("minutes/batch-*")), "the watermark has not passed a window"
    fill(topics["orders"], [order("d", 8.0, 9)])
    run_once(spark, pipeline)
    assert rows(project / "minutes", "minute", "orders", "amount") == [("12:00", 2, 3.5), ("12:01", 1, 4.0)]


def test_the_sample_projects_own_tests_pass(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """DataFrame equality for each of its transforms, as `pytest` in the project runs them."""
    init_project(tmp_path / "shop", "shop", "127.0.0.1:1")
    file = tmp_path / "shop" / "tests" / "test_pipeline.py"
    spec = importlib.util.spec_from_file_location("sample_test_pipeline", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.syspath_prepend(str(tmp_path))
    spec.loader.exec_module(module)
    tests = [getattr(module, name) for name in dir(module) if name.startswith("test_")]
    assert len(tests) == 2
    for test in tests:
        test(spark)
    with pytest.raises(AssertionError):  # they can fail
        assertDataFrameEqual(spark.range(1), spark.range(2))

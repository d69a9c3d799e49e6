"""Small batches that the driver writes: how small, and which rows and records of one go where."""

import pyarrow as pa
import pytest
from pyspark.sql.types import LongType, StructField, StructType

from odradek.apps.pipeline.batch_collection import (
    FIRST_RECORDS_MAX,
    RECORDS_MAX,
    CollectedBatch,
    collected_records_max,
    records_between,
)
from odradek.apps.pipeline.dimension_read import tasks_of


@pytest.mark.parametrize(
    ("bytes_per_record", "most"),
    [(None, FIRST_RECORDS_MAX), (0.0, RECORDS_MAX), (300.0, RECORDS_MAX), (32_000.0, 1_000), (900e6, 0)],
)
def test_records_of_a_collected_batch_by_their_size(bytes_per_record: float | None, most: int) -> None:
    assert collected_records_max(bytes_per_record) == most


def test_a_source_that_several_branches_name_is_counted_once() -> None:
    before = [{"a": {"0": 5}}, {"a": {"0": 5}}]
    after = [{"a": {"0": 7, "1": 3}}, {"a": {"0": 7, "1": 3}}, {"b": {"0": 10}}]
    assert records_between(before, after) == 2 + 3 + 10
    assert records_between(after, before) == 0


def test_rows_and_records_of_a_batch() -> None:
    record = pa.struct({"topic": pa.string(), "key": pa.binary(), "value": pa.binary()})
    row = pa.struct({"id": pa.int64()})
    rows = pa.table(
        {
            "_branch": pa.array([0, 1, 0, 2], pa.int32()),
            "v0": pa.array([{"id": 1}, None, {"id": 2}, None], row),
            "records": pa.array(
                [[], [{"topic": "t", "key": b"k", "value": b"v"}], None, [{"topic": "d", "key": None, "value": b"x"}]],
                pa.list_(record),
            ),
        }
    )
    kind = StructType([StructField("id", LongType())])
    batch = CollectedBatch(rows, StructType([StructField("v0", kind)]))
    table, schema = batch.view(0)
    assert table.to_pylist() == [{"id": 1}, {"id": 2}]
    assert schema == kind
    assert batch.view(0)[0].schema.names == ["id"]
    assert [each["topic"] for found in batch.records() for each in found.to_pylist()] == ["t", "d"]


@pytest.mark.parametrize(("ends", "tasks"), [(None, 2), ({}, 1), ({"0": 40_000, "1": 10_000}, 1), ({"0": 50_001}, 2)])
def test_a_small_topic_is_read_by_one_task(ends: dict[str, int] | None, tasks: int) -> None:
    assert tasks_of(ends) == tasks

"""Decoded values as Arrow columns: what fits, what doesn't, by the rules of Spark's JSON."""

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
    VariantType,
)

from odradek.apps.pipeline.value_columns import is_convertible, struct_array

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def column(kind: DataType, *values: Any) -> tuple[list[Any], list[bool]]:
    """The values of one column, and whether each record was decodable."""
    found = struct_array([{"c": value} for value in values], StructType([StructField("c", kind)]), "why").to_pylist()
    return [row["c"] for row in found], [row["why"] is None for row in found]


@pytest.mark.parametrize(
    ("kind", "value", "found"),
    [
        (StringType(), "a", "a"),
        (StringType(), 7, "7"),
        (StringType(), True, "true"),
        (StringType(), {"a": [1]}, '{"a": [1]}'),
        (StringType(), b"\x00", "AA=="),
        (LongType(), 2**62, 2**62),
        (DoubleType(), 3, 3.0),
        (BooleanType(), False, False),
        (BinaryType(), b"\xff", b"\xff"),
        (BinaryType(), "AA==", b"\x00"),
        (DecimalType(9, 2), Decimal("1.005"), Decimal("1.01")),
        (DecimalType(9, 2), "2.5", Decimal("2.50")),
        (DateType(), "2026-01-01", date(2026, 1, 1)),
        (TimestampType(), NOON, NOON),
        (TimestampType(), "2026-01-01T12:00:00Z", NOON),
        (TimestampType(), int(NOON.timestamp()), NOON),
        (TimestampNTZType(), NOON, NOON.replace(tzinfo=None)),
        (ArrayType(IntegerType()), [1, None], [1, None]),
        (MapType(StringType(), LongType()), {"a": 1}, [("a", 1)]),
        (StructType([StructField("x", StringType())]), {"x": "y", "z": 1}, {"x": "y"}),
    ],
)
def test_values_that_fit(kind: DataType, value: Any, found: Any) -> None:
    assert column(kind, value, None) == ([found, None], [True, True])


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (ByteType(), 128),
        (IntegerType(), 2**31),
        (IntegerType(), 1.0),
        (IntegerType(), True),
        (DoubleType(), "much"),
        (BooleanType(), 1),
        (DecimalType(3, 2), Decimal("12.34")),
        (TimestampType(), "soon"),
        (ArrayType(IntegerType()), 1),
        (MapType(StringType(), LongType()), {"a": "b"}),
    ],
)
def test_a_value_that_does_not_fit_makes_its_record_undecodable_and_no_other(kind: DataType, value: Any) -> None:
    found, decodable = column(kind, None, value, None)
    assert found == [None, None, None]
    assert decodable == [True, False, True]


def test_records_that_were_not_decoded_say_why() -> None:
    rows = struct_array([None, ValueError("cut short"), {}], StructType([StructField("c", LongType())]), "why")
    assert [row["why"] for row in rows.to_pylist()] == [None, "not decoded: ValueError: cut short", None]


def test_types_that_are_not_made_are_known() -> None:
    assert not is_convertible(ArrayType(VariantType()))
    assert not is_convertible(MapType(LongType(), StringType()))

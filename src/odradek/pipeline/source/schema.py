"""The columns, which are those of Spark's connector, and how they look in Arrow."""

from typing import Final

import pyarrow as pa
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

_HEADERS: Final = ArrayType(StructType([StructField("key", StringType()), StructField("value", BinaryType())]))
_COLUMNS: Final = (
    StructField("key", BinaryType()),
    StructField("value", BinaryType()),
    StructField("topic", StringType()),
    StructField("partition", IntegerType()),
    StructField("offset", LongType()),
    StructField("timestamp", TimestampType()),
    StructField("timestampType", IntegerType()),
)


def record_schema(*, with_headers: bool) -> StructType:
    headers = [StructField("headers", _HEADERS)] if with_headers else []
    return StructType([*_COLUMNS, *headers])


def arrow_schema(schema: StructType) -> pa.Schema:
    """As Spark expects it of a data source: it compares, and refuses anything else."""
    from pyspark.sql.pandas.types import to_arrow_schema

    return to_arrow_schema(schema, timezone="UTC")

"""The columns of Spark's connector, and their Arrow types."""

from functools import cache
from typing import TYPE_CHECKING, Final

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

if TYPE_CHECKING:
    import pyarrow as pa

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


def arrow_schema(schema: StructType) -> "pa.Schema":
    """The Arrow schema that Spark expects of a data source; it refuses any other."""
    import pyarrow as pa

    return pa.schema(list(_arrow_type(schema)))


@cache
def _arrow_types() -> "dict[type[DataType], pa.DataType]":
    import pyarrow as pa  # half of a second for processes that only plan

    return {
        BinaryType: pa.binary(),
        BooleanType: pa.bool_(),
        IntegerType: pa.int32(),
        LongType: pa.int64(),
        StringType: pa.string(),
        TimestampType: pa.timestamp("us", "UTC"),
    }


def _arrow_type(kind: DataType) -> "pa.DataType":
    import pyarrow as pa

    match kind:
        case StructType():
            return pa.struct([pa.field(field.name, _arrow_type(field.dataType), field.nullable) for field in kind])
        case ArrayType():
            return pa.list_(pa.field("element", _arrow_type(kind.elementType), kind.containsNull))
        case _:
            return _arrow_types()[type(kind)]

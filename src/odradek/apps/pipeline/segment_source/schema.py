"""The columns of the two tables that segment files make: their records, and their batches."""

from typing import Final

from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from odradek.apps.pipeline.source.schema import record_schema

_BROKER: Final = StructField("broker", IntegerType())
BATCHES: Final = StructType(
    [
        _BROKER,
        StructField("topic", StringType()),
        StructField("partition", IntegerType()),
        StructField("segment", StringType()),
        StructField("position", LongType()),
        StructField("baseOffset", LongType()),
        StructField("lastOffset", LongType()),
        StructField("records", IntegerType()),
        StructField("bytes", IntegerType()),
        StructField("leaderEpoch", IntegerType()),
        StructField("codec", StringType()),
        StructField("maxTimestamp", LongType()),
        StructField("producerId", LongType()),
        StructField("producerEpoch", IntegerType()),
        StructField("baseSequence", IntegerType()),
        StructField("isTransactional", BooleanType()),
        StructField("isControl", BooleanType()),
        StructField("crc", LongType()),
        StructField("problem", StringType()),
        StructField("digest", BinaryType()),
    ]
)


def records(*, with_headers: bool) -> StructType:
    """Columns of `format("odradek")`, and the replica that a record comes from."""
    return StructType([*record_schema(with_headers=with_headers).fields, _BROKER])

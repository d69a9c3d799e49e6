"""Decoded values (Python objects) as Arrow columns of the declared types, a batch at a time.

A value that doesn't fit its column makes its record undecodable, as in Spark's own JSON; the rules of conversion are
those of `from_json`: whole numbers are not truncated, texts take any value, times are ISO texts or seconds.
"""

import base64
import json
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

import pyarrow as pa
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    ShortType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

Convert = Callable[[Any], Any]
_WHOLE: dict[type[DataType], tuple[int, pa.DataType]] = {
    ByteType: (8, pa.int8()),
    ShortType: (16, pa.int16()),
    IntegerType: (32, pa.int32()),
    LongType: (64, pa.int64()),
}
_PLAIN: dict[type[DataType], pa.DataType] = {
    BinaryType: pa.binary(),
    BooleanType: pa.bool_(),
    DateType: pa.date32(),
    DoubleType: pa.float64(),
    FloatType: pa.float32(),
    StringType: pa.string(),
    TimestampNTZType: pa.timestamp("us"),
    TimestampType: pa.timestamp("us", "UTC"),
}


def struct_array(records: Sequence[Any], schema: StructType, undecodable: str) -> pa.StructArray:
    """Rows of the schema and a text column `undecodable`. A record is a dict, None, or the exception of its decoder."""
    columns: list[list[Any]] = [[None] * len(records) for _ in schema.fields]
    reasons: list[str | None] = [None] * len(records)
    converts = [(field.name, converter(field.dataType)) for field in schema.fields]
    for row, record in enumerate(records):
        if record is None:
            continue
        try:
            if isinstance(record, Exception):
                raise record
            values = [convert(record.get(name)) for name, convert in converts]
        except Exception as error:  # a foreign decoder may raise anything for invalid bytes
            reasons[row] = f"not decoded: {type(error).__name__}: {error}"
            continue
        for column, value in zip(columns, values, strict=True):
            column[row] = value
    arrays = [
        pa.array(column, arrow_type(field.dataType)) for column, field in zip(columns, schema.fields, strict=True)
    ]
    return pa.StructArray.from_arrays([*arrays, pa.array(reasons, pa.string())], names=[*schema.names, undecodable])


def arrow_type(kind: DataType) -> pa.DataType:
    match kind:
        case StructType():
            return pa.struct([pa.field(field.name, arrow_type(field.dataType)) for field in kind.fields])
        case ArrayType():
            return pa.list_(arrow_type(kind.elementType))
        case MapType():
            return pa.map_(arrow_type(kind.keyType), arrow_type(kind.valueType))
        case DecimalType():
            return pa.decimal128(kind.precision, kind.scale)
    return _WHOLE[type(kind)][1] if type(kind) in _WHOLE else _PLAIN[type(kind)]


def is_convertible(kind: DataType) -> bool:
    """Return whether Arrow columns of the type are made here."""
    match kind:
        case StructType():
            return all(is_convertible(field.dataType) for field in kind.fields)
        case ArrayType():
            return is_convertible(kind.elementType)
        case MapType():
            return isinstance(kind.keyType, StringType) and is_convertible(kind.valueType)
    return isinstance(kind, DecimalType) or type(kind) in _WHOLE or type(kind) in _PLAIN


def converter(kind: DataType) -> Convert:
    """Function from a decoded value to one that Arrow takes; ValueError if it doesn't fit. None stays None."""
    convert = _converter(kind)
    return lambda value: None if value is None else convert(value)


def _converter(kind: DataType) -> Convert:
    match kind:
        case StructType():
            fields = [(field.name, converter(field.dataType)) for field in kind.fields]
            return lambda value: {name: convert(value.get(name)) for name, convert in fields}
        case ArrayType():
            element = converter(kind.elementType)
            return lambda value: [element(each) for each in _checked(value, list)]
        case MapType():
            of_value = converter(kind.valueType)
            return lambda value: [(str(key), of_value(each)) for key, each in _checked(value, dict).items()]
        case DecimalType():
            return lambda value: _decimal(value, kind)
    if type(kind) in _WHOLE:
        bits = _WHOLE[type(kind)][0]
        return lambda value: _whole(value, bits)
    return _CONVERTERS[type(kind)]


def _checked(value: Any, kind: type) -> Any:
    if not isinstance(value, kind):
        raise ValueError(f"{value!r} is not a {kind.__name__}")
    return value


def _whole(value: Any, bits: int) -> int:
    number: int = _checked(value, int)
    if isinstance(value, bool) or not -(2 ** (bits - 1)) <= number < 2 ** (bits - 1):
        raise ValueError(f"{value!r} is not a whole number of {bits} bits")
    return number


def _real(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        raise ValueError(f"{value!r} is not a number")
    return float(value)


def _decimal(value: Any, kind: DecimalType) -> Decimal:
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal | str):
        raise ValueError(f"{value!r} is not a number")
    number = Decimal(str(value)).quantize(Decimal(1).scaleb(-kind.scale), ROUND_HALF_UP)
    if len(number.as_tuple().digits) > kind.precision:
        raise ValueError(f"{value} has more than {kind.precision} digits")
    return number


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, bool | list | dict):
        return json.dumps(value, default=_text)
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


def _bytes(value: Any) -> bytes:
    return base64.b64decode(value, validate=True) if isinstance(value, str) else _checked(value, bytes)


def _instant(value: Any) -> datetime:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return datetime.fromtimestamp(value, UTC)
    moment = _moment(value)
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment


def _local_time(value: Any) -> datetime:
    moment = _moment(value)
    return moment if moment.tzinfo is None else moment.astimezone(UTC).replace(tzinfo=None)


def _moment(value: Any) -> datetime:
    moment: datetime = datetime.fromisoformat(value) if isinstance(value, str) else _checked(value, datetime)
    return moment


def _day(value: Any) -> date:
    if isinstance(value, datetime):
        return value.date()
    day: date = date.fromisoformat(value) if isinstance(value, str) else _checked(value, date)
    return day


_CONVERTERS: dict[type[DataType], Convert] = {
    BinaryType: _bytes,
    BooleanType: lambda value: _checked(value, bool),
    DateType: _day,
    DoubleType: _real,
    FloatType: _real,
    StringType: _text,
    TimestampNTZType: _local_time,
    TimestampType: _instant,
}

"""Decoding of a record's value to columns, and encoding of columns to a value. A failure becomes a text with the
reason, not an exception.

JSON and CSV are Spark's own. Avro and Protobuf come without a jar: a Python worker decodes Arrow batches of them with
fastavro or protobuf into columns (`value_columns`); without the package they are refused by name.
"""

import io
import json
from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from odradek.apps.pipeline.spark_errors import error_text
from odradek.apps.pipeline.spec import Decoding, Encoding
from odradek.base.errors import FatalError

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column
    from pyspark.sql.types import StructType

UNDECODABLE = "_undecodable"
_PACKAGES = {Encoding.AVRO: "fastavro", Encoding.PROTOBUF: "google.protobuf"}
_INSTALL = {Encoding.AVRO: "fastavro", Encoding.PROTOBUF: "protobuf"}


def check_package(encoding: Encoding) -> None:
    """Raise FatalError if the package that the encoding needs is missing."""
    package = _PACKAGES.get(encoding)
    if package is None:
        return
    try:
        found = find_spec(package) is not None
    except ModuleNotFoundError:
        found = False
    if not found:
        raise FatalError(f"format = {encoding.value!r} needs a package: pip install {_INSTALL[encoding]}")


def columns_of(decoding: Decoding) -> "StructType":
    """Return the declared schema as Spark's type. Needs a session, because Spark parses the text."""
    from pyspark.errors import PySparkException
    from pyspark.sql.types import StructType

    try:
        schema = StructType.fromDDL(decoding.schema)
    except PySparkException as error:
        raise FatalError(f"invalid schema {decoding.schema!r}: {error_text(error)}") from None
    if not isinstance(schema, StructType):
        raise FatalError(f"schema {decoding.schema!r} has no columns: NAME TYPE, NAME TYPE, …")
    return schema


def decoded(value: "Column", decoding: Decoding) -> "Column":
    """Return a struct of the declared columns and `_undecodable`, the text that didn't fit. Null for a null value."""
    from pyspark.sql import functions as F
    from pyspark.sql.types import StringType, StructField, StructType

    check_package(decoding.encoding)
    # no column is required here: a missing one breaks a rule, which has a name
    fields = [StructField(field.name, field.dataType) for field in columns_of(decoding).fields]
    schema = StructType([*fields, StructField(UNDECODABLE, StringType())])
    options = {"mode": "PERMISSIVE", **(decoding.options or {}), "columnNameOfCorruptRecord": UNDECODABLE}
    text = value.cast("string")
    match decoding.encoding:
        case Encoding.TEXT:
            return F.struct(text.alias(fields[0].name), F.lit(None).cast("string").alias(UNDECODABLE))
        case Encoding.CSV:
            ddl = ", ".join(f"`{field.name}` {field.dataType.simpleString()}" for field in schema.fields)
            return F.from_csv(text, ddl, options)
        case Encoding.JSON:
            return F.from_json(text, schema, options)
        case _:
            return _in_batches(decoding, StructType(fields), schema)(value)


def is_text(encoding: Encoding) -> bool:
    return encoding in (Encoding.JSON, Encoding.CSV, Encoding.TEXT)


def _in_batches(decoding: Decoding, columns: "StructType", schema: "StructType") -> "Callable[[Column], Column]":
    """Make a Spark function over Arrow batches: from bytes to the columns, or the reason of a failure."""
    from pyspark.sql.pandas.functions import arrow_udf

    from odradek.apps.pipeline.value_columns import is_convertible

    for field in columns.fields:
        if not is_convertible(field.dataType):
            raise FatalError(
                f"schema: column {field.name} is {field.dataType.simpleString()}, which {decoding.encoding.value} is "
                "not decoded into"
            )
    content = decoding.file.read_bytes() if decoding.file else b""
    is_avro, message = decoding.encoding is Encoding.AVRO, decoding.message

    def decode(values: "pa.Array") -> "pa.Array":
        from odradek.apps.pipeline.value_columns import struct_array

        read = _avro_reader(content) if is_avro else _protobuf_reader(content, message)
        return struct_array([_record_or_error(read, value) for value in values.to_pylist()], columns, UNDECODABLE)

    # Spark tells the kind of the function by its annotations, which it evaluates
    import pyarrow

    decode.__annotations__ = {"values": pyarrow.Array, "return": pyarrow.Array}
    made: Callable[[Column], Column] = arrow_udf(decode, schema)  # type: ignore[call-overload]  # takes any type
    return made


def _record_or_error(read: Callable[[bytes], Any], value: bytes | None) -> Any:
    if value is None:
        return None
    try:
        return read(value)
    except Exception as error:  # a foreign decoder may raise anything for invalid bytes
        return error


@cache
def _avro_reader(schema: bytes) -> Callable[[bytes], Any]:
    import fastavro

    parsed = fastavro.parse_schema(json.loads(schema))

    def read(value: bytes) -> Any:
        stream = io.BytesIO(value)
        record = fastavro.schemaless_reader(stream, parsed, None)
        if stream.read(1):
            raise ValueError("bytes follow the record")
        return record

    return read


@cache
def _protobuf_reader(descriptors: bytes, name: str) -> Callable[[bytes], Any]:
    message = _message_class(descriptors, name)

    def read(value: bytes) -> Any:
        return _plain_message(message.FromString(value))

    return read


def _plain_message(message: Any) -> Any:
    """Convert a message to plain values: numbers as numbers (Protobuf's own JSON has int64 as texts), fields without
    presence always."""
    if message.DESCRIPTOR.file.package == "google.protobuf":  # times, durations, wrappers: as Protobuf writes them
        from google.protobuf.json_format import MessageToDict

        is_wrapper = message.DESCRIPTOR.file.name == "google/protobuf/wrappers.proto"
        return message.value if is_wrapper else MessageToDict(message)
    return {
        field.name: _plain_value(getattr(message, field.name), field)
        for field in message.DESCRIPTOR.fields
        if not field.has_presence or message.HasField(field.name)
    }


def _plain_value(value: Any, field: Any) -> Any:
    if hasattr(value, "items"):
        of_values = field.message_type.fields_by_name["value"]
        return {str(key): _plain_value(value[key], of_values) for key in value}
    if hasattr(value, "append") or hasattr(value, "add"):
        return [_plain_value(item, field) for item in value]
    if hasattr(value, "DESCRIPTOR"):
        return _plain_message(value)
    if field.enum_type is not None and value in field.enum_type.values_by_number:
        return field.enum_type.values_by_number[value].name
    return value


def _message_class(descriptors: bytes, name: str) -> Any:
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    pool = descriptor_pool.DescriptorPool()
    for file in descriptor_pb2.FileDescriptorSet.FromString(descriptors).file:
        pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(name))


def check_schema_file(decoding: Decoding, path: Path) -> None:
    """Check the file before the first record."""
    try:
        if decoding.encoding is Encoding.AVRO:
            _avro_reader(path.read_bytes())
        else:
            _message_class(path.read_bytes(), decoding.message)
    except Exception as error:  # parsers of two packages, each with its own errors
        raise FatalError(f"{path} can't be used as schema: {type(error).__name__}: {error}") from None

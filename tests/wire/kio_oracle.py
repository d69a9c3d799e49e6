"""kio as the second opinion: finds kio's class for one of ours, and turns our values into its values.

Both follow Kafka's order of fields, so fields are paired by position; that the names agree is checked on the way.
kio wraps some numbers (durations, times, error codes); for those, values are drawn from what kio can hold.
"""

import io
from collections.abc import Iterator
from dataclasses import Field as KioField
from dataclasses import fields as kio_fields
from datetime import UTC, datetime, timedelta
from functools import cache
from importlib import import_module
from typing import Any
from uuid import UUID

from hypothesis import strategies as st
from kio.schema.errors import ErrorCode as KioErrorCode
from kio.serial import entity_reader, entity_writer
from kio.serial._introspect import classify_field

from odradek.protocol.api_keys import APIS, ApiKey
from odradek.protocol.fields import Field
from odradek.protocol.messages.consumer_protocol_assignment import ConsumerProtocolAssignment
from odradek.protocol.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from odradek.protocol.messages.request_header import RequestHeader
from odradek.protocol.messages.response_header import ResponseHeader
from odradek.protocol.schema import ZERO_UUID, Message, Struct

INT_BITS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}
TIME_MAX_S = 4_000_000_000
"""kio reads times to the second only."""

RENAMED = {"is_kraft_controller": "is_k_raft_controller"}

OTHER_MESSAGES: list[tuple[type[Message], str, str]] = [
    (RequestHeader, "request_header", "header"),
    (ResponseHeader, "response_header", "header"),
    (ConsumerProtocolSubscription, "consumer_protocol_subscription", "data"),
    (ConsumerProtocolAssignment, "consumer_protocol_assignment", "data"),
]


NEWER_THAN_KAFKA_39 = {
    ApiKey.PRODUCE: 12,
    ApiKey.END_TXN: 5,
    ApiKey.WRITE_TXN_MARKERS: 2,
    ApiKey.TXN_OFFSET_COMMIT: 5,
}
"""Versions of transactions from Kafka 4, which neither kio nor Kafka 3.9 knows."""


def newer_messages() -> Iterator[tuple[type[Message], int]]:
    for key, version in NEWER_THAN_KAFKA_39.items():
        yield from ((message, version) for message in (APIS[key].request, APIS[key].response))


def every_message_and_version() -> Iterator[tuple[type[Message], int, str]]:
    """Our class, a version of it that Kafka 3.9 has, and the name of kio's module for them."""
    for api in APIS.values():
        for version in api.versions:
            if version == NEWER_THAN_KAFKA_39.get(api.key):
                continue
            for message, part in ((api.request, "request"), (api.response, "response")):
                yield message, version, f"kio.schema.{api.key.name.lower()}.v{version}.{part}"
    for message, package, part in OTHER_MESSAGES:
        for version in message.VERSIONS:
            yield message, version, f"kio.schema.{package}.v{version}.{part}"


def kio_class(message: type[Message], module: str) -> Any:
    return getattr(import_module(module), message.__name__)


def kio_encode(entity: Any) -> bytes:
    buffer = io.BytesIO()
    entity_writer(type(entity))(buffer, entity)
    return buffer.getvalue()


def kio_decode(kio_type: Any, encoded: bytes) -> Any:
    entity, size = entity_reader(kio_type)(encoded, 0)
    assert size == len(encoded)
    return entity


@cache
def paired_fields(struct: type[Struct], kio_type: Any, version: int) -> list[tuple[str, Field, KioField[Any]]]:
    ours = [(name, field) for name, field in struct.FIELDS.items() if version in field.versions]
    theirs = kio_fields(kio_type)
    assert len(ours) == len(theirs), f"{struct.__name__} v{version}"
    for (name, _), their in zip(ours, theirs, strict=True):
        assert RENAMED.get(name, name).removesuffix("_ms") == their.name.removesuffix("_").removesuffix("_ms")
    return [(name, field, their) for (name, field), their in zip(ours, theirs, strict=True)]


def struct_values(struct: type[Struct], kio_type: Any, version: int) -> st.SearchStrategy[Any]:
    values = {
        name: field_values(field, their, version) for name, field, their in paired_fields(struct, kio_type, version)
    }
    return st.builds(struct, **values)


def field_values(field: Field, their: KioField[Any], version: int) -> st.SearchStrategy[Any]:
    if field.kind == "struct":
        values = struct_values(field.struct, classify_field(their).type_, version)
        if field.tag is not None:
            return st.none() | values.filter(lambda value: value != field.struct())
    elif field.element == "struct":
        values = st.lists(struct_values(field.struct, classify_field(their).type_, version), max_size=2)
    elif field.element is not None:
        values = st.lists(plain_values(field.element, their), max_size=3)
    else:
        values = plain_values(field.kind, their)
    return st.none() | values if version in field.nullable else values


def plain_values(kind: str, their: KioField[Any]) -> st.SearchStrategy[Any]:
    match their.metadata["kafka_type"]:
        case "error_code":
            return st.sampled_from([code.value for code in KioErrorCode])
        case "timedelta_i32":
            return st.integers(-(2**31), 2**31 - 1)
        case "timedelta_i64" | "datetime_i64":
            return st.integers(0, TIME_MAX_S).map(lambda seconds: seconds * 1000)
    match kind:
        case "bool":
            return st.booleans()
        case "float64":
            return st.floats(allow_nan=False, allow_infinity=False)
        case "uuid":
            return st.just(ZERO_UUID) | st.uuids()
        case "string":
            return st.text(max_size=6) | st.just("ö" * 100)
        case "bytes" | "records":
            return st.binary(max_size=6) | st.just(b"x" * 20_000)
    bits = INT_BITS[kind]
    return st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def to_kio(value: Struct, kio_type: Any, version: int) -> Any:
    values = {}
    for name, field, their in paired_fields(type(value), kio_type, version):
        ours = getattr(value, name)
        if field.kind == "struct" and field.tag is not None and ours is None:
            continue
        values[their.name] = field_to_kio(ours, field, their, version)
    return kio_type(**values)


def field_to_kio(value: Any, field: Field, their: KioField[Any], version: int) -> Any:
    if value is None:
        return None
    if field.kind == "struct":
        return to_kio(value, classify_field(their).type_, version)
    if field.element == "struct":
        return tuple(to_kio(item, classify_field(their).type_, version) for item in value)
    if field.element is not None:
        return tuple(plain_to_kio(item, their) for item in value)
    return plain_to_kio(value, their)


def plain_to_kio(value: Any, their: KioField[Any]) -> Any:
    match their.metadata["kafka_type"]:
        case "error_code":
            return KioErrorCode(value)
        case "timedelta_i32" | "timedelta_i64":
            return timedelta(milliseconds=value)
        case "datetime_i64":
            return datetime.fromtimestamp(value / 1000, UTC)
    if isinstance(value, UUID) and value == ZERO_UUID:
        return None
    return value

"""kio as the second opinion: finds kio's class for one of ours, and turns our values into its values.

Both follow Kafka's order of fields, so fields are paired by position; that the names agree is checked on the way.
kio wraps some numbers (durations, times, error codes); for those, values are drawn from what kio can hold.
"""

import io
import sys
from collections.abc import Iterator
from dataclasses import Field as KioField
from dataclasses import fields as kio_fields
from datetime import UTC, datetime, timedelta
from functools import cache
from importlib import import_module
from random import Random
from typing import Any, TypeVar
from uuid import UUID

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

StructT = TypeVar("StructT", bound=Struct)
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


def drawn_messages(message: type[Message], kio_type: Any, version: int, count: int) -> Iterator[Message]:
    """Messages that are drawn by chance, the same in every run. The first one is as empty as it can be."""
    for number in range(count):
        draw = _Draw(f"{message.__name__} v{version} {number}", is_least=number == 0)
        yield draw.struct(message, kio_type, version)


class _Draw:
    """Values of one message."""

    def __init__(self, seed: str, is_least: bool) -> None:
        self._chance = Random(seed)
        self._is_least = is_least

    def struct(self, struct: type[StructT], kio_type: Any, version: int) -> StructT:
        fields = paired_fields(struct, kio_type, version)
        return struct(**{name: self._field(field, their, version) for name, field, their in fields})

    def _field(self, field: Field, their: KioField[Any], version: int) -> Any:
        is_optional = version in field.nullable or (field.kind == "struct" and field.tag is not None)
        if is_optional and self._is(1 / 3):
            return None
        if field.kind == "struct":
            value = self.struct(field.struct, classify_field(their).type_, version)
            return None if field.tag is not None and value == field.struct() else value
        if field.element == "struct":
            inner = classify_field(their).type_
            return [self.struct(field.struct, inner, version) for _ in range(self._size(2))]
        if field.element is not None:
            return [self._plain(field.element, their) for _ in range(self._size(3))]
        return self._plain(field.kind, their)

    def _is(self, share: float) -> bool:
        return self._is_least or self._chance.random() < share

    def _size(self, size_max: int) -> int:
        return 0 if self._is_least else self._chance.randint(0, size_max)

    def _plain(self, kind: str, their: KioField[Any]) -> Any:
        chance = self._chance
        match their.metadata["kafka_type"]:
            case "error_code":
                return chance.choice([code.value for code in KioErrorCode])
            case "timedelta_i32":
                return self._integer(-(2**31), 2**31 - 1)
            case "timedelta_i64" | "datetime_i64":
                return self._integer(0, TIME_MAX_S) * 1000
        match kind:
            case "bool":
                return chance.random() < 0.5
            case "float64":
                return chance.choice((0.0, -1.5, 5e-324, -sys.float_info.max, chance.uniform(-1e6, 1e6)))
            case "uuid":
                return ZERO_UUID if self._is(1 / 3) else UUID(int=chance.getrandbits(128))
            case "string":
                return "ö" * 100 if chance.random() < 0.1 else "".join(map(chr, self._code_points()))
            case "bytes" | "records":
                return b"x" * 20_000 if chance.random() < 0.1 else chance.randbytes(self._size(6))
        bits = INT_BITS[kind]
        return self._integer(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)

    def _integer(self, least: int, most: int) -> int:
        """The bounds, and what is near zero, as often as all others."""
        chance = self._chance
        return chance.choice((least, most, max(least, -1), 0, 1, *(chance.randint(least, most) for _ in range(5))))

    def _code_points(self) -> list[int]:
        """Of one, two, three and four bytes, a zero and a quotation mark among them, but no half of a pair."""
        ranges = ((0, 0), (0x20, 0x7E), (0x22, 0x22), (0x80, 0x7FF), (0x800, 0xD7FF), (0x10000, 0x10FFFF))
        return [self._chance.randint(*self._chance.choice(ranges)) for _ in range(self._size(6))]


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

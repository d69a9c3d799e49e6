"""Avro's binary encoding, read by a schema. Bounded: a length is not trusted until the bytes are there.

The result consists of JSON values; bytes and fixed are hex, and logical types have their stored type.
"""

import json
from collections.abc import Mapping
from struct import Struct
from typing import Any

_FLOAT, _DOUBLE = Struct("<f"), Struct("<d")
_DEPTH_MAX = 100
_ITEMS_MAX = 100_000
_VARINT_BYTES_MAX = 10
_PRIMITIVES = frozenset({"null", "boolean", "int", "long", "float", "double", "bytes", "string"})
_NUMBER_SIZES = (8, 16)  # of a long and of a UUID, which may begin with zeros too
_SCHEMA_MAX = 1 << 24
_FRAME_BYTES = 5  # of a schema registry: a zero and the schema's number


def framed_schema(data: bytes) -> int | None:
    """Return the schema's number if the bytes look like a schema registry's frame, which begins so in every format."""
    if data[:1] != b"\0" or len(data) <= _FRAME_BYTES or len(data) in _NUMBER_SIZES:
        return None
    number = int.from_bytes(data[1:_FRAME_BYTES], "big")
    return number if 0 < number <= _SCHEMA_MAX else None


class AvroError(ValueError):
    """Invalid schema, or bytes that don't match it."""


class AvroSchema:
    def __init__(self, text: str) -> None:
        """Read the text of an .avsc file. AvroError describes the fault."""
        try:
            self._schema = json.loads(text)
        except (ValueError, RecursionError):
            raise AvroError("invalid Avro schema: not JSON") from None
        self._named: dict[str, Any] = {}
        self._check(self._schema, "", 0)

    def decode(self, data: bytes) -> Any:
        """Decode all of the data, also in a schema registry's frame. AvroError: it doesn't match."""
        if data[:1] == b"\0" and len(data) > _FRAME_BYTES:
            try:
                return self._whole(data[_FRAME_BYTES:])
            except AvroError:
                pass  # the value itself may begin with a zero
        return self._whole(data)

    def _whole(self, data: bytes) -> Any:
        reader = _Reader(data, self._named)
        found = reader.read(self._schema, "", 0)
        if reader.at != len(data):
            raise AvroError(f"{len(data) - reader.at} bytes are left over")
        return found

    def _check(self, schema: Any, space: str, depth: int) -> None:
        if depth > _DEPTH_MAX:
            raise AvroError("invalid Avro schema: nested too deeply")
        if isinstance(schema, str):
            if schema not in _PRIMITIVES and _full(schema, space) not in self._named:
                raise AvroError(f"invalid Avro schema: type {schema!r} is not known")
        elif isinstance(schema, list):
            for branch in schema:
                self._check(branch, space, depth + 1)
        elif isinstance(schema, dict):
            self._check_complex(schema, space, depth)
        else:
            raise AvroError(f"invalid Avro schema: {schema!r}")

    def _check_complex(self, schema: Mapping[str, Any], space: str, depth: int) -> None:
        kind = schema.get("type")
        if kind in ("record", "error", "enum", "fixed"):
            name = schema.get("name")
            if not isinstance(name, str):
                raise AvroError(f"invalid Avro schema: a {kind} needs a name")
            space = str(schema.get("namespace") or (name.rpartition(".")[0] if "." in name else space))
            self._named[_full(name, space)] = (schema, space)
        match kind:
            case "record" | "error":
                for field in _listed(schema, "fields"):
                    if not isinstance(field, dict) or "name" not in field or "type" not in field:
                        raise AvroError("invalid Avro schema: a field needs name and type")
                    self._check(field["type"], space, depth + 1)
            case "enum":
                _listed(schema, "symbols")
            case "fixed":
                if not isinstance(schema.get("size"), int) or schema["size"] < 0:
                    raise AvroError("invalid Avro schema: a fixed needs a size")
            case "array":
                self._check(schema.get("items"), space, depth + 1)
            case "map":
                self._check(schema.get("values"), space, depth + 1)
            case _:
                self._check(kind, space, depth + 1)


class _Reader:
    def __init__(self, data: bytes, named: Mapping[str, Any]) -> None:
        self.at = 0
        self._data = data
        self._named = named
        self._items = 0

    def read(self, schema: Any, space: str, depth: int) -> Any:
        if depth > _DEPTH_MAX:
            raise AvroError("nested too deeply")
        if isinstance(schema, str):
            if schema in _PRIMITIVES:
                return self._primitive(schema)
            known, inner = self._named[_full(schema, space)]
            return self._complex(known, inner, depth)
        if isinstance(schema, list):
            place = self._long()
            if not 0 <= place < len(schema):
                raise AvroError(f"branch {place} of a union of {len(schema)}")
            return self.read(schema[place], space, depth + 1)
        return self._complex(schema, space, depth)

    def _complex(self, schema: Mapping[str, Any], space: str, depth: int) -> Any:
        name = str(schema.get("name", ""))
        space = str(schema.get("namespace") or (name.rpartition(".")[0] if "." in name else space))
        match schema["type"]:
            case "record" | "error":
                return {field["name"]: self.read(field["type"], space, depth + 1) for field in schema["fields"]}
            case "enum":
                place = self._long()
                if not 0 <= place < len(schema["symbols"]):
                    raise AvroError(f"symbol {place} of an enum of {len(schema['symbols'])}")
                return schema["symbols"][place]
            case "fixed":
                return self._take(schema["size"]).hex()
            case "array":
                return [self.read(schema["items"], space, depth + 1) for _ in self._blocks()]
            case "map":
                return {self._text(): self.read(schema["values"], space, depth + 1) for _ in self._blocks()}
        return self.read(schema["type"], space, depth + 1)

    def _blocks(self) -> Any:
        """Iterate over the items of an array or a map: each block has a count before it, and the last count is 0."""
        while count := self._long():
            if count < 0:
                self._long()  # the block's size, for readers that skip it
                count = -count
            for _ in range(count):
                self._items += 1
                if self._items > _ITEMS_MAX:
                    raise AvroError(f"more than {_ITEMS_MAX} items")
                yield None

    def _primitive(self, kind: str) -> Any:
        match kind:
            case "null":
                return None
            case "boolean":
                return self._take(1) != b"\0"
            case "int" | "long":
                return self._long()
            case "float":
                return _FLOAT.unpack(self._take(4))[0]
            case "double":
                return _DOUBLE.unpack(self._take(8))[0]
            case "bytes":
                return self._take(self._long()).hex()
        return self._text()

    def _text(self) -> str:
        try:
            return self._take(self._long()).decode()
        except UnicodeDecodeError:
            raise AvroError("a string that is not UTF-8") from None

    def _take(self, length: int) -> bytes:
        if not 0 <= length <= len(self._data) - self.at:
            raise AvroError(f"a length of {length} bytes, but only {len(self._data) - self.at} are left")
        taken = self._data[self.at : self.at + length]
        self.at += length
        return taken

    def _long(self) -> int:
        value = shift = 0
        for _ in range(_VARINT_BYTES_MAX):
            byte = self._take(1)[0]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return (value >> 1) ^ -(value & 1)
            shift += 7
        raise AvroError("a number that is too long")


def _full(name: str, space: str) -> str:
    return name if "." in name or not space else f"{space}.{name}"


def _listed(schema: Mapping[str, Any], key: str) -> list[Any]:
    found = schema.get(key)
    if not isinstance(found, list):
        raise AvroError(f"invalid Avro schema: {key} is required")
    return found

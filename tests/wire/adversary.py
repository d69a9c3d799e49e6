"""Frames that cost as much as their bytes allow: counts at their maximum, elements at their least.

A shape is one array of a message, named by the path of fields that leads to it, with a count for every array on the
way. All else is as small as the version allows. The innermost elements may carry tagged fields: unknown ones, or known
ones again and again.
"""

import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from odradek.protocol.decoder_writer import SHORT_ARRAY_MAX, DecoderWriter
from odradek.protocol.decoding_steps import (
    LONG_ARRAY_STEPS,
    LONG_ARRAY_VALUE_STEPS,
    SHORT_ARRAY_STEPS,
    SHORT_ARRAY_VALUE_STEPS,
    element_steps,
    tag_steps,
)
from odradek.protocol.fields import FIXED_FORMATS, Field
from odradek.protocol.primitives import TAGGED_SECTION_STEPS, put_uvarint
from odradek.protocol.schema import Message
from odradek.protocol.source_writer import LENGTH_FORMATS

_UUID_PLACE = bytes(range(200, 216))
UNKNOWN_TAG = b"\x63\x00"
LONG_UNKNOWN_TAG = b"\xe3\x80\x80\x80\x00\x80\x80\x80\x80\x00"
"""The same, with tag and size in as many bytes as a varint may have."""


def uvarint(value: int) -> bytes:
    out = bytearray()
    put_uvarint(out, value)
    return bytes(out)


@dataclass(frozen=True)
class Shape:
    message: type[Message]
    version: int
    path: tuple[str, ...]
    counts: tuple[int, ...]
    """Lengths of the arrays on the path, the outermost first."""
    tags: tuple[bytes, ...] = ()
    """Tagged fields of each innermost element, or of the message itself where the path is empty."""

    def __str__(self) -> str:
        counts = " × ".join(f"{count:,}" for count in self.counts) or "1"
        tags = f", {len(self.tags):,} tagged each" if self.tags else ""
        return f"{self.message.__name__} v{self.version} {'.'.join(self.path)}: {counts}{tags}"


class BodyWriter:
    """The bytes of shapes of one message at one version, and the steps that they take."""

    def __init__(self, message: type[Message], version: int) -> None:
        self._message = message
        self._layout = DecoderWriter(message, version, version in message.FLEXIBLE)

    def array_paths(self) -> Iterator[tuple[str, ...]]:
        yield from self._paths_in(self._message)

    def _paths_in(self, owner: Any) -> Iterator[tuple[str, ...]]:
        for name, field in self._layout.present(owner) + self._layout.tagged(owner):
            if field.kind == "array":
                yield (name,)
            if field.struct is not None:
                yield from ((name, *rest) for rest in self._paths_in(field.struct))

    def known_tags(self, path: tuple[str, ...]) -> tuple[bytes, ...]:
        """The tagged fields of the struct at the end of the path, each as small as it can be."""
        tagged = self._layout.tagged(self._owner(path))
        return tuple(self._tagged(field, self._least(field)) for _, field in tagged)

    def shapes(self, count: int) -> Iterator[Shape]:
        """Every array and every place for tagged fields, filled in the ways that differ in cost."""
        for path in ((), *self.array_paths()):
            deep = self.arrays_on(path)
            spreads = {(1,) * (deep - 1) + (count,), (count,) + (1,) * (deep - 1)} if deep else {()}
            for counts in sorted(spreads):
                if deep:
                    yield self._shape(path, counts)
                if self._layout.flexible and self._ends_in_struct(path):
                    each = 1 if deep else count
                    yield self._shape(path, counts, (UNKNOWN_TAG,) * 3 * each)
                    yield self._shape(path, counts, (LONG_UNKNOWN_TAG,) * each)
                    if known := self.known_tags(path):
                        yield self._shape(path, counts, known * 2 * each)

    def _shape(self, path: tuple[str, ...], counts: tuple[int, ...], tags: tuple[bytes, ...] = ()) -> Shape:
        return Shape(self._message, self._layout.version, path, counts, tags)

    def _ends_in_struct(self, path: tuple[str, ...]) -> bool:
        return self._owner(path) is not None

    def _owner(self, path: tuple[str, ...]) -> Any:
        owner: Any = self._message
        for name in path:
            owner = owner.FIELDS[name].struct
        return owner

    def body(self, shape: Shape) -> bytes:
        return self._struct(self._message, shape.path, shape.counts, shape.tags)

    def steps(self, shape: Shape) -> int:
        return self._steps(self._message, shape.path, shape.counts, len(shape.tags))

    def arrays_on(self, path: tuple[str, ...]) -> int:
        fields = (self._owner(path[:place]).FIELDS[name] for place, name in enumerate(path))
        return sum(field.kind == "array" for field in fields)

    # ---- bytes

    def _struct(self, owner: Any, path: tuple[str, ...], counts: tuple[int, ...], tags: tuple[bytes, ...]) -> bytes:
        parts = [
            self._hot(field, path[1:], counts, tags) if path and name == path[0] else self._least(field)
            for name, field in self._layout.present(owner)
        ]
        if self._layout.flexible:
            section: tuple[bytes, ...] = () if path else tags
            for name, field in self._layout.tagged(owner):
                if path and name == path[0]:
                    section = (self._tagged(field, self._hot(field, path[1:], counts, tags)),)
            parts.append(uvarint(len(section)) + b"".join(section))
        return b"".join(parts)

    def _tagged(self, field: Field, value: bytes) -> bytes:
        assert field.tag is not None
        return uvarint(field.tag) + uvarint(len(value)) + value

    def _hot(self, field: Field, path: tuple[str, ...], counts: tuple[int, ...], tags: tuple[bytes, ...]) -> bytes:
        if field.kind == "struct":
            mark = b"\x01" if self._layout.version in field.nullable else b""
            return mark + self._struct(field.struct, path, counts, tags)
        if field.element == "struct":
            element = self._struct(field.struct, path, counts[1:], tags)
        else:
            element = self._least_plain(field.element, field)
        return self._length("array", counts[0]) + _repeated(element, counts[0])

    def _least(self, field: Field) -> bytes:
        """Never null: what is empty costs more."""
        if field.kind == "struct":
            return self._hot(field, (), (), ())
        return self._least_plain(field.kind, field)

    def _least_plain(self, kind: Any, field: Field) -> bytes:
        if kind in FIXED_FORMATS:
            return b"\x11" * struct.calcsize(FIXED_FORMATS[kind])
        if kind == "uuid":
            return _UUID_PLACE
        if self._layout.flexible and not self._layout.is_compact(field):
            return struct.pack(f">{LENGTH_FORMATS[kind]}", 0)
        return self._length(kind, 0)

    def _length(self, kind: Any, value: int) -> bytes:
        if self._layout.flexible:
            return uvarint(value + 1)
        return struct.pack(f">{LENGTH_FORMATS[kind]}", value)

    # ---- steps

    def _steps(self, owner: Any, path: tuple[str, ...], counts: tuple[int, ...], tags: int) -> int:
        if not path:
            return tags * tag_steps(self._layout, owner) + TAGGED_SECTION_STEPS if tags else 0
        field = owner.FIELDS[path[0]]
        own = tag_steps(self._layout, owner) + TAGGED_SECTION_STEPS if field.tag is not None else 0
        if field.kind == "struct":
            return own + self._steps(field.struct, path[1:], counts, tags)
        if field.element in FIXED_FORMATS:
            return own + _fixed_array_steps(counts[0])
        each = element_steps(self._layout, field)
        return own + counts[0] * (each + self._steps(field.struct, path[1:], counts[1:], tags))


def _fixed_array_steps(count: int) -> int:
    if count > SHORT_ARRAY_MAX:
        return LONG_ARRAY_STEPS + count * LONG_ARRAY_VALUE_STEPS
    return SHORT_ARRAY_STEPS + count * SHORT_ARRAY_VALUE_STEPS if count else 0


def _repeated(element: bytes, count: int) -> bytes:
    """With ids that are all different: an id that was seen before costs less."""
    parts = element.split(_UUID_PLACE)
    if len(parts) == 1:
        return element * count
    out = bytearray()
    for _ in range(count):
        out += parts[0]
        for part in parts[1:]:
            out += os.urandom(16)
            out += part
    return bytes(out)

"""Base of the two writers of generated code: lines, indentation, names, and the fields of a version.

Belongs to `codec`; `decoder_writer` and `encoder_writer` build on it.
"""

import struct as struct_module
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from odradek.protocol import primitives
from odradek.protocol.fields import Field, Kind
from odradek.protocol.primitives import EncodeError, ProtocolError

LENGTH_FORMATS: dict[Kind, str] = {"string": "h", "bytes": "i", "records": "i", "array": "i"}
"""Types of lengths in versions that are not flexible."""

_RUNTIME: dict[str, Any] = {
    "EncodeError": EncodeError,
    "SharedList": primitives.SharedList,
    "ProtocolError": ProtocolError,
    "struct_error": struct_module.error,
    "pack": struct_module.pack,
    "unpack_from": struct_module.unpack_from,
    "new": object.__new__,
    "bad_length": primitives.bad_length,
    "over_budget": primitives.over_budget,
    "check_tag_count": primitives.check_tag_count,
    "read_string_length": primitives.read_string_length,
    "read_tag": primitives.read_tag,
    "read_uvarint": primitives.read_uvarint,
    "skip_tagged_fields": primitives.skip_tagged_fields,
    "uuid_of": primitives.uuid_of,
    "put_compact_records": primitives.put_compact_records,
    "put_records": primitives.put_records,
    "put_string_length": primitives.put_string_length,
    "put_uvarint": primitives.put_uvarint,
}
"""Functions that the generated code may call."""


class SourceWriter:
    """The text of one function under construction, and the objects that it refers to."""

    def __init__(self, message: Any, version: int, flexible: bool) -> None:
        self.version = version
        self.flexible = flexible
        self.title = f"{message.__name__} v{version}"
        self.names = dict(_RUNTIME)
        self.lines: list[str] = []
        self.indent = 0
        self.write_function(message)

    def write_function(self, message: Any) -> None:
        raise NotImplementedError

    def source(self) -> str:
        return "\n".join(self.lines) + "\n"

    def compile(self, name: str) -> Any:
        exec(compile(self.source(), f"<{name} {self.title}>", "exec"), self.names)
        return self.names[name]

    def add(self, line: str) -> None:
        self.lines.append("    " * self.indent + line)

    @contextmanager
    def block(self, header: str) -> Iterator[None]:
        self.add(header)
        self.indent += 1
        before = len(self.lines)
        yield
        if len(self.lines) == before:
            self.add("pass")
        self.indent -= 1

    def bind(self, prefix: str, value: Any) -> str:
        """A name by which the generated code can reach the value."""
        for name, known in self.names.items():
            if known is value and name.startswith(prefix):
                return name
        name = f"{prefix}_{len(self.names)}"
        self.names[name] = value
        return name

    def is_compact(self, field: Field) -> bool:
        return self.flexible and field.compact

    def present(self, struct: Any) -> list[tuple[str, Field]]:
        return [(n, f) for n, f in struct.FIELDS.items() if self.version in f.versions and f.tag is None]

    def absent(self, struct: Any) -> list[tuple[str, Field]]:
        return [(n, f) for n, f in struct.FIELDS.items() if self.version not in f.versions]

    def tagged(self, struct: Any) -> list[tuple[str, Field]]:
        found = [(n, f) for n, f in struct.FIELDS.items() if self.version in f.versions and f.tag is not None]
        return sorted(found, key=lambda item: item[1].tag or 0)

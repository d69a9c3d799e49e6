"""Compiles a message's declaration into straight-line Python, once per class and version.

The generated function has no calls per field: neighbouring fields of fixed size are read and written by one
`struct.Struct`, nested structs are inlined as loops, and what a version lacks costs nothing. A decoder checks every
length and count against the bytes that are left before it believes it, and raises nothing but ProtocolError; an
encoder raises nothing but EncodeError. `decoder_source` and `encoder_source` show what was generated.

In the generated code `o0` is the message, `o1` the struct or element inside it, and so on; `pos` moves along `buf`.
"""

import struct as struct_module
from collections.abc import Iterator
from contextlib import contextmanager
from struct import Struct as Format
from typing import Any

from odradek.protocol import primitives
from odradek.protocol.fields import FIXED_FORMATS, FRESH, Field, Kind
from odradek.protocol.primitives import EncodeError, ProtocolError

_LENGTH_FORMATS: dict[Kind, str] = {"string": "h", "bytes": "i", "records": "i", "array": "i"}
_LENGTH_BYTES = {"h": 2, "i": 4}

_SLICES: dict[Kind, str] = {
    "string": 'str(buf[pos:stop], "utf-8")',
    "bytes": "bytes(buf[pos:stop])",
    "records": "buf[pos:stop]",
}

_RUNTIME: dict[str, Any] = {
    "EncodeError": EncodeError,
    "ProtocolError": ProtocolError,
    "struct_error": struct_module.error,
    "pack": struct_module.pack,
    "unpack_from": struct_module.unpack_from,
    "new": object.__new__,
    "bad_length": primitives.bad_length,
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
"""What the generated code may call."""


def make_decoder(message: Any, version: int, flexible: bool) -> Any:
    return _DecoderWriter(message, version, flexible).compile("decode")


def make_encoder(message: Any, version: int, flexible: bool) -> Any:
    return _EncoderWriter(message, version, flexible).compile("encode")


def decoder_source(message: Any, version: int) -> str:
    return _DecoderWriter(message, version, version in message.FLEXIBLE).source()


def encoder_source(message: Any, version: int) -> str:
    return _EncoderWriter(message, version, version in message.FLEXIBLE).source()


class _Writer:
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


class _DecoderWriter(_Writer):
    def write_function(self, message: Any) -> None:
        self.run: list[tuple[str, str]] = []  # fixed-size values still to be read: format and target
        self.after_run: list[str] = []
        with self.block("def decode(buf, pos):"):
            self.add("end = len(buf)")
            with self.block("try:"):
                self.read_struct("o0", message, 0, self.title)
                self.add("return o0, pos")
            with self.block("except (struct_error, IndexError):"):
                self.add(f"raise ProtocolError({self.title + ' ends too early'!r}) from None")
            with self.block("except UnicodeDecodeError:"):
                self.add(f"raise ProtocolError({self.title + ': a string is not UTF-8'!r}) from None")

    def flush(self) -> None:
        if self.run:
            fmt = Format(">" + "".join(fmt for fmt, _ in self.run))
            self.add(f"({', '.join(target for _, target in self.run)},) = {self.unpacker(fmt)}(buf, pos)")
            self.add(f"pos += {fmt.size}")
        for line in self.after_run:
            self.add(line)
        self.run, self.after_run = [], []

    def unpacker(self, fmt: Format) -> str:
        name = "unpack_" + fmt.format[1:].replace("?", "o")
        self.names.setdefault(name, fmt.unpack_from)
        return name

    def read_struct(self, obj: str, struct: Any, depth: int, path: str) -> None:
        self.add(f"{obj} = new({self.bind(struct.__name__, struct)})")
        for name, field in self.present(struct):
            self.read_field(f"{obj}.{name}", field, depth, f"{path} {name}")
        self.flush()
        for name, field in self.absent(struct) + self.tagged(struct):
            self.add(f"{obj}.{name} = {self.default(field)}")
        if self.flexible:
            self.read_tagged_fields(obj, struct, depth, path)

    def default(self, field: Field) -> str:
        if field.default is FRESH:
            return "[]" if field.kind == "array" else f"{self.bind(field.struct.__name__, field.struct)}()"
        if field.kind == "uuid":
            return self.bind("uuid", field.default)
        return repr(field.default)

    def read_tagged_fields(self, obj: str, struct: Any, depth: int, path: str) -> None:
        tagged = self.tagged(struct)
        with self.block("if buf[pos] == 0:"):
            self.add("pos += 1")
        if not tagged:
            with self.block("else:"):
                self.add("pos = skip_tagged_fields(buf, pos)")
            return
        with self.block("else:"):
            self.add("n, pos = read_uvarint(buf, pos)")
            self.add("check_tag_count(n, end - pos)")
            with self.block("for _ in range(n):"):
                self.add(f"tag, pos, stop{depth} = read_tag(buf, pos)")
                for index, (name, field) in enumerate(tagged):
                    with self.block(f"{'el' if index else ''}if tag == {field.tag}:"):
                        self.read_field(f"{obj}.{name}", field, depth, f"{path} {name}")
                        self.flush()
                with self.block("else:"):
                    self.add(f"pos = stop{depth}")
                with self.block(f"if pos != stop{depth}:"):
                    self.add(f"raise ProtocolError(f{path + ': tagged field {tag} has a wrong size'!r})")

    def read_field(self, target: str, field: Field, depth: int, path: str) -> None:
        nullable = self.version in field.nullable
        if field.kind == "struct":
            self.read_nested(target, field, nullable, depth, path)
        elif field.kind == "array":
            self.read_array(target, field, nullable, depth, path)
        else:
            self.read_plain(target, field.kind, nullable, self.is_compact(field), path)

    def read_plain(self, target: str, kind: Kind, nullable: bool, compact: bool, path: str) -> None:
        if kind in FIXED_FORMATS:
            self.run.append((FIXED_FORMATS[kind], target))
        elif kind == "uuid":
            raw = f"raw{len(self.run)}"
            self.run.append(("16s", raw))
            self.after_run.append(f"{target} = uuid_of({raw})")
        else:
            self.read_length(kind, compact)
            with self.checked_length(target, nullable, "end - pos", path):
                self.add("stop = pos + n")
                self.add(f"{target} = {_SLICES[kind]}")
                self.add("pos = stop")

    def read_length(self, kind: Kind, compact: bool) -> None:
        """Leaves it in `n`; -1 stands for null."""
        if not compact:
            self.run.append((_LENGTH_FORMATS[kind], "n"))
            self.flush()
            return
        self.flush()
        self.add("n = buf[pos] - 1")
        with self.block("if n < 127:"):
            self.add("pos += 1")
        with self.block("else:"):
            if kind == "string":
                self.add("n, pos = read_string_length(buf, pos)")
            else:
                self.add("n, pos = read_uvarint(buf, pos)")
                self.add("n -= 1")

    @contextmanager
    def checked_length(self, target: str, nullable: bool, room: str, path: str) -> Iterator[None]:
        """What is written inside runs only for a length that can be true."""
        if nullable:
            with self.block("if n < 0:"):
                self.add(f"{target} = None")
            with self.block(f"elif n > {room}:"):
                self.add(f"raise bad_length({path!r}, n, end - pos)")
            with self.block("else:"):
                yield
        else:
            with self.block(f"if not 0 <= n <= {room}:"):
                self.add(f"raise bad_length({path!r}, n, end - pos)")
            yield

    def read_nested(self, target: str, field: Field, nullable: bool, depth: int, path: str) -> None:
        inner = f"o{depth + 1}"
        if not nullable:
            self.flush()
            self.read_struct(inner, field.struct, depth + 1, path)
            self.add(f"{target} = {inner}")
            return
        self.run.append(("b", "n"))
        self.flush()
        with self.block("if n < 0:"):
            self.add(f"{target} = None")
        with self.block("else:"):
            self.read_struct(inner, field.struct, depth + 1, path)
            self.add(f"{target} = {inner}")

    def read_array(self, target: str, field: Field, nullable: bool, depth: int, path: str) -> None:
        assert field.element is not None
        self.read_length("array", self.flexible)
        least = self.least_size(field.element, field.struct)
        room = "end - pos" if least == 1 else f"(end - pos) // {least}"
        with self.checked_length(target, nullable, room, path):
            if field.element in FIXED_FORMATS:
                self.add(f'{target} = list(unpack_from(f">{{n}}{FIXED_FORMATS[field.element]}", buf, pos))')
                self.add(f"pos += n * {least}")
                return
            items, item = f"l{depth + 1}", f"o{depth + 1}"
            self.add(f"{items} = {target} = []")
            with self.block("for _ in range(n):"):
                if field.element == "struct":
                    self.read_struct(item, field.struct, depth + 1, path)
                else:
                    self.read_plain(item, field.element, False, self.flexible, path)
                    self.flush()
                self.add(f"{items}.append({item})")

    def least_size(self, kind: Kind, struct: Any) -> int:
        """The fewest bytes that a value can take, so that a count can be checked before it is believed."""
        if kind == "struct":
            fields = (field for _, field in self.present(struct))
            return int(self.flexible) + sum(
                1 if f.kind == "struct" and self.version in f.nullable else self.least_size(f.kind, f.struct)
                for f in fields
            )
        if kind == "uuid":
            return 16
        if kind in FIXED_FORMATS:
            return Format(">" + FIXED_FORMATS[kind]).size
        return 1 if self.flexible else _LENGTH_BYTES[_LENGTH_FORMATS[kind]]


class _EncoderWriter(_Writer):
    def write_function(self, message: Any) -> None:
        self.run: list[tuple[str, str]] = []  # fixed-size values still to be written: format and expression
        self.out = "out"
        with self.block("def encode(o0, out, splices):"):
            with self.block("try:"):
                self.write_struct("o0", message, 0)
                self.flush()
            with self.block("except (AttributeError, TypeError, ValueError, struct_error) as error:"):
                self.add(f"raise EncodeError(f{self.title + ': {error}'!r}) from error")

    def flush(self) -> None:
        if not self.run:
            return
        if self.run == [("x", "")]:
            self.add(f"{self.out}.append(0)")
        else:
            fmt = Format(">" + "".join(fmt for fmt, _ in self.run))
            name = "pack_" + fmt.format[1:].replace("?", "o")
            self.names.setdefault(name, fmt.pack)
            self.add(f"{self.out} += {name}({', '.join(value for _, value in self.run if value)})")
        self.run = []

    def write_struct(self, obj: str, struct: Any, depth: int) -> None:
        for name, field in self.absent(struct):
            if not field.ignorable:
                with self.block(f"if {self.differs(f'{obj}.{name}', field)}:"):
                    where = f"{struct.__name__}.{name} does not exist in {self.title}"
                    self.add(f"raise EncodeError({where!r})")
        for name, field in self.present(struct):
            self.write_field(f"{obj}.{name}", field, depth)
        if self.flexible:
            self.write_tagged_fields(obj, struct, depth)

    def differs(self, value: str, field: Field) -> str:
        """An expression that tells whether the value is another than the field's default."""
        if field.default is None:
            return f"{value} is not None"
        if field.default is FRESH:
            if field.kind == "array":
                return f"{value} is None or len({value})"
            return f"{value} != {self.bind(field.struct.__name__, field.struct)}()"
        if field.kind == "uuid":
            return f"{value} != {self.bind('uuid', field.default)}"
        return f"{value} != {field.default!r}"

    def write_tagged_fields(self, obj: str, struct: Any, depth: int) -> None:
        tagged = self.tagged(struct)
        if not tagged:
            self.run.append(("x", ""))  # a pad byte is a zero, which is the count of no fields
            return
        self.flush()
        conditions = [self.differs(f"{obj}.{name}", field) for name, field in tagged]
        outer, section, body = self.out, f"section{depth}", f"body{depth}"
        with self.block(f"if {' or '.join(conditions)}:"):
            self.add(f"count{depth} = 0")
            self.add(f"{section} = bytearray()")
            for condition, (name, field) in zip(conditions, tagged, strict=True):
                with self.block(f"if {condition}:"):
                    self.add(f"count{depth} += 1")
                    self.add(f"{body} = bytearray()")
                    self.out = body
                    self.write_field(f"{obj}.{name}", field, depth)
                    self.flush()
                    self.out = outer
                    self.add(f"put_uvarint({section}, {field.tag})")
                    self.add(f"put_uvarint({section}, len({body}))")
                    self.add(f"{section} += {body}")
            self.add(f"put_uvarint({outer}, count{depth})")
            self.add(f"{outer} += {section}")
        with self.block("else:"):
            self.add(f"{outer}.append(0)")

    def write_field(self, value: str, field: Field, depth: int) -> None:
        nullable = self.version in field.nullable
        if field.kind == "struct":
            self.write_nested(value, field, nullable, depth)
        elif field.kind == "array":
            self.write_array(value, field, nullable, depth)
        else:
            self.write_plain(value, field.kind, nullable, self.is_compact(field))

    def write_plain(self, value: str, kind: Kind, nullable: bool, compact: bool) -> None:
        if kind in FIXED_FORMATS:
            self.run.append((FIXED_FORMATS[kind], value))
        elif kind == "uuid":
            self.run.append(("16s", f"{value}.bytes"))
        elif kind == "records":
            self.flush()
            self.add(f"put_{'compact_' if compact else ''}records({self.out}, {value}, splices)")
        elif compact:
            self.write_compact(value, kind, nullable)
        else:
            self.write_prefixed(value, kind, nullable)

    def write_compact(self, value: str, kind: Kind, nullable: bool) -> None:
        self.flush()
        with self.unless_none(value, nullable) as present:
            self.add(f"b = {present}.encode()" if kind == "string" else f"b = {present}")
            self.write_compact_length("b", "put_string_length" if kind == "string" else "put_uvarint")
            self.add(f"{self.out} += b")

    def write_compact_length(self, value: str, put_long: str) -> None:
        self.add(f"n = len({value}) + 1")
        with self.block("if n < 128:"):
            self.add(f"{self.out}.append(n)")
        with self.block("else:"):
            self.add(f"{put_long}({self.out}, n)")

    @contextmanager
    def unless_none(self, value: str, nullable: bool) -> Iterator[str]:
        """Writes the compact null for None; what is written inside runs for anything else."""
        if not nullable:
            yield value
            return
        self.add(f"v = {value}")
        with self.block("if v is None:"):
            self.add(f"{self.out}.append(0)")
        with self.block("else:"):
            yield "v"

    def write_prefixed(self, value: str, kind: Kind, nullable: bool) -> None:
        self.add(f"v = {value}")
        encoded = "v.encode()" if kind == "string" else "v"
        if nullable:
            self.add(f'b = b"" if v is None else {encoded}')
            self.run.append((_LENGTH_FORMATS[kind], "-1 if v is None else len(b)"))
        else:
            self.add(f"b = {encoded}")
            self.run.append((_LENGTH_FORMATS[kind], "len(b)"))
        self.flush()
        self.add(f"{self.out} += b")

    def write_nested(self, value: str, field: Field, nullable: bool, depth: int) -> None:
        inner = f"o{depth + 1}"
        self.flush()
        self.add(f"{inner} = {value}")
        if not nullable:
            self.write_struct(inner, field.struct, depth + 1)
            return
        with self.block(f"if {inner} is None:"):
            self.add(f"{self.out}.append(255)")
        with self.block("else:"):
            self.add(f"{self.out}.append(1)")
            self.write_struct(inner, field.struct, depth + 1)
            self.flush()

    def write_array(self, value: str, field: Field, nullable: bool, depth: int) -> None:
        items = f"l{depth + 1}"
        self.add(f"{items} = {value}")
        if self.flexible:
            self.flush()
        elif nullable:
            self.run.append(("i", f"-1 if {items} is None else len({items})"))
            self.flush()
        else:
            self.run.append(("i", f"len({items})"))
            self.flush()
        if not nullable:
            self.write_items(items, field, depth)
            return
        if self.flexible:
            with self.block(f"if {items} is None:"):
                self.add(f"{self.out}.append(0)")
            with self.block("else:"):
                self.write_items(items, field, depth)
        else:
            with self.block(f"if {items} is not None:"):
                self.write_items(items, field, depth)

    def write_items(self, items: str, field: Field, depth: int) -> None:
        assert field.element is not None
        if self.flexible:
            self.write_compact_length(items, "put_uvarint")
        if field.element in FIXED_FORMATS:
            self.add(f'{self.out} += pack(f">{{len({items})}}{FIXED_FORMATS[field.element]}", *{items})')
            return
        item = f"o{depth + 1}"
        with self.block(f"for {item} in {items}:"):
            if field.element == "struct":
                self.write_struct(item, field.struct, depth + 1)
            else:
                self.write_plain(item, field.element, False, self.flexible)
            self.flush()

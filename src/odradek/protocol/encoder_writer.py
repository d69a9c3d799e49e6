"""Writes the function that writes one message at one version.

Neighbouring fields of fixed size are collected in a run and written by one `struct.Struct`.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from struct import Struct as Format
from typing import Any

from odradek.protocol.fields import FIXED_FORMATS, FRESH, Field, Kind
from odradek.protocol.source_writer import LENGTH_FORMATS, SourceWriter


class EncoderWriter(SourceWriter):
    def write_function(self, message: Any) -> None:
        self.run: list[tuple[str, str]] = []  # fixed-size values still to be written: format and expression
        self.out = "out"
        self.drops_absent = message.DROPS_ABSENT
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
            if not (field.ignorable or self.drops_absent):
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
            fields = field.struct.FIELDS.items()
            return " or ".join(self.differs(f"{value}.{name}", inner) for name, inner in fields)
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
        """Write the compact null for None, and a block that runs for any other value."""
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
            self.run.append((LENGTH_FORMATS[kind], "-1 if v is None else len(b)"))
        else:
            self.add(f"b = {encoded}")
            self.run.append((LENGTH_FORMATS[kind], "len(b)"))
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
        if depth == 0 and field.element == "struct" and self.out == "out" and not self.drops_absent:
            self.write_shareable(items, field)
        else:
            self.write_loop(items, field, depth)

    def write_shareable(self, items: str, field: Field) -> None:
        """Write the elements of an array of a request itself, which may be a `SharedList`."""
        key = repr(f"{self.title} {field.struct.__name__}")
        with self.block(f"if type({items}) is SharedList and {key} in {items}.encodings:"):
            self.add(f"out += {items}.encodings[{key}]")
        with self.block("else:"):
            self.add("start = len(out)")
            self.write_loop(items, field, 0)
            with self.block(f"if type({items}) is SharedList:"):
                self.add(f"{items}.encodings[{key}] = bytes(memoryview(out)[start:])")

    def write_loop(self, items: str, field: Field, depth: int) -> None:
        assert field.element is not None
        item = f"o{depth + 1}"
        with self.block(f"for {item} in {items}:"):
            if field.element == "struct":
                self.write_struct(item, field.struct, depth + 1)
            else:
                self.write_plain(item, field.element, False, self.flexible)
            self.flush()

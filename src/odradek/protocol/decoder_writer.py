"""Writes the function that reads one message at one version.

Neighbouring fields of fixed size are collected in a run and read by one `struct.Struct`; a length ends the run it is
part of. Every length and count is compared with the bytes that are left before anything is built from it, and paid for
from the budget of the message (`decoding_steps`).
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from struct import Struct as Format
from typing import Any

from odradek.protocol.decoding_steps import (
    LONG_ARRAY_STEPS,
    LONG_ARRAY_VALUE_STEPS,
    SHORT_ARRAY_STEPS,
    SHORT_ARRAY_VALUE_STEPS,
    STEPS_MAX,
    element_steps,
    tag_steps,
)
from odradek.protocol.fields import FIXED_FORMATS, FRESH, Field, Kind
from odradek.protocol.primitives import TAGGED_SECTION_STEPS
from odradek.protocol.source_writer import LENGTH_FORMATS, SourceWriter

# Arrays of so few values are read by a Struct that is kept: most are the replicas of a partition.
SHORT_ARRAY_MAX = 16

_SLICES: dict[Kind, str] = {
    "string": 'str(buf[pos:stop], "utf-8")',
    "bytes": "bytes(buf[pos:stop])",
    "records": "buf[pos:stop]",
}


class DecoderWriter(SourceWriter):
    def write_function(self, message: Any) -> None:
        self.run: list[tuple[str, str]] = []  # fixed-size values still to be read: format and target
        self.after_run: list[str] = []
        with self.block(f"def decode(buf, pos, steps={STEPS_MAX}):"):
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
                self.add("pos, steps = skip_tagged_fields(buf, pos, steps)")
            return
        with self.block("else:"):
            self.add("n, pos = read_uvarint(buf, pos)")
            self.add("check_tag_count(n, end - pos)")
            self.charge(f"n * {tag_steps(self, struct)} + {TAGGED_SECTION_STEPS}", f"{path} tagged fields")
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
        """Read a length into `n`; -1 means null."""
        if not compact:
            self.run.append((LENGTH_FORMATS[kind], "n"))
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
        """Write a block that runs only for a length that the remaining bytes can hold."""
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
        if field.element in FIXED_FORMATS:
            self.read_fixed_array(target, field.element, nullable, path)
            return
        self.read_length("array", self.flexible)
        with self.checked_count(target, nullable, self.least_size(field.element, field.struct), path):
            self.charge(f"n * {element_steps(self, field)}", path)
            items, item = f"l{depth + 1}", f"o{depth + 1}"
            self.add(f"{items} = {target} = []")
            with self.block("for _ in range(n):"):
                if field.element == "struct":
                    self.read_struct(item, field.struct, depth + 1, path)
                else:
                    self.read_plain(item, field.element, False, self.flexible, path)
                    self.flush()
                self.add(f"{items}.append({item})")

    def checked_count(self, target: str, nullable: bool, least: int, path: str) -> AbstractContextManager[None]:
        room = "end - pos" if least == 1 else f"(end - pos) // {least}"
        return self.checked_length(target, nullable, room, path)

    def read_fixed_array(self, target: str, kind: Kind, nullable: bool, path: str) -> None:
        """Most are the replicas of a partition, few or none: those are read in the fewest lines."""
        fmt = FIXED_FORMATS[kind]
        size = Format(">" + fmt).size
        short = self.short_unpackers(fmt)
        if not self.flexible:
            self.read_length("array", compact=False)
            with self.checked_count(target, nullable, size, path):
                with self.block("if n == 0:"):
                    self.add(f"{target} = []")
                with self.block(f"elif n <= {SHORT_ARRAY_MAX}:"):
                    self.charge(f"n * {SHORT_ARRAY_VALUE_STEPS} + {SHORT_ARRAY_STEPS}", path)
                    self.add(f"{target} = list({short}[n](buf, pos))")
                with self.block("else:"):
                    self.read_long_array(target, fmt, path)
                self.add(f"pos += n * {size}")
            return
        self.flush()
        self.add("n = buf[pos] - 1")
        with self.block("if n == 0:"):
            self.add("pos += 1")
            self.add(f"{target} = []")
        with self.block(f"elif 0 < n <= {SHORT_ARRAY_MAX}:"):
            self.charge(f"n * {SHORT_ARRAY_VALUE_STEPS} + {SHORT_ARRAY_STEPS}", path)
            self.add(f"{target} = list({short}[n](buf, pos + 1))")
            self.add(f"pos += n * {size} + 1")
        with self.block("else:"):
            self.read_length("array", compact=True)
            with self.checked_count(target, nullable, size, path):
                self.read_long_array(target, fmt, path)
                self.add(f"pos += n * {size}")

    def read_long_array(self, target: str, fmt: str, path: str) -> None:
        self.charge(f"n * {LONG_ARRAY_VALUE_STEPS} + {LONG_ARRAY_STEPS}", path)
        self.add(f'{target} = list(unpack_from(f">{{n}}{fmt}", buf, pos))')

    def short_unpackers(self, fmt: str) -> str:
        name = f"unpack_short_{fmt}"
        if name not in self.names:
            self.names[name] = [Format(f">{count}{fmt}").unpack_from for count in range(SHORT_ARRAY_MAX + 1)]
        return name

    def charge(self, steps: str, path: str) -> None:
        """Charge for `n` elements, before the first of them is read."""
        self.add(f"steps -= {steps}")
        with self.block("if steps < 0:"):
            self.add(f"raise over_budget({path!r}, n)")

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
        return 1 if self.flexible else Format(">" + LENGTH_FORMATS[kind]).size

"""Declarations of a message's fields: one call per field, with its type, versions, nullability and default.

The calls answer `Any`, so that `name: str = string()` is a `str` to type checkers, while the class being declared
receives the `Field` and takes it away again (see `schema`). The first positional argument is the range of
versions that carry the field: "3+", "0-2", "5". `nullable` is the range in which it may be None. A field with a
`tag` is written only when it differs from its default. `ignorable` fields are left out silently at versions that
lack them; others may be left out only while they hold their default.
"""

from collections.abc import Callable
from functools import cache
from typing import Any, Final, Literal, TypeAlias
from uuid import UUID

from odradek.base.value_classes import dataclass
from odradek.protocol.primitives import ZERO_UUID

Kind: TypeAlias = Literal[
    "bool", "int8", "int16", "int32", "int64", "float64", "uuid", "string", "bytes", "records", "struct", "array"
]

FIXED_FORMATS: Final[dict[Kind, str]] = {
    "bool": "?",
    "int8": "b",
    "int16": "h",
    "int32": "i",
    "int64": "q",
    "float64": "d",
}
VERSION_MAX = 0x7FFF


@cache
def parse_versions(text: str) -> range:
    """'3+' is 3 and all later ones, '0-2' both ends included, '5' just that one, '' none."""
    if not text:
        return range(0)
    if text.endswith("+"):
        return range(int(text[:-1]), VERSION_MAX + 1)
    first, _, last = text.partition("-")
    return range(int(first), int(last or first) + 1)


class Fresh:
    """A default that is created for every object: an empty list, or a struct with its own defaults."""

    __slots__ = ()


FRESH: Final = Fresh()


@dataclass(frozen=True, slots=True)
class Field:
    kind: Kind
    default: Any
    versions: range
    nullable: range
    tag: int | None
    ignorable: bool
    element: Kind | None = None  # what an array consists of
    struct: Any = None  # the class of a struct, or of an array's elements
    compact: bool = True  # False: keeps its two-byte length in flexible versions too
    steps: int = 0  # what it costs a request beside being decoded, in `decoding_steps`


def _field(
    kind: Kind,
    default: Any,
    versions: str,
    *,
    nullable: str = "",
    tag: int | None = None,
    ignorable: bool = False,
    **details: Any,
) -> Any:
    return Field(kind, default, parse_versions(versions), parse_versions(nullable), tag, ignorable, **details)


def bool_(versions: str = "0+", *, default: bool = False, **options: Any) -> Any:
    return _field("bool", default, versions, **options)


def int8(versions: str = "0+", *, default: int = 0, **options: Any) -> Any:
    return _field("int8", default, versions, **options)


def int16(versions: str = "0+", *, default: int = 0, **options: Any) -> Any:
    return _field("int16", default, versions, **options)


def int32(versions: str = "0+", *, default: int = 0, **options: Any) -> Any:
    return _field("int32", default, versions, **options)


def int64(versions: str = "0+", *, default: int = 0, **options: Any) -> Any:
    return _field("int64", default, versions, **options)


def float64(versions: str = "0+", *, default: float = 0.0, **options: Any) -> Any:
    return _field("float64", default, versions, **options)


def uuid(versions: str = "0+", *, default: UUID = ZERO_UUID, **options: Any) -> Any:
    return _field("uuid", default, versions, **options)


def string(versions: str = "0+", *, default: str | None = "", **options: Any) -> Any:
    return _field("string", default, versions, **options)


def bytes_(versions: str = "0+", *, default: bytes | None = b"", **options: Any) -> Any:
    return _field("bytes", default, versions, **options)


def records(versions: str = "0+", **options: Any) -> Any:
    """Batches, opaque to the codec: None, a zero-copy view when read, bytes or file slices when written."""
    return _field("records", None, versions, **options)


def struct(of: type, versions: str = "0+", **options: Any) -> Any:
    """One nested struct. Where it may be absent (nullable, or tagged) it is None by default."""
    optional = "nullable" in options or "tag" in options
    return _field("struct", None if optional else FRESH, versions, struct=of, **options)


def array(of: type | Callable[..., Any], versions: str = "0+", *, default: Fresh | None = FRESH, **options: Any) -> Any:
    """A list: of structs when given a class, of plain values when given the function that declares such a field."""
    if isinstance(of, type):
        return _field("array", default, versions, element="struct", struct=of, **options)
    return _field("array", default, versions, element=_ELEMENT_KINDS[of], **options)


_ELEMENT_KINDS: Final[dict[Callable[..., Any], Kind]] = {
    int8: "int8",
    int16: "int16",
    int32: "int32",
    int64: "int64",
    string: "string",
    uuid: "uuid",
}

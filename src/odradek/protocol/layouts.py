"""Layouts of messages for the compiled inner loop: declarations of one version as tuples, made once."""

from types import MemberDescriptorType
from typing import Any, Final, TypeAlias

from odradek.protocol.fields import FIXED_FORMATS, FRESH, Field, Kind
from odradek.protocol.source_writer import SourceWriter

# In the order of `enum Kind` and `enum Default` in native/message_decoder.h.
_KINDS: Final[tuple[Kind, ...]] = (
    *FIXED_FORMATS,
    "uuid",
    "string",
    "bytes",
    "records",
    "struct",
    "array",
)
_VALUE, _NEW_LIST, _NEW_STRUCT = range(3)

Layout: TypeAlias = tuple[object, ...]


def field_layout(
    writer: SourceWriter, slot: MemberDescriptorType, field: Field, inner: Layout | None, steps: int = 0, size: int = 1
) -> Layout:
    """The layout of a field; `inner` is that of its struct, or of its elements. What an element costs, and its least
    size, matter to a decoder."""
    return (
        slot,
        -1 if field.tag is None else field.tag,
        _KINDS.index(field.kind),
        _KINDS.index(field.element or "bool"),
        writer.version in field.nullable,
        writer.flexible if field.kind == "array" else writer.is_compact(field),
        steps,
        size,
        inner,
    )


def default_layout(slot: MemberDescriptorType, field: Field) -> Layout:
    if field.default is not FRESH:
        return slot, _VALUE, field.default
    return (slot, _NEW_LIST, None) if field.kind == "array" else (slot, _NEW_STRUCT, field.struct)


def slot_of(struct: Any, name: str) -> MemberDescriptorType:
    slot = getattr(struct, name)
    assert isinstance(slot, MemberDescriptorType)
    return slot

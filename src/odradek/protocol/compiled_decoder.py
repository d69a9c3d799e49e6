"""Decoders of the compiled inner loop: the layout of a message at one version, and the way from it to its twin.

The twin is the Python function that `decoder_writer` writes from the same declaration. It reads what the compiled
decoder leaves to it: every message that is refused.
"""

from collections.abc import Callable
from types import MemberDescriptorType
from typing import Any

from odradek.native.load import compiled
from odradek.protocol.decoder_writer import DecoderWriter
from odradek.protocol.decoding_steps import STEPS_MAX, element_steps, tag_steps
from odradek.protocol.fields import FIXED_FORMATS, Field
from odradek.protocol.layouts import Layout, default_layout, field_layout, slot_of
from odradek.protocol.primitives import uuid_of


def faster(decode: Callable[..., Any], writer: DecoderWriter, message: Any) -> Callable[..., Any]:
    """The decoder, with its compiled twin before it where there is one."""
    if compiled is None:
        return decode
    native, decoder = compiled.decode, compiled.make_decoder(layout_of(writer, message))

    def decode_message(buf: memoryview, pos: int, steps: int = STEPS_MAX) -> Any:
        return native(decoder, uuid_of, buf, pos, steps) or decode(buf, pos, steps)

    return decode_message


def layout_of(writer: DecoderWriter, struct: Any) -> Layout:
    """The layout of a struct: its fields in their order, and behind them the tagged ones."""
    tagged = writer.tagged(struct)
    fields = tuple(_field(writer, slot_of(struct, name), field) for name, field in writer.present(struct) + tagged)
    unset = tuple(default_layout(slot_of(struct, name), field) for name, field in writer.absent(struct) + tagged)
    return struct, writer.flexible, tag_steps(writer, struct), len(tagged), fields, unset


def _field(writer: DecoderWriter, slot: MemberDescriptorType, field: Field) -> Layout:
    steps, size = 0, 1
    if field.kind == "array":
        assert field.element is not None
        steps = 0 if field.element in FIXED_FORMATS else element_steps(writer, field)
        size = writer.least_size(field.element, field.struct)
    inner = None if field.struct is None else layout_of(writer, field.struct)
    return field_layout(writer, slot, field, inner, steps, size)

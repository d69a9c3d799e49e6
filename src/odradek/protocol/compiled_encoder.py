"""Encoders of the compiled inner loop: the layout of a message at one version, and the way from it to its twin.

The twin is the Python function that `encoder_writer` writes from the same declaration. It writes what the compiled
encoder leaves to it: every message that is refused, and values of unusual types.
"""

from collections.abc import Callable
from typing import Any, Final
from uuid import UUID

from odradek.base.file_slice import FileSlice
from odradek.native.load import compiled
from odradek.protocol.encoder_writer import EncoderWriter
from odradek.protocol.layouts import Layout, default_layout, field_layout, slot_of
from odradek.protocol.primitives import SharedList, Splices

_TYPES: Final = (UUID, FileSlice, SharedList)


def faster(encode: Callable[..., None], writer: EncoderWriter, message: Any) -> Callable[..., None]:
    """The encoder, with its compiled twin before it where there is one."""
    if compiled is None or not hasattr(compiled, "encode"):
        return encode
    native, encoder = compiled.encode, compiled.make_decoder(layout_of(writer, message))

    def encode_message(given: Any, out: bytearray, splices: Splices) -> None:
        if not native(encoder, _TYPES, given, out, splices):
            encode(given, out, splices)

    return encode_message


def layout_of(writer: EncoderWriter, struct: Any) -> Layout:
    """The layout of a struct as for a decoder, with the defaults that fields have to hold, and of the tagged ones."""
    tagged = writer.tagged(struct)
    fields = tuple(
        field_layout(
            writer, slot_of(struct, name), field, None if field.struct is None else layout_of(writer, field.struct)
        )
        for name, field in writer.present(struct) + tagged
    )
    held = [(name, field) for name, field in writer.absent(struct) if not (field.ignorable or writer.drops_absent)]
    defaults = tuple(default_layout(slot_of(struct, name), field) for name, field in held + tagged)
    return struct, writer.flexible, 0, len(tagged), fields, defaults

"""Compiles a message's declaration into straight-line Python, once per class and version.

The generated function has no calls per field: neighbouring fields of fixed size are read and written by one
`struct.Struct`, nested structs are inlined as loops, and what a version lacks costs nothing. A decoder checks every
length and count against the bytes that are left before it believes it, and raises nothing but ProtocolError; an
encoder raises nothing but EncodeError. `decoder_source` and `encoder_source` show what was generated.

In the generated code `o0` is the message, `o1` the struct or element inside it, and so on; `pos` moves along `buf`.
"""

from typing import Any

from odradek.protocol import compiled_decoder, compiled_encoder
from odradek.protocol.decoder_writer import DecoderWriter
from odradek.protocol.encoder_writer import EncoderWriter


def make_decoder(message: Any, version: int, flexible: bool) -> Any:
    writer = DecoderWriter(message, version, flexible)
    return compiled_decoder.faster(writer.compile("decode"), writer, message)


def python_decoder(message: Any, version: int) -> Any:
    """The decoder without its compiled twin."""
    return DecoderWriter(message, version, version in message.FLEXIBLE).compile("decode")


def make_encoder(message: Any, version: int, flexible: bool) -> Any:
    writer = EncoderWriter(message, version, flexible)
    return compiled_encoder.faster(writer.compile("encode"), writer, message)


def python_encoder(message: Any, version: int) -> Any:
    """The encoder without its compiled twin."""
    return EncoderWriter(message, version, version in message.FLEXIBLE).compile("encode")


def decoder_source(message: Any, version: int) -> str:
    return DecoderWriter(message, version, version in message.FLEXIBLE).source()


def encoder_source(message: Any, version: int) -> str:
    return EncoderWriter(message, version, version in message.FLEXIBLE).source()

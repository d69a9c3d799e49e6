"""Error messages that are too long for the wire: they quote names, which may be as long as a string can be."""

from odradek.protocol.primitives import STRING_LENGTH_MAX
from odradek.protocol.schema import Struct


def shorten_messages(answer: Struct) -> bool:
    """Truncate the error messages of an answer to the length of a string; True if one was too long."""
    shortened = False
    for name in answer.FIELDS:
        value = getattr(answer, name)
        if name == "error_message" and isinstance(value, str):
            encoded = value.encode()
            if len(encoded) > STRING_LENGTH_MAX:
                setattr(answer, name, encoded[:STRING_LENGTH_MAX].decode(errors="ignore"))
                shortened = True
        for part in value if isinstance(value, list) else (value,):
            if isinstance(part, Struct):
                shortened |= shorten_messages(part)
    return shortened

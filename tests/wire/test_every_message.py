"""Every message at every version: our bytes are kio's bytes, and each reads what the other wrote.

So do the compiled decoder and its Python twin.
"""

import pytest
from kio_oracle import drawn_messages, every_message_and_version, kio_class, kio_decode, kio_encode, to_kio

from odradek.protocol.codec import python_decoder
from odradek.protocol.schema import Message

DRAWN = 12
CASES = [
    pytest.param(message, version, module, id=f"{message.__name__}-v{version}")
    for message, version, module in every_message_and_version()
]


@pytest.mark.parametrize(("message", "version", "kio_module"), CASES)
def test_agrees_with_kio(message: type[Message], version: int, kio_module: str) -> None:
    kio_type, in_python = kio_class(message, kio_module), python_decoder(message, version)
    for value in drawn_messages(message, kio_type, version, DRAWN):
        theirs = to_kio(value, kio_type, version)
        encoded = value.encode(version)
        assert encoded == kio_encode(theirs)
        assert message.decode(memoryview(encoded), 0, version) == (value, len(encoded))
        assert in_python(memoryview(encoded), 0) == (value, len(encoded))
        assert kio_decode(kio_type, encoded) == theirs

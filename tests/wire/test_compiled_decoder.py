"""The compiled decoder of messages and its Python twin read the same, and refuse the same with the same words.

Bodies have every array and every place for tagged fields filled, and are then damaged; the steps given are sometimes
too few. `make soak` compares a million.
"""

import random
from collections.abc import Callable
from functools import cache
from itertools import islice

import pytest
from adversary import BodyWriter

from odradek.native.load import compiled
from odradek.protocol.api_keys import APIS
from odradek.protocol.codec import python_decoder
from odradek.protocol.decoding_steps import STEPS_MAX
from odradek.protocol.primitives import ProtocolError
from odradek.protocol.schema import Decoder, Message

pytestmark = pytest.mark.skipif(compiled is None, reason="the compiled inner loop is not built, or not wanted")

DEFAULT_INPUTS, SOAK_INPUTS = 10_000, 1_000_000
BODIES_KEPT = 40
MESSAGES = [
    (message, version)
    for api in APIS.values()
    for message in (api.request, api.response)
    for version in message.VERSIONS
]


@cache
def bodies(message: type[Message], version: int) -> list[tuple[bytes, int]]:
    writer = BodyWriter(message, version)
    return [(writer.body(shape), writer.steps(shape)) for shape in islice(writer.shapes(3), BODIES_KEPT)]


@cache
def twins(message: type[Message], version: int) -> tuple[Decoder[Message], Decoder[Message]]:
    return message.decoder(version), python_decoder(message, version)


def damaged(pick: random.Random, body: bytes) -> bytes:
    changed = bytearray(body)
    for _ in range(pick.choice((0, 0, 1, 1, 2))):
        at = pick.randrange(len(changed) + 1)
        match pick.randrange(4):
            case 0 if at < len(changed):
                changed[at] ^= 1 << pick.randrange(8)
            case 1 if at < len(changed):
                changed[at] = pick.choice((0, 1, 2, 0x7F, 0x80, 0xFF))
            case 2:
                del changed[at:]
            case _:
                changed[at:at] = pick.choice((b"\0", b"\x01", b"\x80", b"\xff\xff", b"ab"))
    return bytes(changed)


def outcome(decode: Callable[..., object], body: bytes, at: int, steps: int) -> object:
    try:
        return decode(memoryview(body), at, steps)
    except ProtocolError as error:
        return type(error), str(error)


def compare(seed: int, inputs: int) -> int:
    """The number of messages that were read."""
    pick, read = random.Random(seed), 0
    for _ in range(inputs):
        message, version = pick.choice(MESSAGES)
        body, steps = pick.choice(bodies(message, version) or [(b"", 0)])
        body = damaged(pick, body)
        given = pick.choice((STEPS_MAX, steps, steps - 1, steps // 2))
        at = pick.choice((0, 0, 0, len(body), len(body) + 1))
        fast, slow = (outcome(decode, body, at, given) for decode in twins(message, version))
        assert fast == slow or repr(fast) == repr(slow), (
            f"{message.__name__} v{version} {body!r} at {at}, {given} steps"
        )
        read += isinstance(fast, tuple) and isinstance(fast[0], Message)
    return read


def test_the_twins_agree_about_messages() -> None:
    assert compare(1, DEFAULT_INPUTS) > DEFAULT_INPUTS / 10


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_the_twins_agree_about_a_million_messages() -> None:
    assert compare(random.randrange(2**32), SOAK_INPUTS) > SOAK_INPUTS / 10

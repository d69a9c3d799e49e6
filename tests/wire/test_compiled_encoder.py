"""The compiled encoder of messages and its Python twin write the same, and refuse the same with the same words.

Messages are read from bodies in which every array and every place for tagged fields is filled, and then changed: values
of other types, too large ones, None, records in files, arrays that messages share. `make soak` compares a million.
"""

import random
import tempfile
from collections.abc import Callable
from functools import cache
from io import FileIO
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from test_compiled_decoder import MESSAGES, bodies

from odradek.base.errors import ErrorCode
from odradek.base.file_slice import FileSlice
from odradek.native.load import compiled
from odradek.protocol.codec import python_encoder
from odradek.protocol.primitives import EncodeError, SharedList, Splices
from odradek.protocol.schema import Message, Struct

pytestmark = pytest.mark.skipif(compiled is None, reason="the compiled inner loop is not built, or not wanted")

DEFAULT_INPUTS, SOAK_INPUTS = 10_000, 1_000_000
STRANGE: list[Any] = [
    None, True, ErrorCode.NOT_LEADER_OR_FOLLOWER, 0, -1, 127, 128, 2**15, -(2**31) - 1, 2**31, 2**63, 1.5,
    "", "a", "ä" * 63, "ä" * 64, "n" * 32_767, "n" * 32_768, "\ud800", b"", b"b" * 127, bytearray(b"c" * 200),
    memoryview(b"dddd"), memoryview(b"dddd").cast("H"), memoryview(b"abcdef")[::2], UUID(int=0), UUID(int=2**128 - 1),
    [], (), [1, 2], [None], [b"ab", b""], SharedList(), object(),
]  # fmt: skip


@cache
def encoders(message: type[Message], version: int) -> tuple[Callable[..., None], Callable[..., None]]:
    return message.encoder(version), python_encoder(message, version)


def outcome(encode: Callable[..., None], message: Message, before: bytes) -> object:
    out, splices = bytearray(before), Splices()
    try:
        encode(message, out, splices)
    except EncodeError as error:
        return str(error)
    return bytes(out), splices


def change(pick: random.Random, struct: Any, slices: list[FileSlice]) -> None:
    """Change a field of the struct, or of one inside it."""
    name = pick.choice([*struct.FIELDS])
    value = getattr(struct, name)
    if isinstance(value, Struct):
        change(pick, value, slices)
    elif isinstance(value, list) and value and pick.random() < 0.8:
        if isinstance(value[0], Struct):
            change(pick, pick.choice(value), slices)
        elif pick.random() < 0.5:
            value[pick.randrange(len(value))] = pick.choice(STRANGE)
        else:
            setattr(struct, name, SharedList(value))
    elif struct.FIELDS[name].kind == "records":
        setattr(struct, name, pick.choice((None, b"", b"r" * 130, pick.choice(slices), [b"a", pick.choice(slices)])))
    elif pick.random() < 0.1:
        delattr(struct, name)
    else:
        setattr(struct, name, pick.choice(STRANGE))


def compare(seed: int, inputs: int) -> int:
    """The number of messages that were written."""
    pick, written = random.Random(seed), 0
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "records"
        path.write_bytes(bytes(1000))
        with FileIO(path) as file:
            slices = [FileSlice(file, position, size) for position, size in ((0, 0), (0, 5), (7, 900))]
            for _ in range(inputs):
                written += _compare_one(pick, slices)
    return written


def _compare_one(pick: random.Random, slices: list[FileSlice]) -> bool:
    read_as, read_at = pick.choice(MESSAGES)
    body, _ = pick.choice(bodies(read_as, read_at) or [(b"", 0)])
    try:
        message: Any = read_as.decode(memoryview(body), 0, read_at)[0] if body else read_as()
    except Exception:  # a body that is refused: the decoder's tests are about those
        message = read_as()
    for _ in range(pick.choice((0, 0, 1, 2))):
        if message.FIELDS:
            try:
                change(pick, message, slices)
            except AttributeError:
                break  # the field has gone already
    version = read_at if pick.random() < 0.8 else pick.choice([*read_as.VERSIONS])
    before = pick.choice((b"", b"1234"))
    for _ in range(2):  # arrays that messages share are written once
        fast, slow = (outcome(encode, message, before) for encode in encoders(read_as, version))
        assert fast == slow, f"{read_as.__name__} v{version}, read at v{read_at}"
    return isinstance(fast, tuple)


def test_the_twins_write_the_same_messages() -> None:
    assert compare(1, DEFAULT_INPUTS) > DEFAULT_INPUTS / 10


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_the_twins_write_a_million_messages() -> None:
    assert compare(random.randrange(2**32), SOAK_INPUTS) > SOAK_INPUTS / 10

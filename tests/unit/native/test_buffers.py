"""Buffers that are about to be filled: of the size that was asked for, and writable."""

import pytest

from odradek.native.buffers import new_buffer
from odradek.native.load import compiled


@pytest.mark.parametrize("size", [0, 1, 4096, 1 << 20])
def test_a_buffer_has_the_size_that_was_asked_for(size: int) -> None:
    buffer = new_buffer(size)
    assert type(buffer) is bytearray
    assert len(buffer) == size
    buffer[:] = bytes(size)
    assert buffer == bytes(size)


@pytest.mark.parametrize(("size", "error"), [(-1, ValueError), (1 << 70, OverflowError)])
def test_no_buffer_of_an_impossible_size(size: int, error: type[Exception]) -> None:
    with pytest.raises(error):
        new_buffer(size)


@pytest.mark.skipif(compiled is None, reason="the compiled inner loop is not built, or not wanted")
def test_the_allocator_takes_sizes_only() -> None:
    assert compiled is not None
    assert compiled.keep_freed_memory(128 << 10, 128 << 10) in (True, False)
    for sizes in ((-1, 1), (1, 1 << 40)):
        with pytest.raises(ValueError, match="not a size"):
            compiled.keep_freed_memory(*sizes)

"""Frames cut from a stream: whatever the pieces, the frames are the same, and memory follows the bytes that came."""

import random
import struct

import pytest

from odradek.broker.network import frame_reader
from odradek.broker.network.frame_reader import EndOfStream, FrameReader, InvalidFrame, Scratch
from odradek.native.buffers import new_buffer

SCRATCH_BYTES = 1000


class Stream:
    """Gives its bytes in pieces of at most these lengths, over and over; a piece of 0 bytes has not come yet."""

    def __init__(self, data: bytes, *pieces: int) -> None:
        self.rest = data
        self._pieces = pieces
        self._reads = 0

    def recv_into(self, buffer: memoryview, /) -> int:
        assert len(buffer), "a receive into nothing looks like the end of the stream"
        size = min(len(buffer), self._pieces[self._reads % len(self._pieces)], len(self.rest))
        self._reads += 1
        if not size and self.rest:
            raise BlockingIOError
        buffer[:size], self.rest = self.rest[:size], self.rest[size:]
        return size


def framed(payload: bytes) -> bytes:
    return struct.pack(">i", len(payload)) + payload


def frames_of(stream: Stream, max_size: int = 1 << 30) -> list[bytes]:
    reader, scratch, found = FrameReader(stream, max_size), Scratch(SCRATCH_BYTES), []
    while stream.rest:
        before = len(stream.rest)
        try:
            found += [bytes(frame) for frame in reader.read(scratch)]
        except BlockingIOError:
            continue
        assert reader.received == before - len(stream.rest)
    assert reader.frame_size == 0
    return found


@pytest.mark.parametrize("seed", range(20))
def test_frames_in_pieces_of_every_size(seed: int) -> None:
    pick = random.Random(seed)
    sizes = (0, 1, 3, 4, 90, SCRATCH_BYTES - 5, SCRATCH_BYTES - 4, SCRATCH_BYTES, 5_000, 70_000)
    payloads = [pick.randbytes(pick.choice(sizes)) for _ in range(30)]
    pieces = [pick.choice((0, 1, 2, 3, 4, 5, 500, 100_000)) for _ in range(17)]
    assert frames_of(Stream(b"".join(map(framed, payloads)), *pieces)) == payloads


def test_a_frame_of_which_only_the_size_has_come() -> None:
    assert frames_of(Stream(framed(bytes(70_000)), 4, 70_000)) == [bytes(70_000)]


def test_a_buffer_has_a_few_times_the_bytes_that_came(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []

    def noted(size: int) -> bytearray:
        sizes.append(size)
        return new_buffer(size)

    monkeypatch.setattr(frame_reader, "new_buffer", noted)
    frames_of(Stream(framed(bytes(300_000)), 4 + 1, 10_000))
    assert sizes == [4096, 8 * 4096, 8 * 8 * 4096, 300_000]
    del sizes[:]
    frames_of(Stream(framed(bytes(5_000)), 4 + 800, 10_000))
    assert sizes == [5_000], "one buffer, where a part worth speaking of has come"


def test_large_frames_behind_a_large_one_are_received_where_they_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []

    def noted(size: int) -> bytearray:
        sizes.append(size)
        return new_buffer(size)

    monkeypatch.setattr(frame_reader, "new_buffer", noted)
    payloads = [bytes([n]) * (50_000 + n) for n in range(4)]
    assert frames_of(Stream(b"".join(map(framed, payloads)), 100_000)) == payloads
    assert sizes[-3:] == [50_001, 50_002, 50_003], "one buffer each, of the size of the frame"
    del sizes[:]
    assert frames_of(Stream(framed(payloads[0]) + framed(bytes(300_000)), 60_000, 60_000, 60_000, 4, 10))
    assert sizes[2:5] == [300_000, 4096, 8 * 4096], "not kept for ten bytes"


@pytest.mark.parametrize("size", [0, 1, 5_000, 40_000])
def test_a_size_that_comes_alone_behind_a_large_frame(size: int) -> None:
    payloads = [bytes(50_000), b"x" * size]
    assert frames_of(Stream(b"".join(map(framed, payloads)), 1000, 100_000, 100_000, 4, 0, 100_000)) == payloads


@pytest.mark.parametrize("size", [-1, (1 << 20) + 1])
def test_a_size_that_is_refused_behind_a_large_frame(size: int) -> None:
    with pytest.raises(InvalidFrame):
        frames_of(Stream(framed(bytes(50_000)) + struct.pack(">i", size) + b"x", 100_000), max_size=1 << 20)


def test_sizes_that_are_refused_and_streams_that_end() -> None:
    with pytest.raises(InvalidFrame):
        frames_of(Stream(framed(bytes(101)), 1000), max_size=100)
    with pytest.raises(InvalidFrame):
        frames_of(Stream(b"\xff" * 10, 1000))
    reader, scratch = FrameReader(Stream(framed(b"half")[:6], 1000), 100), Scratch(SCRATCH_BYTES)
    assert reader.read(scratch) == []
    with pytest.raises(EndOfStream):
        reader.read(scratch)

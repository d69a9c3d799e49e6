"""The codecs: other people's writers and readers, garbage, and bombs."""

import time
import zlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import cramjam
import pytest
from aiokafka import codec as aio
from hypothesis import given, settings
from hypothesis import strategies as st

from odradek.base.errors import ErrorCode, KafkaError
from odradek.protocol.compression import Codec, compress, compress_lz4_old, decompress, decompress_lz4_old

COMPRESSED = [codec for codec in Codec if codec is not Codec.NONE]
TEXT = b"".join(b"the spool of thread %d outlives its owners. " % n for n in range(5000))
LIMIT = 32 * 1024 * 1024
MIB = 1024 * 1024

AIO: dict[Codec, tuple[Callable[[bytes], bytes], Callable[[bytes], bytes]]] = {
    Codec.GZIP: (aio.gzip_encode, aio.gzip_decode),
    Codec.SNAPPY: (aio.snappy_encode, aio.snappy_decode),
    Codec.LZ4: (aio.lz4_encode, aio.lz4_decode),
    Codec.ZSTD: (aio.zstd_encode, aio.zstd_decode),
}


@pytest.mark.parametrize("codec", COMPRESSED)
def test_aiokafka_and_we_read_each_other(codec: Codec) -> None:
    encode, decode = AIO[codec]
    assert decode(compress(codec, TEXT)) == TEXT
    assert decompress(codec, encode(TEXT), LIMIT) == TEXT


@pytest.mark.parametrize("codec", list(Codec))
@settings(max_examples=40, deadline=None)
@given(data=st.binary(max_size=2000))
def test_what_is_compressed_unfolds(codec: Codec, data: bytes) -> None:
    assert decompress(codec, memoryview(compress(codec, data)), len(data)) == data


def test_snappy_is_written_as_java_writes_it() -> None:
    data = compress(Codec.SNAPPY, TEXT)
    assert data[:16] == b"\x82SNAPPY\x00\x00\x00\x00\x01\x00\x00\x00\x01"
    first = data[20 : 20 + int.from_bytes(data[16:20], "big")]
    assert bytes(cramjam.snappy.decompress_raw(first)) == TEXT[: 32 * 1024]


def test_snappy_without_a_frame_is_librdkafkas() -> None:
    assert decompress(Codec.SNAPPY, bytes(cramjam.snappy.compress_raw(TEXT)), LIMIT) == TEXT


def test_lz4_blocks_that_lean_on_each_other_are_refused_as_kafka_does() -> None:
    with pytest.raises(KafkaError, match="depend on each other"):
        decompress(Codec.LZ4, bytes(cramjam.lz4.compress(TEXT)), LIMIT)


def test_lz4_is_written_with_blocks_that_stand_alone() -> None:
    assert compress(Codec.LZ4, TEXT)[4] & 0x20


def test_the_old_lz4_descriptor() -> None:
    ours = compress_lz4_old(TEXT)
    with pytest.raises(KafkaError):
        decompress(Codec.LZ4, ours, LIMIT)
    assert decompress_lz4_old(ours, LIMIT) == TEXT
    # As Kafka's Java client writes it: its checksum is 0x1a, where 0x82 would be right.
    assert decompress_lz4_old(bytes.fromhex("04224d1860401a02000080686900000000"), LIMIT) == b"hi"
    # Kafka's reader of these takes a right checksum too, as it takes any.
    assert decompress_lz4_old(compress(Codec.LZ4, TEXT), LIMIT) == TEXT


def test_gzip_members_and_zstd_frames_follow_each_other() -> None:
    for codec in (Codec.GZIP, Codec.ZSTD):
        assert decompress(codec, compress(codec, TEXT) + compress(codec, b"more"), LIMIT) == TEXT + b"more"


@pytest.mark.parametrize("codec", list(Codec))
def test_the_limit_is_exact(codec: Codec) -> None:
    data = compress(codec, TEXT)
    assert decompress(codec, data, len(TEXT)) == TEXT
    with pytest.raises(KafkaError) as caught:
        decompress(codec, data, len(TEXT) - 1)
    assert caught.value.code is ErrorCode.MESSAGE_TOO_LARGE


@pytest.mark.parametrize("codec", COMPRESSED)
def test_data_cut_short_is_refused(codec: Codec) -> None:
    data = compress(codec, TEXT[:400])
    for cut in range(1, len(data)):
        try:
            # After the header of a xerial stream, nothing tells that there was more.
            assert TEXT.startswith(decompress(codec, data[:cut], LIMIT))
            assert codec is Codec.SNAPPY
            assert cut == 16
        except KafkaError as error:
            assert error.code is ErrorCode.INVALID_RECORD  # noqa: PT017


@pytest.mark.parametrize("codec", COMPRESSED)
@settings(max_examples=100, deadline=None)
@given(data=st.binary(max_size=200), at=st.integers(0, 10_000), byte=st.integers(0, 255))
def test_garbage_ends_in_an_error(codec: Codec, data: bytes, at: int, byte: int) -> None:
    damaged = bytearray(compress(codec, TEXT[:1000]))
    damaged[at % len(damaged)] = byte
    for each in (data, bytes(damaged)):
        for unfold in (decompress, lambda _, *rest: decompress_lz4_old(*rest)):
            with suppress(KafkaError):
                assert len(unfold(codec, each, 5000)) <= 5000


def gzip_bomb() -> bytes:
    stream = zlib.compressobj(9, wbits=31)
    start = stream.compress(b"") + stream.flush(zlib.Z_FULL_FLUSH)
    mebibyte = stream.compress(bytes(MIB)) + stream.flush(zlib.Z_FULL_FLUSH)
    return start + mebibyte * 1024 + stream.flush()


def xerial(block: bytes, times: int) -> bytes:
    return b"\x82SNAPPY\x00\x00\x00\x00\x01\x00\x00\x00\x01" + (len(block).to_bytes(4, "big") + block) * times


BOMBS: dict[str, tuple[Codec, Callable[[], bytes]]] = {
    "gzip": (Codec.GZIP, gzip_bomb),
    "lz4": (Codec.LZ4, lambda: compress(Codec.LZ4, bytes(MIB)) * 1024),
    "zstd": (Codec.ZSTD, lambda: compress(Codec.ZSTD, bytes(1024 * MIB // 8)) * 8),
    "snappy blocks": (Codec.SNAPPY, lambda: xerial(bytes(cramjam.snappy.compress_raw(bytes(MIB))), 64)),
    "snappy that claims 1 GiB": (Codec.SNAPPY, lambda: b"\x80\x80\x80\x80\x04" + bytes(MIB)),
    "snappy of tiny blocks": (Codec.SNAPPY, lambda: xerial(bytes(cramjam.snappy.compress_raw(b"x")), 150_000)),
}


@pytest.fixture
def peak_growth() -> Callable[[], int]:
    """Bytes by which this process's peak memory passed what it held when the test began."""
    clear_refs = Path("/proc/self/clear_refs")
    if not clear_refs.exists():
        pytest.skip("needs /proc")
    clear_refs.write_text("5")
    before = peak_bytes()
    return lambda: peak_bytes() - before


def peak_bytes() -> int:
    (line,) = [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM")]
    return int(line.split()[1]) * 1024


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_is_refused_soon_and_small(name: str, request: pytest.FixtureRequest) -> None:
    codec, make = BOMBS[name]
    bomb = make()
    growth = request.getfixturevalue("peak_growth")
    began = time.process_time()
    with pytest.raises(KafkaError) as caught:
        decompress(codec, bomb, LIMIT)
    assert caught.value.code in (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.INVALID_RECORD)
    assert time.process_time() - began < 1.5  # 0.05-0.15 s on a quiet machine
    assert growth() < 64 * MIB


def test_members_of_gzip_have_a_bound() -> None:
    """Each costs as much as kilobytes of output, and none of them needs to have any."""
    empty = zlib.compress(b"", wbits=31)
    assert decompress(Codec.GZIP, empty * 1024, LIMIT) == b""
    with pytest.raises(KafkaError, match="more than 1024 members") as caught:
        decompress(Codec.GZIP, empty * 1025, LIMIT)
    assert caught.value.code is ErrorCode.INVALID_RECORD


def test_tiny_blocks_of_snappy_count_as_larger_ones() -> None:
    block = bytes(cramjam.snappy.compress_raw(b"a"))
    stream = compress(Codec.SNAPPY, b"") + (len(block).to_bytes(4, "big") + block) * 100
    assert decompress(Codec.SNAPPY, stream, 100 * 1024) == b"a" * 100
    with pytest.raises(KafkaError) as caught:
        decompress(Codec.SNAPPY, stream, 98 * 1024)
    assert caught.value.code is ErrorCode.MESSAGE_TOO_LARGE

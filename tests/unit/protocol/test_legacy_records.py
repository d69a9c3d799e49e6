"""Message sets of magic 0 and 1, against aiokafka's, and the way up and down."""

import zlib

import pytest
from aiokafka.record.legacy_records import LegacyRecordBatchBuilder
from aiokafka.record.memory_records import MemoryRecords
from hypothesis import given, settings
from hypothesis import strategies as st

from odradek.base.errors import ErrorCode, KafkaError
from odradek.protocol.compression import Codec
from odradek.protocol.legacy_records import build_message_set, down_convert, read_message, read_message_set
from odradek.protocol.record_batch import build_batch
from odradek.protocol.records import Record

NOW = 1_700_000_000_000
LIMIT = 10_000_000
OLD_CODECS = [Codec.NONE, Codec.GZIP, Codec.SNAPPY, Codec.LZ4]
# aiokafka leaves out lz4 in magic 0, whose frames have a wrong checksum.
AIOKAFKAS = [(codec, magic) for codec in OLD_CODECS for magic in (0, 1) if (codec, magic) != (Codec.LZ4, 0)]
RECORDS = [Record(i, NOW + i, b"k%d" % i if i % 2 else None, b"v" * i if i % 5 else None) for i in range(1, 60)]


def timed(records: list[Record], magic: int) -> list[Record]:
    return records if magic else [record._replace(timestamp=-1) for record in records]


def read(data: bytes) -> list[Record]:
    return read_message_set(data, max_message_bytes=LIMIT, max_decompressed=LIMIT).records


def aio_read(data: bytes) -> list[Record]:
    sets, found = MemoryRecords(data), []
    while (batch := sets.next_batch()) is not None:
        assert batch.validate_crc()
        found += [Record(r.offset, -1 if r.timestamp is None else r.timestamp, r.key, r.value) for r in batch]
    return found


@pytest.mark.parametrize(("codec", "magic"), AIOKAFKAS)
def test_we_read_aiokafkas(codec: Codec, magic: int) -> None:
    builder = LegacyRecordBatchBuilder(magic, codec, LIMIT)
    for index, record in enumerate(RECORDS):
        builder.append(index, record.timestamp, record.key, record.value)
    found = read_message_set(bytes(builder.build()), max_message_bytes=LIMIT, max_decompressed=LIMIT)
    assert (found.magic, found.codec, found.log_append_time) == (magic, codec, False)
    assert found.records == [r._replace(offset=i) for i, r in enumerate(timed(RECORDS, magic))]


@pytest.mark.parametrize(("codec", "magic"), AIOKAFKAS)
def test_aiokafka_reads_what_is_converted_down(codec: Codec, magic: int) -> None:
    batch = build_batch(RECORDS, base_offset=1, compression=codec)
    old = down_convert(batch, magic=magic, first_offset=0, max_decompressed=LIMIT)
    assert aio_read(old) == timed(RECORDS, magic)
    assert read(old) == timed(RECORDS, magic)


def test_lz4_of_magic_0_has_its_own_descriptor() -> None:
    old = build_message_set(RECORDS, magic=0, codec=Codec.LZ4)
    # The frame's magic is summed up too, for this format: 0xec in place of 0xad.
    assert read_message(old, 0).value[4:7] == b"\x70\x40\xec"  # type: ignore[index]
    assert read(old) == timed(RECORDS, 0)


def test_going_down_starts_at_the_offset_asked_for_unless_wrapped() -> None:
    for codec, first in ((Codec.NONE, 20), (Codec.GZIP, 1)):
        old = down_convert(
            build_batch(RECORDS, base_offset=1, compression=codec), magic=1, first_offset=20, max_decompressed=LIMIT
        )
        assert read(old)[0].offset == first


def test_going_down_leaves_out_control_batches_and_a_cut_tail() -> None:
    marker = build_batch([Record(0, NOW, b"\x00\x00\x00\x01", b"")], control=True, producer_id=1, producer_epoch=0)
    data = marker + build_batch(RECORDS, base_offset=1) + build_batch(RECORDS, base_offset=60)[:-1]
    assert read(down_convert(data, magic=1, first_offset=0, max_decompressed=LIMIT)) == RECORDS


def test_going_down_keeps_old_messages_and_lowers_those_of_magic_1() -> None:
    old = build_message_set(RECORDS, magic=1, codec=Codec.GZIP)
    assert down_convert(old, magic=1, first_offset=0, max_decompressed=LIMIT) == old
    assert read(down_convert(old, magic=0, first_offset=0, max_decompressed=LIMIT)) == timed(RECORDS, 0)


def test_going_down_keeps_the_log_append_time() -> None:
    old = down_convert(
        build_batch(RECORDS, base_offset=1, compression=Codec.GZIP, log_append_time_ms=NOW),
        magic=1,
        first_offset=0,
        max_decompressed=LIMIT,
    )
    assert {record.timestamp for record in read(old)} == {NOW}
    assert read_message(old, 0).attributes == 8 | Codec.GZIP


def test_zstd_has_no_place_in_the_old_formats() -> None:
    with pytest.raises(KafkaError) as caught:
        down_convert(
            build_batch(RECORDS, base_offset=1, compression=Codec.ZSTD), magic=1, first_offset=0, max_decompressed=LIMIT
        )
    assert caught.value.code is ErrorCode.UNSUPPORTED_COMPRESSION_TYPE


@pytest.mark.parametrize("magic", [0, 1])
def test_batches_before_one_of_zstd_are_converted(magic: int) -> None:
    """As in Apache Kafka: the consumer reads on from there, and is refused then."""
    plain = build_batch(RECORDS, base_offset=1)
    zstd = build_batch([Record(100, 5, b"k", b"v")], base_offset=100, compression=Codec.ZSTD)
    alone, followed = (
        down_convert(log, magic=magic, first_offset=1, max_decompressed=LIMIT) for log in (plain, plain + zstd + plain)
    )
    assert followed == alone != b""


def test_zstd_behind_markers_alone_is_refused() -> None:
    marker = build_batch([Record(1, 5, b"key", b"")], base_offset=1, producer_id=1, producer_epoch=0, control=True)
    zstd = build_batch([Record(2, 5, b"k", b"v")], base_offset=2, compression=Codec.ZSTD)
    with pytest.raises(KafkaError) as caught:
        down_convert(marker + zstd, magic=1, first_offset=1, max_decompressed=LIMIT)
    assert caught.value.code is ErrorCode.UNSUPPORTED_COMPRESSION_TYPE


def test_a_wrapper_with_offset_0_counts_from_0() -> None:
    old = bytearray(build_message_set(RECORDS, magic=1, codec=Codec.GZIP))
    old[:8] = bytes(8)
    assert [record.offset for record in read(bytes(old))] == list(range(59))
    old[:8] = (5).to_bytes(8, "big")
    with pytest.raises(KafkaError, match="less than the last inner"):
        read(bytes(old))


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"", ErrorCode.INVALID_RECORD),
        (build_message_set(RECORDS, magic=0)[:-1], ErrorCode.CORRUPT_MESSAGE),
        (build_message_set(RECORDS, magic=0) + build_message_set(RECORDS, magic=1), ErrorCode.INVALID_RECORD),
        (build_message_set(RECORDS, magic=1, codec=Codec.GZIP) * 2, ErrorCode.INVALID_RECORD),
        (build_message_set([Record(0, 0, None, bytes(LIMIT))], magic=1), ErrorCode.MESSAGE_TOO_LARGE),
    ],
)
def test_sets_that_are_refused(data: bytes, code: ErrorCode) -> None:
    with pytest.raises(KafkaError) as caught:
        read(data)
    assert caught.value.code is code


def test_a_wrapper_in_a_wrapper_is_refused() -> None:
    inner = build_message_set(RECORDS, magic=1, codec=Codec.GZIP)
    value = zlib.compress(inner, wbits=31)
    outer = bytearray(build_message_set([Record(0, NOW, None, value)], magic=1))
    outer[17] = Codec.GZIP
    outer[12:16] = zlib.crc32(outer[16:]).to_bytes(4, "big")
    with pytest.raises(KafkaError, match="must not be compressed"):
        read(bytes(outer))


@pytest.mark.parametrize("magic", [0, 1])
def test_every_flipped_bit_is_found_or_outside_the_checksum(magic: int) -> None:
    message = build_message_set([Record(3, NOW, b"k", b"v")], magic=magic)
    for bit in range(8 * len(message)):
        flipped = bytearray(message)
        flipped[bit // 8] ^= 1 << bit % 8
        try:
            read(bytes(flipped))
        except KafkaError:
            continue
        assert bit // 8 < 8, f"byte {bit // 8} may change unseen"


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=100), st.sampled_from([0, 1]))
def test_any_bytes_end_in_records_or_an_error(data: bytes, magic: int) -> None:
    for text in (data, len(data).to_bytes(12, "big") + zlib.crc32(data).to_bytes(4, "big") + data):
        for call in (read, lambda d: down_convert(d, magic=magic, first_offset=0, max_decompressed=LIMIT)):
            try:
                call(text)
            except KafkaError:
                continue

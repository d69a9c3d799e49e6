"""The batch of magic 2: its bytes, its patches, and other people's readers and writers."""

import pytest
from aiokafka.record.default_records import DefaultRecordBatch as AioBatch
from aiokafka.record.default_records import DefaultRecordBatchBuilder as AioBuilder
from hypothesis import given, settings
from hypothesis import strategies as st
from kafka.record.default_records import DefaultRecordBatch as PyBatch
from kafka.record.default_records import DefaultRecordBatchBuilder as PyBuilder

from odradek.base.errors import ErrorCode, KafkaError
from odradek.protocol.compression import Codec
from odradek.protocol.record_batch import (
    HEADER_SIZE,
    TimestampType,
    assign,
    batches,
    build_batch,
    check_crc,
    payload,
    read_header,
    set_max_timestamp,
)
from odradek.protocol.records import Record, read_records

NOW = 1_700_000_000_000
RECORDS = [
    Record(i, NOW + 7 * i, None if i % 3 else b"key-%d" % i, b"v" * i if i % 5 else None, [("h", b"x"), ("n", None)])
    for i in range(300)
]


def seen(record: object) -> tuple[object, ...]:
    """A record of another library, as ours."""
    return (
        record.offset,  # type: ignore[attr-defined]
        record.timestamp,  # type: ignore[attr-defined]
        record.key,  # type: ignore[attr-defined]
        record.value,  # type: ignore[attr-defined]
        list(record.headers),  # type: ignore[attr-defined]
    )


def test_the_header_lies_where_the_format_says() -> None:
    batch = build_batch(
        [Record(5, 100, b"k", b"v"), Record(6, 90, None, b"")],
        base_offset=5,
        leader_epoch=9,
        producer_id=77,
        producer_epoch=3,
        base_sequence=11,
        transactional=True,
    )
    expected = (
        "0000000000000005" + f"{len(batch) - 12:08x}" + "00000009" + "02" + batch[17:21].hex() + "0010" + "00000001"
        "0000000000000064" + "0000000000000064" + "000000000000004d" + "0003" + "0000000b" + "00000002"
    )
    assert batch[:HEADER_SIZE].hex() == expected
    assert batch[HEADER_SIZE:].hex() == "10" + "00" + "00" + "00" + "026b" + "0276" + "00" + "0c001302010000"
    header = read_header(batch)
    assert (header.size, header.last_offset, header.next_offset, header.last_sequence) == (len(batch), 6, 7, 12)
    assert (header.is_transactional, header.is_control, header.delete_horizon_ms) == (True, False, None)


@pytest.mark.parametrize("codec", list(Codec))
def test_aiokafka_reads_ours(codec: Codec) -> None:
    batch = build_batch(RECORDS, compression=codec, producer_id=4, producer_epoch=1, base_sequence=2)
    theirs = AioBatch(batch)
    assert theirs.validate_crc()
    assert [seen(record) for record in theirs] == [tuple(record) for record in RECORDS]


@pytest.mark.parametrize("codec", list(Codec))
def test_we_read_aiokafkas(codec: Codec) -> None:
    builder = AioBuilder(2, codec, 0, 4, 1, 2, 10_000_000)
    for record in RECORDS:
        builder.append(record.offset, record.timestamp, record.key, record.value, list(record.headers))
    batch = bytes(builder.build())
    ((pos, header),) = batches(batch)
    check_crc(batch, pos, header)
    assert header.compression is codec
    assert (header.producer_id, header.producer_epoch, header.base_sequence, header.record_count) == (4, 1, 2, 300)
    assert list(read_records(batch, pos, header)) == RECORDS


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP])
def test_kafka_python_and_we_read_each_other(codec: Codec) -> None:
    theirs = PyBatch(build_batch(RECORDS, compression=codec))
    assert theirs.validate_crc()
    assert [seen(record) for record in theirs] == [tuple(record) for record in RECORDS]
    builder = PyBuilder(2, codec, False, -1, -1, -1, 10_000_000)
    for record in RECORDS:
        builder.append(record.offset, record.timestamp, record.key, record.value, list(record.headers))
    batch = bytes(builder.build())
    assert list(read_records(batch, 0, read_header(batch))) == RECORDS


def test_a_place_in_the_log_leaves_the_checksum_alone() -> None:
    batch = bytearray(build_batch(RECORDS))
    assign(batch, 0, 2**40, 17)
    header = read_header(batch)
    check_crc(batch, 0, header)
    assert (header.base_offset, header.leader_epoch, header.last_offset) == (2**40, 17, 2**40 + 299)


def test_log_append_time_is_the_time_of_every_record() -> None:
    batch = bytearray(build_batch(RECORDS))
    header = set_max_timestamp(batch, 0, read_header(batch), TimestampType.LOG_APPEND_TIME, NOW + 5)
    assert header == read_header(batch)
    check_crc(batch, 0, header)
    assert header.timestamp_type is TimestampType.LOG_APPEND_TIME
    assert {record.timestamp for record in read_records(batch, 0, header)} == {NOW + 5}


def test_the_same_time_changes_nothing() -> None:
    batch = bytearray(build_batch(RECORDS))
    before = bytes(batch)
    header = read_header(batch)
    assert set_max_timestamp(batch, 0, header, TimestampType.CREATE_TIME, header.max_timestamp) is header
    assert batch == before


def test_sequences_wrap() -> None:
    batch = build_batch(
        [Record(i, 0, None, None) for i in range(3)], producer_id=1, producer_epoch=0, base_sequence=2**31 - 2
    )
    assert read_header(batch).last_sequence == 0


def test_compaction_keeps_the_offsets_of_what_it_drops() -> None:
    batch = build_batch([Record(12, NOW, b"a", b"1")], base_offset=10, last_offset=19, delete_horizon_ms=NOW - 5)
    header = read_header(batch)
    assert (header.base_offset, header.last_offset, header.record_count) == (10, 19, 1)
    assert header.delete_horizon_ms == NOW - 5
    assert list(read_records(batch, 0, header)) == [Record(12, NOW, b"a", b"1")]
    empty = read_header(build_batch([], base_offset=10, last_offset=19, producer_id=1, producer_epoch=0))
    assert (empty.last_offset, empty.record_count, empty.size) == (19, 0, HEADER_SIZE)


def test_batches_follow_each_other() -> None:
    one, two = build_batch(RECORDS[:3]), build_batch(RECORDS[:5], compression=Codec.ZSTD)
    assert [(pos, header.record_count) for pos, header in batches(one + two)] == [(0, 3), (len(one), 5)]


def test_a_cut_batch_is_an_error_or_the_end_of_a_fetch() -> None:
    one, two = build_batch(RECORDS[:2]), build_batch(RECORDS[:3])
    for cut in range(1, len(two)):
        buf = one + two[:cut]
        assert [pos for pos, _ in batches(buf, partial_tail=True)] == [0]
        with pytest.raises(KafkaError) as caught:
            list(batches(buf))
        assert caught.value.code is ErrorCode.CORRUPT_MESSAGE


def test_a_length_beyond_the_buffer_is_never_taken_for_the_whole() -> None:
    batch = build_batch(RECORDS)
    header = read_header(batch)
    for call in (check_crc, payload):
        with pytest.raises(KafkaError):
            call(batch[:-1], 0, header)
    with pytest.raises(KafkaError):
        list(read_records(batch[:-1], 0, header))


def test_an_unknown_codec_has_its_own_error() -> None:
    header = read_header(build_batch(RECORDS))._replace(attributes=7)
    with pytest.raises(KafkaError) as caught:
        _ = header.compression
    assert caught.value.code is ErrorCode.UNSUPPORTED_COMPRESSION_TYPE


def test_every_flipped_bit_is_found_or_outside_the_checksum() -> None:
    batch = build_batch([Record(0, NOW, b"k", b"v"), Record(1, NOW, None, b"w")])
    for bit in range(8 * len(batch)):
        flipped = bytearray(batch)
        flipped[bit // 8] ^= 1 << bit % 8
        try:
            ((pos, header),) = batches(flipped)
            check_crc(flipped, pos, header)
        except KafkaError:
            continue
        assert bit // 8 < 8 or 12 <= bit // 8 < 16, f"byte {bit // 8} may change unseen"


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=200), st.booleans())
def test_any_bytes_are_batches_or_an_error(data: bytes, partial_tail: bool) -> None:
    try:
        for pos, header in batches(data, partial_tail=partial_tail):
            list(read_records(data, pos, header, max_decompressed=10_000))
    except KafkaError:
        pass


records_of_any_kind = st.lists(
    st.tuples(
        st.integers(-1, 2**62),
        st.none() | st.binary(max_size=200),
        st.none() | st.binary(max_size=200),
        st.lists(st.tuples(st.text(max_size=5), st.none() | st.binary(max_size=5)), max_size=3),
    ),
    min_size=1,
    max_size=20,
)


@settings(max_examples=150, deadline=None)
@given(records_of_any_kind, st.sampled_from(list(Codec)), st.integers(0, 2**60))
def test_what_is_built_is_read(fields: list[tuple], codec: Codec, base: int) -> None:  # type: ignore[type-arg]
    records = [Record(base + i, *each) for i, each in enumerate(fields)]
    batch = build_batch(records, base_offset=base, compression=codec)
    assert [r._replace(headers=list(r.headers)) for r in read_records(batch, 0, read_header(batch))] == records

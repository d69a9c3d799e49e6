"""Validation of batches that enter the log, and their form there."""

from contextlib import suppress

import pytest
from aiokafka.record.default_records import DefaultRecordBatchBuilder
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from odradek.base.errors import ErrorCode, KafkaError
from odradek.broker.log.core.config import LogConfig
from odradek.broker.log.core.refused_records import RecordsRefused
from odradek.broker.log.core.validation import (
    BatchRules,
    Origin,
    RecordCheck,
    ValidatedBatches,
    assign_offsets,
    check_produce_records,
    check_records,
)
from odradek.broker.replication.core.append_rules import batch_rules
from odradek.protocol.compression import Codec, compress
from odradek.protocol.legacy_records import build_message_set
from odradek.protocol.record_batch import TimestampType, batches, build_batch, check_crc, pack_batch, read_header
from odradek.protocol.records import Record, read_records

NOW = 1_700_000_000_000
RECORDS = [Record(i, NOW - 50 + i, b"k%d" % i, b"v" * i, [("h", None)] if i % 7 == 0 else ()) for i in range(40)]
DEPTHS = list(RecordCheck)
DEFAULTS = BatchRules()


def validate(data: bytes, rules: BatchRules = DEFAULTS) -> ValidatedBatches:
    return validate_in_place(bytearray(data), rules)


def validate_in_place(buffer: bytearray, rules: BatchRules) -> ValidatedBatches:
    checked = check_records(memoryview(buffer), rules=rules, now_ms=NOW)
    return assign_offsets(checked, next_offset=1000, leader_epoch=6)


def refused(data: bytes, rules: BatchRules = DEFAULTS) -> ErrorCode:
    with pytest.raises(KafkaError) as caught:
        validate(data, rules)
    return caught.value.code


def logged(result: ValidatedBatches) -> list[Record]:
    """The records as a consumer will read them, checksums and infos checked on the way."""
    found: list[Record] = []
    for (pos, header), info in zip(batches(result.data), result.batches, strict=True):
        check_crc(result.data, pos, header)
        assert header.leader_epoch == 6
        assert (info.position, info.size) == (pos, header.size)
        assert (info.base_offset, info.last_offset) == (header.base_offset, header.last_offset)
        assert (info.max_timestamp, info.producer_id) == (header.max_timestamp, header.producer_id)
        assert (info.base_sequence, info.last_sequence) == (header.base_sequence, header.last_sequence)
        assert (info.is_transactional, info.is_control) == (header.is_transactional, header.is_control)
        found += read_records(result.data, pos, header)
    return found


def moved(records: list[Record], by: int = 1000) -> list[Record]:
    return [record._replace(offset=record.offset + by) for record in records]


def altered(data: bytes, **fields: int) -> bytes:
    """The batch with other header fields and a checksum that is right for them."""
    header = read_header(data)
    length = fields.pop("length", None)
    batch = pack_batch(header._replace(**fields), data[61:])
    if length is not None:
        batch[8:12] = length.to_bytes(4, "big", signed=True)
    return bytes(batch)


@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize("codec", list(Codec))
def test_a_batch_is_patched_where_it_lies(codec: Codec, depth: RecordCheck) -> None:
    batch = build_batch(RECORDS, compression=codec, producer_id=9, producer_epoch=2, base_sequence=5)
    buffer = bytearray(batch)
    result = validate_in_place(buffer, BatchRules(verify_records=depth))
    assert result.data.obj is buffer
    assert buffer[16:] == batch[16:]
    assert logged(result) == moved(RECORDS)
    assert (result.batches[0].base_offset, result.batches[-1].last_offset) == (1000, 1039)
    assert (result.max_timestamp, result.log_append_time) == (NOW - 11, -1)


@pytest.mark.parametrize("codec", list(Codec))
def test_aiokafkas_batches_pass_every_check(codec: Codec) -> None:
    builder = DefaultRecordBatchBuilder(2, codec, 0, -1, -1, -1, 10_000_000)
    for record in RECORDS:
        builder.append(record.offset, record.timestamp, record.key, record.value, list(record.headers))
    result = validate(bytes(builder.build()), BatchRules(verify_records=RecordCheck.FIELDS))
    assert [record.value for record in logged(result)] == [record.value for record in RECORDS]


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.LZ4])
def test_log_append_time_is_stamped_in_the_header(codec: Codec) -> None:
    rules = BatchRules(timestamp_type=TimestampType.LOG_APPEND_TIME)
    result = validate(build_batch(RECORDS, compression=codec), rules)
    assert {record.timestamp for record in logged(result)} == {NOW}
    assert (result.max_timestamp, result.log_append_time) == (NOW, NOW)


@pytest.mark.parametrize("source", list(Codec))
@pytest.mark.parametrize("target", list(Codec))
def test_the_topics_own_codec_wins(source: Codec, target: Codec) -> None:
    batch = build_batch(
        RECORDS, compression=source, producer_id=1, producer_epoch=0, base_sequence=3, transactional=True
    )
    result = validate(batch, BatchRules(compression_type=target))
    assert logged(result) == moved(RECORDS)
    header = read_header(result.data)
    assert (header.compression, header.is_transactional, header.base_sequence) == (target, True, 3)


@pytest.mark.parametrize(
    ("codec", "setting", "quick", "hard"),
    [
        (Codec.GZIP, "compression_gzip_level", 1, 9),
        (Codec.LZ4, "compression_lz4_level", 1, 17),
        (Codec.ZSTD, "compression_zstd_level", -100, 19),
    ],
)
def test_the_topics_own_codec_works_as_hard_as_it_is_told(codec: Codec, setting: str, quick: int, hard: int) -> None:
    values = [b"%d is followed by %d" % (number, number * number) for number in range(2000)]
    batch = build_batch([Record(number, NOW, b"key", value) for number, value in enumerate(values)])

    def size(level: int) -> int:
        config = LogConfig(compression_type=codec.name.lower(), **{setting: level})  # type: ignore[arg-type]
        result = validate(batch, batch_rules(config))
        assert [record.value for record in logged(result)] == values
        return len(result.data)

    assert size(hard) < size(getattr(LogConfig(), setting)) <= size(quick)


def test_recompression_may_make_a_batch_too_large() -> None:
    batch = build_batch([Record(0, NOW, b"", bytes(100_000))], compression=Codec.ZSTD)
    rules = BatchRules(max_message_bytes=50_000, compression_type=Codec.NONE)
    assert refused(batch, rules) is ErrorCode.MESSAGE_TOO_LARGE


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP, Codec.SNAPPY, Codec.LZ4])
def test_old_sets_become_one_batch(codec: Codec, magic: int) -> None:
    plain = [record._replace(headers=(), timestamp=record.timestamp if magic else -1) for record in RECORDS]
    result = validate(build_message_set(plain, magic=magic, codec=codec))
    assert logged(result) == moved(plain)
    assert read_header(result.data).compression is codec
    assert result.max_timestamp == (NOW - 11 if magic else -1)


def test_size_and_checksum() -> None:
    batch = build_batch(RECORDS)
    assert refused(batch, BatchRules(max_message_bytes=len(batch) - 1)) is ErrorCode.MESSAGE_TOO_LARGE
    validate(batch, BatchRules(max_message_bytes=len(batch)))
    assert refused(batch[:-1] + b"x") is ErrorCode.CORRUPT_MESSAGE
    assert refused(batch[:-1]) is ErrorCode.CORRUPT_MESSAGE
    assert refused(altered(batch, magic=3)) is ErrorCode.CORRUPT_MESSAGE
    for length in (-1, 0, 48, 2**31 - 1):
        assert refused(altered(batch, length=length)) is ErrorCode.CORRUPT_MESSAGE
    assert refused(b"") is ErrorCode.INVALID_RECORD


@pytest.mark.parametrize(
    "lie",
    [
        {"record_count": 39},
        {"record_count": 0},
        {"record_count": -1},
        {"record_count": 39, "last_offset_delta": 38},
        {"record_count": 41, "last_offset_delta": 40},
        {"record_count": 2**31 - 1, "last_offset_delta": 2**31 - 2},
        {"last_offset_delta": -1},
        {"base_offset": 7},
        {"attributes": 0x20},
        {"producer_id": 5, "base_sequence": -1},
    ],
)
@pytest.mark.parametrize("codec", list(Codec))
def test_headers_that_lie(lie: dict[str, int], codec: Codec) -> None:
    attributes = lie.get("attributes", 0) | codec
    batch = altered(build_batch(RECORDS, compression=codec), **{**lie, "attributes": attributes})
    assert refused(batch) is ErrorCode.INVALID_RECORD


def test_codecs_that_are_not() -> None:
    for depth in DEPTHS:
        rules = BatchRules(verify_records=depth)
        assert refused(altered(build_batch(RECORDS), attributes=5), rules) is ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    assert refused(altered(build_batch(RECORDS), attributes=4)) is ErrorCode.INVALID_RECORD


def test_a_bomb_is_too_large() -> None:
    header = read_header(build_batch(RECORDS, compression=Codec.ZSTD))
    bomb = bytes(pack_batch(header, compress(Codec.ZSTD, bytes(64 * 1024 * 1024))))
    assert refused(bomb) is ErrorCode.MESSAGE_TOO_LARGE


def test_only_the_deepest_look_finds_a_lie_inside_a_record() -> None:
    gap = build_batch([Record(0, NOW, b"", b""), Record(5, NOW, b"", b"")])
    batch = altered(gap, last_offset_delta=1)
    assert refused(batch, BatchRules(verify_records=RecordCheck.FIELDS)) is ErrorCode.INVALID_RECORD
    validate(batch, BatchRules(verify_records=RecordCheck.LENGTHS))


def test_a_largest_timestamp_that_lies_is_put_right_where_it_is_seen() -> None:
    batch = altered(build_batch(RECORDS), max_timestamp=NOW - 10_000)
    result = validate(batch, BatchRules(verify_records=RecordCheck.FIELDS))
    assert result.max_timestamp == NOW - 11
    logged(result)


def test_compacted_topics_want_keys() -> None:
    rules = BatchRules(compacted=True)
    keyless = [*RECORDS, Record(40, NOW, None, b"v")]
    for codec in (Codec.NONE, Codec.SNAPPY):
        validate(build_batch(RECORDS, compression=codec), rules)
        assert refused(build_batch(keyless, compression=codec), rules) is ErrorCode.INVALID_RECORD
    assert refused(build_message_set(keyless, magic=1), rules) is ErrorCode.INVALID_RECORD


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP])
def test_the_records_at_fault_are_named_by_their_places(codec: Codec) -> None:
    keys = [b"a", None, b"b", None]
    keyless = build_batch([Record(i, NOW, key, b"v") for i, key in enumerate(keys)], compression=codec)
    with pytest.raises(RecordsRefused) as without_key:
        validate(keyless, BatchRules(compacted=True))
    assert list(without_key.value.why) == [1, 3]
    times = [NOW, NOW - 1001, -1, NOW + 501]
    late = build_batch([Record(i, time, b"k", b"v") for i, time in enumerate(times)], compression=codec)
    with pytest.raises(RecordsRefused) as out_of_time:
        validate(late, BatchRules(timestamp_before_max_ms=1000, timestamp_after_max_ms=500))
    assert list(out_of_time.value.why) == [1, 3]


@pytest.mark.parametrize("build", [build_batch, lambda records: build_message_set(records, magic=1)])
def test_timestamps_stay_near_the_brokers(build) -> None:  # type: ignore[no-untyped-def]
    rules = BatchRules(timestamp_before_max_ms=1000, timestamp_after_max_ms=500)
    for timestamps, allowed in (
        ([NOW - 1000, NOW + 500], True),
        ([-1, NOW], True),
        ([NOW, NOW - 1001], False),
        ([NOW - 1001, NOW], False),
        ([NOW - 1001], False),
        ([NOW, NOW + 501], False),
        ([-1], True),
    ):
        data = build([Record(i, timestamp, b"", b"") for i, timestamp in enumerate(timestamps)])
        if allowed:
            validate(data, rules)
        else:
            assert refused(data, rules) is ErrorCode.INVALID_TIMESTAMP
    validate(build([Record(0, NOW + 3_600_001, b"", b"")]), DEFAULTS)  # no limit by itself, as in Kafka 3.9


def test_a_timestamp_that_no_number_can_hold_is_refused() -> None:
    rules = BatchRules(verify_records=RecordCheck.FIELDS, timestamp_after_max_ms=2**63 - 1)
    batch = altered(build_batch([Record(0, 0, b"", b""), Record(1, 10, b"", b"")]), base_timestamp=2**63 - 5)
    assert refused(batch, rules) is ErrorCode.INVALID_TIMESTAMP


def test_producers_do_not_stamp_with_log_append_time() -> None:
    stamped = build_batch(RECORDS, log_append_time_ms=NOW)
    rules = BatchRules(timestamp_type=TimestampType.LOG_APPEND_TIME)
    assert refused(stamped, rules) is ErrorCode.INVALID_TIMESTAMP
    assert read_header(validate(stamped).data).timestamp_type is TimestampType.CREATE_TIME


def test_clients_send_one_batch_and_the_broker_itself_may_send_more() -> None:
    marker = build_batch([Record(0, NOW, b"\x00\x00\x00\x01", b"")], control=True, producer_id=3, producer_epoch=0)
    both = build_batch(RECORDS) + marker
    assert refused(both) is ErrorCode.INVALID_RECORD
    result = validate(both, BatchRules(origin=Origin.COORDINATOR, compacted=True, compression_type=Codec.GZIP))
    assert [info.base_offset for info in result.batches] == [1000, 1040]
    assert (result.batches[-1].last_offset, result.max_timestamp) == (1040, NOW)
    assert len(logged(result)) == 41
    assert read_header(result.data, result.batches[1].position).compression is Codec.NONE


def test_produce_versions() -> None:
    new, old = build_batch(RECORDS), build_message_set(RECORDS, magic=1)
    zstd = build_batch(RECORDS, compression=Codec.ZSTD)
    for data, version in ((new, 3), (new, 11), (old, 2), (zstd, 7), (zstd, 2), (b"", 0)):
        check_produce_records(memoryview(data), version)
    for data, version, code in (
        (old, 3, ErrorCode.INVALID_RECORD),
        (new * 2, 3, ErrorCode.INVALID_RECORD),
        (b"", 3, ErrorCode.INVALID_RECORD),
        (zstd, 6, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
        (new[:60], 9, ErrorCode.CORRUPT_MESSAGE),
    ):
        with pytest.raises(KafkaError) as caught:
            check_produce_records(memoryview(data), version)
        assert caught.value.code is code
        with pytest.raises(KafkaError) as as_a_whole:
            check_records(memoryview(data), rules=BatchRules(), now_ms=NOW, api_version=version)
        assert str(as_a_whole.value) == str(caught.value)
    assert check_records(memoryview(new), rules=BatchRules(), now_ms=NOW, api_version=9).batches


def test_every_flipped_bit_is_refused_or_harmless() -> None:
    records = [Record(0, NOW, b"k", b"v"), Record(1, NOW, b"", b"w")]
    batch = build_batch(records)
    for bit in range(8 * len(batch)):
        flipped = bytearray(batch)
        flipped[bit // 8] ^= 1 << bit % 8
        with suppress(KafkaError):
            assert logged(validate(bytes(flipped))) == moved(records), f"bit {bit}"


rules_of_any_kind = st.builds(
    BatchRules,
    max_message_bytes=st.sampled_from([200, 1_048_588]),
    timestamp_type=st.sampled_from(list(TimestampType)),
    timestamp_before_max_ms=st.sampled_from([1000, 2**63 - 1]),
    compression_type=st.sampled_from([None, *Codec]),
    compacted=st.booleans(),
    origin=st.sampled_from(list(Origin)),
    verify_records=st.sampled_from(DEPTHS),
    max_decompressed_bytes=st.just(100_000),
)


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=200), rules_of_any_kind)
def test_any_bytes_get_an_answer(data: bytes, rules: BatchRules) -> None:
    with suppress(KafkaError):
        validate(data, rules)


@settings(max_examples=500, deadline=None)
@given(st.data(), st.sampled_from(list(Codec)), rules_of_any_kind)
def test_damaged_batches_with_a_right_checksum_get_an_answer(
    data: st.DataObject, codec: Codec, rules: BatchRules
) -> None:
    assume(rules.origin is Origin.CLIENT or rules.compression_type is not None)  # else taken as this broker made it
    batch = bytearray(build_batch(RECORDS[:8], compression=codec))
    for _ in range(data.draw(st.integers(1, 3))):
        batch[data.draw(st.integers(16, len(batch) - 1))] = data.draw(st.integers(0, 255))
    with suppress(KafkaError):
        header = read_header(batch)
        # The length and the checksum are made right, so that what follows them is what gets judged.
        result = validate(bytes(pack_batch(header, batch[61:])), rules)
        assert result.batches[0].size == len(result.data)
        assert result.batches[-1].last_offset >= result.batches[0].base_offset == 1000

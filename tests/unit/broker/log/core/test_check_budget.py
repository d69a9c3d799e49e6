"""Cost of checking the records of one request, in steps: whatever is in them, it is paid for.

Time is measured nowhere: a step stands for a bounded number of bytecodes, or of bytes for what is written in C.
"""

import zlib
from collections.abc import Callable
from dataclasses import replace

import cramjam
import pytest

from odradek.base.errors import ErrorCode, KafkaError
from odradek.broker.log.core.check_budget import CHECK_STEPS_MAX, QUICK_CHECK_STEPS_MAX, CheckBudget, TakesLong
from odradek.broker.log.core.validation import BatchRules, check_records
from odradek.protocol.compression import Codec, compress
from odradek.protocol.legacy_records import build_message_set
from odradek.protocol.record_batch import build_batch, pack_batch, read_header
from odradek.protocol.records import Record, encode_record, encode_varint
from opcodes import opcodes_of

NOW = 1_700_000_000_000
MEGABYTE = 1 << 20
OPCODES_PER_STEP_MAX = 12
ANY_SIZE = BatchRules(max_message_bytes=1 << 30)
COMPACTED = replace(ANY_SIZE, compacted=True)
SMALL, LARGER = (encode_record(Record(0, NOW, b"", value), 0, NOW) for value in (b"", b"a"))


def batch_with(payload: bytes, count: int, **fields: int) -> bytes:
    """A batch whose checksum is right, whatever it says."""
    header = read_header(build_batch([Record(0, NOW, None, b"")]))
    return bytes(pack_batch(header._replace(record_count=count, last_offset_delta=count - 1, **fields), payload))


def check(batch: bytes, budget: CheckBudget, rules: BatchRules = ANY_SIZE) -> None:
    check_records(memoryview(bytearray(batch)), rules=rules, now_ms=NOW, budget=budget)


def code_of(call: Callable[[], None]) -> ErrorCode:
    try:
        call()
    except KafkaError as error:
        return error.code
    return ErrorCode.NONE


def padded(value: int) -> bytes:
    """The number in five bytes, as long as one of 32 bits may be."""
    rest = value << 1
    return bytes([rest >> shift & 0x7F | 0x80 for shift in (0, 7, 14, 21)] + [rest >> 28])


def slow_record(offset: int, headers: bytes = b"\x00") -> bytes:
    body = b"\x00" + padded(0) + padded(offset) + padded(0) + padded(0) + headers
    return padded(len(body)) + body


def with_headers(count: int, header: bytes) -> bytes:
    return slow_record(0, encode_varint(count) + header * count)


def tiny_blocks(count: int) -> bytes:
    block = bytes(cramjam.snappy.compress_raw(b"a"))
    return compress(Codec.SNAPPY, b"") + (len(block).to_bytes(4, "big") + block) * count


COUNT = 2000
NUMBERED = b"".join(encode_record(Record(n, NOW, b"", b""), 0, NOW) for n in range(COUNT))
SLOW = b"".join(map(slow_record, range(COUNT)))
WORK = {
    "lengths": (batch_with((SMALL + LARGER) * (COUNT // 2), COUNT), ANY_SIZE),
    "lengths in rows that break": (batch_with((SMALL * 2 + LARGER) * (COUNT // 3), COUNT // 3 * 3), ANY_SIZE),
    "lengths of five bytes": (batch_with(SLOW, COUNT), ANY_SIZE),
    "fields": (batch_with(NUMBERED, COUNT), COMPACTED),
    "fields of five bytes": (batch_with(SLOW, COUNT), COMPACTED),
    "headers": (batch_with(with_headers(COUNT, b"\x00\x00"), 1), COMPACTED),
    "headers of ten bytes": (batch_with(with_headers(COUNT, padded(0) * 2), 1), COMPACTED),
    "records without keys": (build_batch([Record(n, NOW, None, b"") for n in range(COUNT)]), COMPACTED),
    "records from the future": (batch_with(NUMBERED, COUNT, max_timestamp=NOW * 2), ANY_SIZE),
    "old messages": (build_message_set([Record(n, NOW, None, b"") for n in range(COUNT)], magic=1), ANY_SIZE),
    "old messages, compressed": (
        build_message_set([Record(n, NOW, None, b"") for n in range(COUNT)], magic=0, codec=Codec.GZIP),
        ANY_SIZE,
    ),
    "blocks of snappy": (batch_with(tiny_blocks(COUNT), 1, attributes=Codec.SNAPPY), ANY_SIZE),
    "members of gzip": (batch_with(zlib.compress(b"", wbits=31) * 1000, 1, attributes=Codec.GZIP), ANY_SIZE),
}


@pytest.mark.parametrize(("batch", "rules"), WORK.values(), ids=WORK)
def test_a_step_is_a_bounded_amount_of_work(batch: bytes, rules: BatchRules) -> None:
    budget = CheckBudget(is_quick=False)
    opcodes = opcodes_of(lambda: code_of(lambda: check(batch, budget, rules)))
    assert opcodes <= OPCODES_PER_STEP_MAX * (CHECK_STEPS_MAX - budget.left)


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD])
@pytest.mark.parametrize("zeros", [MEGABYTE, 40 * MEGABYTE], ids=["of one megabyte", "of too many"])
def test_what_unfolds_is_paid_for_even_if_it_is_good_for_nothing(codec: Codec, zeros: int) -> None:
    budget = CheckBudget(is_quick=False)
    code = code_of(lambda: check(batch_with(compress(codec, bytes(zeros)), 1, attributes=codec), budget))
    assert code in (ErrorCode.INVALID_RECORD, ErrorCode.MESSAGE_TOO_LARGE)
    assert CHECK_STEPS_MAX - budget.left > min(zeros, ANY_SIZE.max_decompressed_bytes) // 16


def test_garbage_after_much_that_is_right_has_the_price_of_the_most_there_could_be() -> None:
    budget = CheckBudget(is_quick=False)
    code = code_of(
        lambda: check(batch_with(compress(Codec.GZIP, bytes(MEGABYTE))[:-1], 1, attributes=Codec.GZIP), budget)
    )
    assert code is ErrorCode.INVALID_RECORD
    assert CHECK_STEPS_MAX - budget.left > ANY_SIZE.max_decompressed_bytes // 16


def bomb() -> bytes:
    return batch_with(compress(Codec.GZIP, bytes(30 * MEGABYTE)), 1, attributes=Codec.GZIP)


def test_the_batches_of_a_request_share_what_it_may_cost() -> None:
    budget = CheckBudget(is_quick=False)
    codes = [code_of(lambda: check(bomb(), budget)) for _ in range(10)]
    first_unpaid = codes.index(ErrorCode.REQUEST_TIMED_OUT)
    assert 1 < first_unpaid < 5
    assert set(codes[:first_unpaid]) == {ErrorCode.INVALID_RECORD}
    assert set(codes[first_unpaid:]) == {ErrorCode.REQUEST_TIMED_OUT}
    small = build_batch([Record(0, NOW, None, b"")])
    assert code_of(lambda: check(small, budget)) is ErrorCode.REQUEST_TIMED_OUT
    assert code_of(lambda: check(small, CheckBudget(is_quick=False))) is ErrorCode.NONE, "sent again, it is taken"


def test_a_batch_that_is_too_much_alone_is_refused_for_good() -> None:
    """Producers split such a batch; sent again as it is, it would be refused for ever."""
    count = CHECK_STEPS_MAX // 30 + 1
    batch = batch_with(bytes(7 * count), count)
    assert code_of(lambda: check(batch, CheckBudget(is_quick=False), COMPACTED)) is ErrorCode.MESSAGE_TOO_LARGE


@pytest.mark.parametrize(
    "batch",
    [
        bomb(),
        batch_with((SMALL + LARGER) * QUICK_CHECK_STEPS_MAX, 2 * QUICK_CHECK_STEPS_MAX),
        build_message_set([Record(n, NOW, None, b"") for n in range(COUNT)], magic=1),
    ],
    ids=["a bomb", "many records", "old messages"],
)
def test_a_thread_that_has_others_to_serve_stops_soon(batch: bytes) -> None:
    budget = CheckBudget(is_quick=True)

    def put_off() -> None:
        with pytest.raises(TakesLong):
            check(batch, budget)

    assert opcodes_of(put_off) < OPCODES_PER_STEP_MAX * QUICK_CHECK_STEPS_MAX


def test_an_ordinary_batch_is_quick() -> None:
    """A megabyte of records of a hundred bytes, compressed."""
    value = b"%06d an order of something or other, with some words around it, and a price at its end"
    records = [Record(n, NOW, b"key", value % n) for n in range(10_000)]
    for codec in (Codec.NONE, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD):
        check(build_batch(records, compression=codec), CheckBudget(is_quick=True))

"""Single records: varints at their edges, control keys, and records that don't fit."""

import pytest
from aiokafka.record.util import decode_varint
from aiokafka.record.util import encode_varint as aio_encode_varint
from hypothesis import given
from hypothesis import strategies as st

from odradek.base.errors import ErrorCode, KafkaError
from odradek.protocol.record_batch import build_batch, pack_batch, read_header
from odradek.protocol.record_walk import read_varint
from odradek.protocol.records import ControlType, Record, control_key, encode_varint, read_control_type, read_records


@given(st.integers(-(2**63), 2**63 - 1))
def test_varints_are_everybodys(value: int) -> None:
    theirs = bytearray()
    aio_encode_varint(value, theirs.append)
    assert encode_varint(value) == theirs
    assert read_varint(bytes(theirs), 0) == (value, len(theirs)) == tuple(decode_varint(theirs, 0))


def test_a_varint_ends() -> None:
    with pytest.raises(KafkaError):
        read_varint(b"\xff" * 20, 0)


def test_control_keys() -> None:
    assert control_key(ControlType.COMMIT) == b"\x00\x00\x00\x01"
    assert read_control_type(b"\x00\x00\x00\x00") is ControlType.ABORT
    assert read_control_type(b"\x00\x01\x00\x63") is None
    for bad in (None, b"", b"\x00\x00\x00", b"\xff\xff\x00\x00"):
        with pytest.raises(KafkaError):
            read_control_type(bad)


@pytest.mark.parametrize(
    "body",
    [
        "0e00000002610261",  # one byte short
        "0a00000002610261",  # ends before its fields do
        "10000000026102610200",  # a header that isn't there
        "0c000000ff7f0100",  # a key that is longer than the record
        "10000000026102610000",  # a byte too many inside
        "0e0000000261026100ff",  # a byte too many after
        "01",  # a negative length
        "ffffffffffffffffffffff01",  # a length without end
        "",
    ],
)
def test_records_that_do_not_fit_are_refused(body: str) -> None:
    header = read_header(build_batch([Record(0, 0, b"a", b"a")]))
    batch = pack_batch(header, bytes.fromhex(body))
    with pytest.raises(KafkaError) as caught:
        list(read_records(batch, 0, read_header(batch)))
    assert caught.value.code is ErrorCode.INVALID_RECORD


def test_a_header_name_that_is_no_text_is_still_read() -> None:
    header = read_header(build_batch([Record(0, 0, None, None)]))
    batch = pack_batch(header, bytes.fromhex("1200000001010202ff01"))
    assert list(read_records(batch, 0, read_header(batch))) == [Record(0, 0, None, None, [("\ufffd", None)])]

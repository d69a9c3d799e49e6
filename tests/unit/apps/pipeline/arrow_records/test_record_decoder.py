"""The compiled decoders, in C and by numba, beside the plain one of the protocol, on any records; and on bytes that are
none."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odradek.apps.pipeline.arrow_records import record_columns, record_decoder
from odradek.apps.pipeline.arrow_records.record_columns import MalformedRecords, decode_records
from odradek.apps.pipeline.segment_source.segment_file import stored_batches
from odradek.native.load import compiled
from odradek.protocol.compression import Codec
from odradek.protocol.record_batch import HEADER_SIZE, build_batch, payload, read_header
from odradek.protocol.records import Record, plain_payload

HEADERS = pa.list_(pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())]))
pytestmark = pytest.mark.timeout(600)  # the compiler takes its time on a busy machine
maybe_bytes = st.one_of(st.none(), st.binary(max_size=200))
headers = st.lists(st.tuples(st.text(max_size=5), maybe_bytes), max_size=3)


@pytest.fixture(scope="module", autouse=True, params=["C", "numba"])
def decoder(request: pytest.FixtureRequest) -> Any:
    chosen: Any = compiled if request.param == "C" else record_decoder
    if not hasattr(chosen, "find_records"):
        pytest.skip("the compiled inner loop is not built, or from before it had these functions")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(record_columns, "record_decoder", lambda: chosen)
        yield chosen


@st.composite
def records(draw: st.DrawFn) -> list[Record]:
    offset, found = draw(st.integers(0, 2**40)), []
    for _ in range(draw(st.integers(1, 20))):
        time_ms = draw(st.integers(0, 2**42))
        found.append(Record(offset, time_ms, draw(maybe_bytes), draw(maybe_bytes), draw(headers)))
        offset += draw(st.integers(1, 300))
    return found


@settings(max_examples=40)
@given(st.lists(records(), min_size=1, max_size=4), st.sampled_from(Codec))
def test_columns_are_the_records(batches: list[list[Record]], codec: Codec) -> None:
    stored = [build_batch(batch, base_offset=batch[0].offset, compression=codec) for batch in batches]
    chunk = [
        (read_header(batch), plain_payload(batch, 0, read_header(batch), max_decompressed=2**20)) for batch in stored
    ]

    columns = decode_records(chunk, HEADERS)

    expected = [record for batch in batches for record in batch]
    assert columns.headers is not None
    assert columns.offset.to_pylist() == [record.offset for record in expected]
    assert columns.timestamp.cast(pa.int64()).to_pylist() == [record.timestamp * 1000 for record in expected]
    assert columns.key.to_pylist() == [record.key for record in expected]
    assert columns.value.to_pylist() == [record.value for record in expected]
    found = [row and [(header["key"], header["value"]) for header in row] for row in columns.headers.to_pylist()]
    assert found == [list(record.headers) or None for record in expected]


@settings(max_examples=60)
@given(records(), st.data())
def test_bytes_that_are_no_records_are_refused_or_read_but_never_crash(
    batch: list[Record], data: st.DataObject
) -> None:
    stored = build_batch(batch, base_offset=batch[0].offset)
    header, body = read_header(stored), bytearray(payload(stored, 0, read_header(stored)))
    for _ in range(data.draw(st.integers(1, 4))):
        body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))
    cut = bytes(body[: data.draw(st.integers(0, len(body)))])
    try:
        columns = decode_records([(header, cut)], HEADERS)
    except (MalformedRecords, pa.ArrowInvalid):
        return
    assert len(columns.offset) == header.record_count


def test_a_file_batch_by_batch(tmp_path: Path) -> None:
    first = build_batch([Record(0, 1, b"k", b"v")])
    second = bytearray(build_batch([Record(1, 1, b"k", b"v")], base_offset=1))
    second[-1] ^= 1
    torn = build_batch([Record(2, 1, b"k", b"v")], base_offset=2)[:-3]
    path = tmp_path / f"{0:020}.log"
    path.write_bytes(first + second + torn)

    found = [(batch.position, batch.header.base_offset, batch.problem) for batch in stored_batches(path)]

    assert [position for position, _, _ in found] == [0, len(first), len(first) + len(second)]
    assert [offset for _, offset, _ in found] == [0, 1, 2]
    assert found[0][2] is None
    assert "corrupt" in (found[1][2] or "")
    assert f"{len(torn)} are left" in (found[2][2] or "")
    path.write_bytes(first + bytes(HEADER_SIZE * 3))  # space that was reserved
    assert len(list(stored_batches(path))) == 1
    assert list(stored_batches(tmp_path / "gone.log")) == []


@pytest.mark.parametrize("size", [0, 5, HEADER_SIZE - 1])
def test_less_than_a_header_is_nothing_yet(tmp_path: Path, size: int) -> None:
    path = tmp_path / f"{0:020}.log"
    path.write_bytes(b"\1" * size)
    assert list(stored_batches(path)) == []


def test_arrays_that_are_too_short_are_refused_by_the_compiled_functions() -> None:
    if not hasattr(compiled, "find_records"):
        pytest.skip("the compiled inner loop is not built, or from before it had these functions")
    chosen: Any = compiled
    stored = build_batch([Record(0, 1, b"key", b"value", [("h", b"1")]), Record(1, 1, b"key", b"value")])
    data = np.frombuffer(payload(stored, 0, read_header(stored)), np.uint8)
    one, two, short = np.array([len(data)]), np.zeros(2, np.int64), np.zeros(1, np.int64)
    arguments = [data, one, np.array([2]), short, short, np.array([-1])]
    assert chosen.find_records(*arguments, *[two.copy() for _ in range(8)]) == -1
    assert chosen.find_records(*arguments, *[short.copy() for _ in range(8)]) == 0
    assert chosen.find_records(*arguments, *[two.copy() for _ in range(7)], short.copy()) == 0
    assert chosen.find_records(data, np.array([len(data) + 1]), *arguments[2:], *[two.copy() for _ in range(8)]) == 0
    assert not chosen.find_headers(data, np.array([0]), np.array([1]), *[np.zeros(0, np.int64) for _ in range(4)])
    out, offsets = np.empty(4, np.uint8), np.empty(2, np.int32)
    assert chosen.gather_pieces(data, np.array([1]), np.array([4]), out, offsets)
    assert bytes(out) == bytes(data[1:5])
    for at, size in ((-1, 4), (len(data) - 3, 4), (0, 5)):
        assert not chosen.gather_pieces(data, np.array([at]), np.array([size]), out, offsets)
    assert not chosen.gather_pieces(data, np.array([0]), np.array([4]), out, offsets[:1])

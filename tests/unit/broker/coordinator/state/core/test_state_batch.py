"""Batches of group state are what the general builder makes of the same records."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.broker.coordinator.state.core.state_batch import state_batch
from odradek.protocol.compression import Codec
from odradek.protocol.record_batch import build_batch, check_crc, read_header
from odradek.protocol.records import Record, read_records

RECORDS = st.lists(st.tuples(st.binary(max_size=200), st.none() | st.binary(max_size=300)), min_size=1, max_size=200)


@given(RECORDS)
def test_the_same_bytes(records: list[tuple[bytes, bytes | None]]) -> None:
    made = [Record(index, 1_700_000_000_000, key, value) for index, (key, value) in enumerate(records)]
    assert state_batch(records, 1_700_000_000_000, Codec.NONE) == build_batch(made)


@pytest.mark.parametrize("codec", list(Codec))
def test_compressed(codec: Codec) -> None:
    records: list[tuple[bytes, bytes | None]] = [(b"key %d" % number, b"value" * 20) for number in range(10)]
    batch = bytes(state_batch(records, 5, codec))
    header = read_header(batch)
    check_crc(batch, 0, header)
    assert header.compression is codec
    assert [(record.key, record.value) for record in read_records(batch, 0, header)] == records

"""Rows of a segment file, with batches in it that can't be read: the query fails, or goes on without them."""

from pathlib import Path

import pytest

from odradek.apps.pipeline.segment_source import schema
from odradek.apps.pipeline.segment_source.segment_rows import RecordRows, Segment, SegmentsPartition, log_options
from odradek.apps.pipeline.source.errors import OptionError, ReadFailed
from odradek.model.topology import TopicPartition
from odradek.protocol.compression import Codec
from odradek.protocol.record_batch import build_batch, pack_batch, payload, read_header
from odradek.protocol.records import Record

pytestmark = pytest.mark.timeout(600)  # the compiler takes its time on a busy machine


def batch(offset: int) -> bytes:
    return build_batch([Record(offset, 1, b"k", b"v")], base_offset=offset)


def one_record_too_few(offset: int) -> bytes:
    whole = batch(offset)
    return bytes(pack_batch(read_header(whole)._replace(record_count=2), payload(whole, 0, read_header(whole))))


def not_compressed_at_all(offset: int) -> bytes:
    return bytes(pack_batch(read_header(batch(offset))._replace(attributes=Codec.ZSTD), b"no zstd frame"))


def flipped(offset: int) -> bytes:
    return batch(offset)[:-1] + b"\7"


@pytest.mark.parametrize("broken", [one_record_too_few, not_compressed_at_all, flipped])
def test_broken_batches_fail_the_query_or_are_left_out(tmp_path: Path, broken: object) -> None:
    path = tmp_path / f"{0:020}.log"
    assert callable(broken)
    path.write_bytes(batch(0) + broken(1) + batch(2))
    task = SegmentsPartition((Segment(0, TopicPartition("t", 0), str(path)),))

    def offsets(mode: str) -> list[int]:
        reader = RecordRows(log_options({"path": str(tmp_path), "mode": mode}), schema.records(with_headers=False))
        return [offset for rows in reader.read(task) for offset in rows.column("offset").to_pylist()]

    assert offsets("DROPMALFORMED") == [0, 2]
    with pytest.raises(ReadFailed, match=r"0\.log: .*DROPMALFORMED"):
        offsets("FAILFAST")


@pytest.mark.parametrize("options", [{}, {"path": "x", "rows": "files"}, {"path": "x", "mode": "PERMISSIVE"}])
def test_options_that_make_no_sense(options: dict[str, str]) -> None:
    with pytest.raises(OptionError):
        log_options(options)

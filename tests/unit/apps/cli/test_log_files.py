"""Files that dump-log reads, whole and broken. They are made byte by byte here, as Kafka's formats say."""

from pathlib import Path
from struct import pack

import pytest
from crc32c import crc32c

from odradek.apps.cli.log_files import DumpOptions, FileEntry, Problem, reader_for
from odradek.base.errors import FatalError
from odradek.protocol.compression import Codec
from odradek.protocol.record_batch import build_batch
from odradek.protocol.records import Record
from odradek.protocol.transaction_markers import EndTransactionMarker, build_marker


def batch(first: int, count: int, compression: Codec = Codec.NONE) -> bytes:
    records = [Record(first + n, 1000 + n, b"k", b"value %d" % n, [("h", b"x")]) for n in range(count)]
    return build_batch(
        records, base_offset=first, compression=compression, producer_id=7, producer_epoch=0, base_sequence=first
    )


def dump(path: Path, **options: bool) -> tuple[list[FileEntry], list[Problem]]:
    items = list(reader_for(path)(path, DumpOptions(**options)))
    return [item for item in items if isinstance(item, FileEntry)], [
        item for item in items if isinstance(item, Problem)
    ]


@pytest.fixture
def segment(tmp_path: Path) -> Path:
    path = tmp_path / "00000000000000000010.log"
    path.write_bytes(batch(10, 3) + batch(13, 1, Codec.LZ4) + batch(14, 2, Codec.ZSTD))
    return path


def test_batches_with_the_fields_of_kafka_dump_log(segment: Path) -> None:
    entries, problems = dump(segment)
    assert not problems
    assert [(e.fields["baseOffset"], e.fields["lastOffset"], e.fields["compresscodec"]) for e in entries] == [
        (10, 12, "none"),
        (13, 13, "lz4"),
        (14, 15, "zstd"),
    ]
    assert entries[0].fields["lastSequence"] == 12
    assert entries[0].fields["CreateTime"] == 1002
    assert entries[1].fields["position"] == entries[0].fields["size"]
    assert all(entry.fields["isvalid"] and not entry.records for entry in entries)


def test_records_and_their_data_only_when_asked(segment: Path) -> None:
    entries, _ = dump(segment, with_records=True)
    assert "payload" not in entries[2].records[1]
    entries, _ = dump(segment, with_records=True, with_data=True)
    assert entries[2].records[1]["payload"] == b"value 1"
    assert entries[2].records[1]["sequence"] == 15


def test_a_flipped_bit_is_found_at_its_batch_and_the_rest_is_still_read(segment: Path) -> None:
    data = bytearray(segment.read_bytes())
    second = len(batch(10, 3))
    data[second + 70] ^= 1
    segment.write_bytes(data)
    entries, problems = dump(segment, with_records=True)
    assert [entry.fields["isvalid"] for entry in entries] == [True, False, True]
    assert [problem.position for problem in problems] == [second]
    assert "computed crc" in problems[0].what


def test_every_cut_of_the_last_batch_is_found(segment: Path) -> None:
    data = segment.read_bytes()
    last = len(data) - len(batch(14, 2, Codec.ZSTD))
    for end in range(last + 1, len(data)):
        segment.write_bytes(data[:end])
        entries, problems = dump(segment)
        assert len(entries) == 2
        assert [problem.position for problem in problems] == [last]


def test_offsets_that_go_back_are_told(tmp_path: Path) -> None:
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(batch(5, 2) + batch(3, 1))
    _, problems = dump(path)
    assert problems == [Problem(len(batch(5, 2)), "a batch begins at offset 3, 7 or higher was due")]


@pytest.mark.parametrize("length", [-1, 0, 20, 2**31 - 1])
def test_a_lying_length_ends_the_dump(tmp_path: Path, length: int) -> None:
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(batch(0, 1) + pack(">qi", 1, length) + bytes(4) + b"\x02" + bytes(80))
    entries, problems = dump(path)
    assert len(entries) == 1
    assert problems[0].position == len(batch(0, 1))


def test_old_messages_are_listed(tmp_path: Path) -> None:
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(pack(">qi", 0, 14) + bytes(4) + b"\x00" + bytes(9))
    entries, problems = dump(path)
    assert entries[0].fields == {"offset": 0, "position": 0, "size": 26, "magic": 0}
    assert not problems


def test_an_index_is_held_against_its_log(segment: Path) -> None:
    index = segment.with_suffix(".index")
    second = len(batch(10, 3))
    index.write_bytes(pack(">ii", 3, second) + bytes(80))
    entries, problems = dump(index)
    assert [entry.fields for entry in entries] == [{"offset": 13, "position": second}]
    assert not problems
    index.write_bytes(pack(">ii", 4, second) + pack(">ii", 5, 10**6) + b"abc")
    _, problems = dump(index)
    assert [problem.position for problem in problems] == [0, 8, 16]


def test_a_time_index_rises(tmp_path: Path) -> None:
    index = tmp_path / "00000000000000000100.timeindex"
    index.write_bytes(pack(">qi", 5000, 3) + pack(">qi", 4000, 9) + bytes(24))
    entries, problems = dump(index)
    assert [entry.fields for entry in entries] == [
        {"timestamp": 5000, "offset": 103},
        {"timestamp": 4000, "offset": 109},
    ]
    assert [problem.position for problem in problems] == [12]


def producer_snapshot(count: int) -> bytes:
    content = pack(">i", count) + pack(">qhiqiqiq", 7, 1, 41, 100, 9, 1234, -1, -1)
    return pack(">hI", 1, crc32c(content)) + content


def test_a_producer_snapshot(tmp_path: Path) -> None:
    path = tmp_path / "00000000000000000101.snapshot"
    path.write_bytes(producer_snapshot(1))
    entries, problems = dump(path)
    assert not problems
    assert entries[0].fields["producerId"] == 7
    assert (entries[0].fields["firstSequence"], entries[0].fields["lastSequence"]) == (32, 41)
    assert entries[0].fields["currentTxnFirstOffset"] is None


@pytest.mark.parametrize(
    "content",
    [b"", b"\0\1", b"\0\2" + bytes(60), producer_snapshot(2), producer_snapshot(1)[:-1] + b"\1"],
    ids=["empty", "short", "version", "count", "crc"],
)
def test_a_broken_producer_snapshot(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "00000000000000000101.snapshot"
    path.write_bytes(content)
    assert dump(path)[1]


def test_the_epoch_checkpoint(tmp_path: Path) -> None:
    path = tmp_path / "leader-epoch-checkpoint"
    path.write_text("0\n2\n0 0\n3 512\n")
    entries, problems = dump(path)
    assert [entry.fields for entry in entries] == [{"epoch": 0, "startOffset": 0}, {"epoch": 3, "startOffset": 512}]
    assert not problems


@pytest.mark.parametrize("text", ["", "9\n0\n", "0\n2\n0 0\n", "0\n1\nzero 0\n"])
def test_a_broken_epoch_checkpoint(tmp_path: Path, text: str) -> None:
    path = tmp_path / "leader-epoch-checkpoint"
    path.write_text(text)
    assert dump(path)[1]


def test_other_files_are_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(FatalError, match=r"it reads \.log, \.index"):
        reader_for(tmp_path / "partition.metadata")


def test_a_marker_is_shown_as_kafka_dump_log_shows_it(tmp_path: Path) -> None:
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(build_marker(EndTransactionMarker(7, 3, 9, is_committed=False), 1000))
    (entry,), problems = dump(path, with_records=True)
    assert not problems
    assert (entry.fields["isTransactional"], entry.fields["isControl"]) == (True, True)
    (record,) = entry.records
    assert (record["endTxnMarker"], record["coordinatorEpoch"]) == ("ABORT", 9)

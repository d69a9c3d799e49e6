"""Segment files read as a read_committed consumer reads the topic: without open and aborted transactions."""

from pathlib import Path

import pyarrow as pa
import pytest

from odradek.apps.pipeline.segment_source import schema
from odradek.apps.pipeline.segment_source.segment_rows import RecordRows, SegmentsPartition, log_options
from odradek.apps.pipeline.source.errors import OptionError
from odradek.broker.log.core.config import LogConfig
from odradek.broker.log.core.validation import BatchRules, Origin
from odradek.broker.log.core.verification import VERIFICATION_OFF
from odradek.broker.log.files.partition_log import PartitionLog
from odradek.model.topology import TopicPartition
from odradek.protocol.record_batch import build_batch
from odradek.protocol.records import Record
from odradek.protocol.transaction_markers import EndTransactionMarker

TP = TopicPartition("payments", 0)
NOW_MS = 1_700_000_000_000
COORDINATOR = BatchRules(origin=Origin.COORDINATOR)


class Directory:
    def __init__(self, path: Path) -> None:
        (path / "meta.properties").write_text("version=0\nbroker.id=4\n")
        self.path = path
        self.log = PartitionLog.open(path / "payments-0", TP, LogConfig(segment_bytes=300, index_interval_bytes=50))
        self.sequences: dict[int, int] = {}

    def put(self, value: str, producer_id: int = -1) -> None:
        fields: dict[str, int] = {}
        if producer_id >= 0:
            sequence = self.sequences.get(producer_id, 0)
            self.sequences[producer_id] = sequence + 1
            fields = {"producer_id": producer_id, "producer_epoch": 0, "base_sequence": sequence}
        data = build_batch([Record(0, NOW_MS, None, value.encode())], transactional=producer_id >= 0, **fields)
        self.log.append_as_leader(
            memoryview(bytearray(data)), leader_epoch=0, rules=BatchRules(), guard=VERIFICATION_OFF
        )

    def end(self, producer_id: int, *, committed: bool) -> None:
        marker = EndTransactionMarker(producer_id, 0, 0, committed)
        self.log.append_markers([marker], leader_epoch=0, rules=COORDINATOR)

    def values(self, isolation: str = "read_committed") -> list[str]:
        options = log_options({"path": str(self.path), "isolationLevel": isolation})
        reader = RecordRows(options, schema.records(with_headers=False))
        rows: list[tuple[int, str]] = []
        for task in reader.partitions():
            assert isinstance(task, SegmentsPartition)
            for batch in reader.read(task):
                assert isinstance(batch, pa.RecordBatch)
                table = batch.to_pydict()
                rows += [
                    (offset, value.decode()) for offset, value in zip(table["offset"], table["value"], strict=True)
                ]
        return [value for _, value in sorted(rows)]


@pytest.fixture
def directory(tmp_path: Path) -> Directory:
    return Directory(tmp_path)


@pytest.mark.parametrize("is_closed", [False, True])
def test_aborted_transactions_are_left_out_across_segments(directory: Directory, is_closed: bool) -> None:
    for number in range(10):
        directory.put(f"aborted {number}", producer_id=1)
        directory.put(f"committed {number}", producer_id=2)
        directory.put(f"plain {number}")
    directory.end(1, committed=False)
    directory.end(2, committed=True)
    directory.put("last", producer_id=1)
    directory.end(1, committed=True)
    if is_closed:
        directory.log.close()
    assert len(directory.log.segments) > 5
    expected = [f"{kind} {number}" for number in range(10) for kind in ("committed", "plain")]
    assert directory.values() == [*expected, "last"]
    assert len(directory.values("read_uncommitted")) == 31


@pytest.mark.parametrize("is_closed", [False, True])
def test_nothing_behind_an_open_transaction_is_read(directory: Directory, is_closed: bool) -> None:
    for number in range(10):
        directory.put(f"before {number}")
    directory.put("open", producer_id=1)
    for number in range(10):
        directory.put(f"behind {number}")
    if is_closed:
        directory.log.close()
    assert directory.values() == [f"before {number}" for number in range(10)]


def test_the_checkpointed_high_watermark_bounds_what_is_committed(directory: Directory) -> None:
    for number in range(4):
        directory.put(str(number))
    (directory.path / "replication-offset-checkpoint").write_text("0\n1\npayments 0 2\n")
    assert directory.values() == ["0", "1"]


def test_other_levels_are_refused(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="read_committed"):
        log_options({"path": str(tmp_path), "isolationLevel": "serializable"})
    with pytest.raises(OptionError, match="batches"):
        log_options({"path": str(tmp_path), "isolationLevel": "read_committed", "rows": "batches"})

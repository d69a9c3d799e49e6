"""A table of 100,000 batches opens in at most twice the time of one of 100."""

import os
import time
from pathlib import Path

import polars
import pytest
from deltalake import DeltaTable
from rows_as_frame import RowsAsFrame, RowsWriter, ids, output_of, write

from odradek.apps.pipeline.tables.commit_log import commits, snapshot
from odradek.apps.pipeline.tables.maintenance import is_due, maintain

BATCHES = int(os.environ.get("ODRADEK_TABLE_BATCHES", "100000"))


class LinkedFrame(RowsAsFrame):
    """A batch whose one file is a link to a file that is there already."""

    def __init__(self, file: Path) -> None:
        super().__init__([], {"id": "long"})
        self.file = file

    @property
    def write(self) -> RowsWriter:
        return LinkingWriter(self, file=self.file)


class LinkingWriter(RowsWriter):
    def __init__(self, frame: RowsAsFrame, file: Path) -> None:
        super().__init__(frame)
        self.file = file

    def parquet(self, path: str) -> None:
        os.mkdir(path)
        os.link(self.file, f"{path}/part-00000.parquet")


def aged(table: Path, batches: int) -> None:
    output = output_of(table)
    write(output, 0, ids(1, 2, 3))
    frame = LinkedFrame(next(table.rglob("part-*.parquet")))
    for number in range(1, batches):
        write(output, number, frame)
        (output.checkpoint / "offsets" / str(number - 1)).unlink()
        if number % 10 == 0 and is_due(table):
            maintain(table)


def opened_s(table: Path) -> float:
    def once() -> float:
        begun = time.perf_counter()
        DeltaTable(table).file_uris()
        return time.perf_counter() - begun

    return min(once() for _ in range(20))


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_a_table_of_many_batches_opens_as_fast_as_a_young_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(os, "fsync", lambda handle: None)
    aged(tmp_path / "young", 100)
    aged(tmp_path / "old", BATCHES)
    young_s, old_s = opened_s(tmp_path / "young"), opened_s(tmp_path / "old")
    files, versions = len(snapshot(tmp_path / "old").files), len(list(commits(tmp_path / "old")))
    with capsys.disabled():
        print(f"\nopen: {young_s * 1000:.1f} ms at 100 batches, {old_s * 1000:.1f} ms at {BATCHES:,}", end="; ")  # noqa: T201
        print(f"{files} files, {versions} commits in the log")  # noqa: T201
    assert polars.scan_delta(str(tmp_path / "old")).select(polars.len()).collect().item() == 3 * BATCHES
    assert files < 300
    assert old_s <= 2 * young_s

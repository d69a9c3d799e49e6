"""Batches in a Delta table, each once, judged by delta-rs, DuckDB and Polars."""

import errno
import os
from pathlib import Path

import polars
import pyarrow as pa
import pytest
from deltalake import DeltaTable
from rows_as_frame import RowsAsFrame, ids, judged, output_of, write

from odradek.apps.pipeline.tables import commit_log
from odradek.apps.pipeline.tables.commit_log import commits
from odradek.apps.pipeline.tables.delta_output import DeltaTableOutput
from odradek.base.errors import FatalError


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return tmp_path / "table"


def test_batches_are_there_once_and_can_be_travelled_to(table: Path) -> None:
    output = output_of(table)
    write(output, 0, ids(1, 2))
    write(output, 1, ids())
    write(output, 2, ids(3))
    write(output, 2, ids(3))  # Spark gives it again
    write(output_of(table), 2, ids(3))  # and after a restart
    assert judged(table) == [1, 2, 3]
    assert sorted(commits(table)) == [0, 1], "an empty batch is no version"
    assert judged(table, version=0) == [1, 2]
    assert DeltaTable(table).transaction_version("p/s/g1") == 2


def test_rows_of_the_driver_are_there_once_beside_those_of_tasks(table: Path) -> None:
    output = output_of(table)
    for number, wanted in enumerate([[1, 2], [], [3]]):
        write(output, number, CollectedIds(wanted))
    write(output, 2, CollectedIds([3]))
    write(output, 3, ids(4))
    write(output_of(table), 3, CollectedIds([4]))
    assert judged(table) == [1, 2, 3, 4]
    assert sorted(commits(table)) == [0, 1, 2]
    assert len(list(table.glob("batch-*"))) == 3, "a batch without rows leaves no directory"
    assert not output_of(table, partition_by=("id",)).takes_collected


class CollectedIds(RowsAsFrame):
    """Rows that the driver has collected."""

    def __init__(self, numbers: list[int]) -> None:
        super().__init__([{"id": number} for number in numbers], {"id": "long"})

    def given_to(self, output: DeltaTableOutput, number: int) -> None:
        rows = pa.table({"id": pa.array([row["id"] for row in self.rows], pa.int64())})
        output.write_collected(rows, self.schema, number)


def test_a_batch_of_other_records_is_refused(table: Path) -> None:
    output = output_of(table)
    for number in range(3):
        write(output, number, ids(number))
    with pytest.raises(FatalError, match="the checkpoint was removed and the table was not"):
        write(output_of(table), 2, ids(9), end=99)
    with pytest.raises(FatalError, match="the checkpoint was removed and the table was not"):
        write(output_of(table), 0, ids(0))


def test_columns_grow_and_keep_their_types(table: Path) -> None:
    output = output_of(table)
    write(output, 0, ids(1))
    write(output, 1, ids(2, kinds={"name": "string"}, name="b"))
    write(output, 2, ids(3))
    assert judged(table) == [1, 2, 3]
    rows = DeltaTable(table).to_pyarrow_table(columns=["id", "name"]).sort_by("id").to_pylist()
    assert [row["name"] for row in rows] == [None, "b", None]
    with pytest.raises(FatalError, match=r"name is string in the table .*, and would be double now"):
        write(output, 3, ids(4, kinds={"name": "double"}, name=1.0))
    with pytest.raises(FatalError, match="can't have a column named 'a b'"):
        write(output, 3, ids(4, kinds={"a b": "double"}, **{"a b": 1.0}))


def test_partitions_with_difficult_names(table: Path) -> None:
    output = output_of(table, partition_by=("kind",))
    write(output, 0, ids(1, kinds={"kind": "string"}, kind="a b/%=ü"))
    write(output, 1, ids(2, kinds={"kind": "string"}, kind="plain"))
    assert judged(table) == [1, 2]
    found = polars.scan_delta(str(table)).filter(polars.col("kind") == "a b/%=ü").collect()
    assert found["id"].to_list() == [1]
    assert sorted(DeltaTable(table).to_pyarrow_table()["kind"].to_pylist()) == ["a b/%=ü", "plain"]


def test_a_second_process_that_was_first_is_found_out(table: Path) -> None:
    output, other = output_of(table), output_of(table)
    for each in (output, other):
        each._opened = None
    write(output, 0, ids(1))
    write(other, 1, ids(2))
    with pytest.raises(FatalError, match="another process writes the table"):
        write(output, 1, ids(2))
    write(output, 1, ids(2))  # which opens the table again, and finds the batch there
    write(output, 2, ids(3))
    with pytest.raises(FatalError, match="another process writes the table"):
        write(other, 2, ids(3))
    assert judged(table) == [1, 2, 3]


def test_a_full_disk_leaves_nothing_half_visible(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    output = output_of(table)
    write(output, 0, ids(1))

    def is_full(handle: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(commit_log.os, "fsync", is_full)
        with pytest.raises(FatalError, match=r"no space left for the table .*: batch 1 is not in it"):
            write(output, 1, ids(2))
    assert judged(table) == [1]
    assert len(list(table.glob("batch-*"))) == 1, "the files of the failed attempt are gone"
    write(output, 1, ids(2))
    assert judged(table) == [1, 2]


def test_it_travels_to_a_spark_connect_server(table: Path) -> None:
    import pickle

    output = output_of(table)
    write(output, 0, ids(1))
    elsewhere: DeltaTableOutput = pickle.loads(pickle.dumps(output))
    write(elsewhere, 1, ids(2))
    assert judged(table) == [1, 2]

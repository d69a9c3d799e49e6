"""A batch that comes again is left alone, one that only has its number is not taken for it; columns keep their type."""

import json
import os
from pathlib import Path
from typing import Any, ClassVar, cast

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from odradek.apps.pipeline.table_output import MANIFEST, TableOutput, batch_name, check_columns
from odradek.base.errors import FatalError

NO_BATCH = cast(Any, None)  # whoever looks at it fails


@pytest.fixture
def output(tmp_path: Path) -> TableOutput:
    """Commit of a table that has batch 0, up to offset 5."""
    batch = tmp_path / "table" / batch_name(1, 0)
    batch.mkdir(parents=True)
    manifest = {"rows": 5, "start": [], "end": [{"t": {"0": 5}}], "columns": {"id": "string"}}
    (batch / MANIFEST).write_text(json.dumps(manifest))
    (tmp_path / "checkpoint" / "offsets").mkdir(parents=True)
    return TableOutput(tmp_path / "table", (), 1, tmp_path / "checkpoint")


class Rows:
    """Two rows, as much of a DataFrame as a table needs."""

    dtypes: ClassVar = [("id", "bigint")]

    @property
    def write(self) -> "Rows":
        return self

    def parquet(self, path: str) -> None:
        Path(path).mkdir(parents=True)
        pq.write_table(pa.table({"id": [1, 2]}), Path(path) / "part-0.parquet")


def spark_plans(output: TableOutput, end: int) -> None:
    (output.checkpoint / "offsets" / "0").write_text(f'v1\n{{}}\n{{"t":{{"0":{end}}}}}')


def test_a_batch_that_comes_again_is_left_alone(output: TableOutput) -> None:
    spark_plans(output, end=5)
    output(NO_BATCH, 0)


def test_a_table_whose_checkpoint_was_removed_is_told(output: TableOutput) -> None:
    spark_plans(output, end=7)
    with pytest.raises(FatalError, match="the checkpoint was removed and the table was not"):
        output(NO_BATCH, 0)


def test_files_are_durable_before_their_batch_is_in_the_table(
    output: TableOutput, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise a power failure leaves a batch with empty files, and a checkpoint that has it."""
    (output.checkpoint / "offsets" / "1").write_text('v1\n{}\n{"t":{"0":9}}')
    synced: list[Path] = []
    fsync = os.fsync

    def noted(handle: int) -> None:
        synced.append(Path(os.readlink(f"/proc/self/fd/{handle}")))
        fsync(handle)

    monkeypatch.setattr(os, "fsync", noted)
    output(cast(Any, Rows()), 1)
    batch = batch_name(1, 1)
    assert (output.table / batch / "part-0.parquet").exists()
    assert output.table.parent / ".table.staging" / batch / "part-0.parquet" in synced


def test_a_column_keeps_its_type(output: TableOutput) -> None:
    check_columns(output.table, "s", {"id": "string", "new": "int"})
    with pytest.raises(FatalError, match=r"\[sinks.s\]: id is string in the table .*, and would be int now"):
        check_columns(output.table, "s", {"id": "int"})

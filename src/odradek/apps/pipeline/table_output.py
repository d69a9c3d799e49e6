"""A Parquet table that has every batch exactly once.

    TABLE/batch=g1-000000012/part-….parquet     batch 12 of generation 1, whole
    TABLE/batch=g1-000000012/_odradek.json      which records of which topics it was made of, and its columns
    TABLE/_odradek.json                         whose table this is

A batch is written beside the table, made durable, and moved into it by one rename. So every reader sees whole batches
only; and a batch that Spark gives a second time, after a crash between the rename and its own commit, is skipped.
"""

import json
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from odradek.apps.pipeline.checkpoint import batch_offsets, make_directory, sync_directory, write_durably
from odradek.apps.pipeline.tables.batch_files import MANIFEST, found_files, make_durable
from odradek.base.errors import FatalError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True, slots=True)
class TableOutput:
    """Writer that Spark calls with each batch of the query whose checkpoint is given."""

    table: Path
    partition_by: tuple[str, ...]
    generation: int
    checkpoint: Path

    def __call__(self, batch: "DataFrame", number: int) -> None:
        target = self.table / batch_name(self.generation, number)
        end = batch_offsets(self.checkpoint, number)
        if target.exists():
            _check_same(target, end)
            return
        staging = self._staging() / target.name
        shutil.rmtree(staging, ignore_errors=True)
        writer = batch.write.partitionBy(*self.partition_by) if self.partition_by else batch.write
        writer.parquet(str(staging))
        files = found_files(staging.parent, staging.name)
        rows = sum(file.rows for file in files)
        if rows:
            start = batch_offsets(self.checkpoint, number - 1)
            manifest = {"rows": rows, "start": start, "end": end, "columns": columns_of(batch)}
            write_durably(staging / MANIFEST, manifest)
            make_durable(staging.parent, staging.name, files)
            staging.rename(target)
            sync_directory(self.table)
        else:
            shutil.rmtree(staging)

    def _staging(self) -> Path:
        return self.table.parent / f".{self.table.name}.staging"


@dataclass(frozen=True, slots=True)
class WrittenBatch:
    path: Path
    generation: int
    number: int
    rows: int
    start: list[Any]
    end: list[Any]
    columns: Mapping[str, str] = field(default_factory=dict)


def batch_name(generation: int, number: int) -> str:
    return f"batch=g{generation}-{number:09d}"


def written_batches(table: Path) -> Iterator[WrittenBatch]:
    """Written batches, in the order of their writing."""
    for path in sorted(table.glob("batch=g*-*"), key=_generation_and_number):
        manifest = json.loads((path / MANIFEST).read_text())
        yield WrittenBatch(path, *_generation_and_number(path), **manifest)


def claim_table(table: Path, pipeline: str, sink: str) -> None:
    """Claim the directory for this sink; FatalError if it belongs to another one, or has other files."""
    owner = {"pipeline": pipeline, "sink": sink}
    manifest = table / MANIFEST
    make_directory(table)
    if manifest.exists():
        kept = json.loads(manifest.read_text())
        if kept != owner:
            raise FatalError(
                f"{table} is the table of [sinks.{kept['sink']}] of pipeline {kept['pipeline']!r}: choose another"
            )
        return
    if any(table.iterdir()):
        raise FatalError(f"{table} is not empty, and no table of this pipeline: choose another directory")
    write_durably(manifest, owner)


def check_columns(table: Path, sink: str, columns: Mapping[str, str]) -> None:
    """Raise FatalError if the table has one of the columns with another type: both could not be read as one table."""
    for batch in written_batches(table):
        for name, kind in columns.items():
            before = batch.columns.get(name, kind)
            if before != kind:
                raise FatalError(
                    f"[sinks.{sink}]: {name} is {before} in the table {table}, and would be {kind} now: "
                    f"cast it, give it another name, or choose another table"
                )


def columns_of(frame: "DataFrame") -> dict[str, str]:
    return dict(frame.dtypes)


def _check_same(batch: Path, end: list[Any]) -> None:
    """Raise FatalError if the table's batch has this number and other records: the checkpoint was removed, the table
    was not."""
    if json.loads((batch / MANIFEST).read_text())["end"] != end:
        raise FatalError(
            f"{batch} was made of other records than the batch that has its number now: the checkpoint was removed and "
            "the table was not. Remove the table too, or choose another"
        )


def _generation_and_number(path: Path) -> tuple[int, int]:
    generation, _, number = path.name.removeprefix("batch=g").partition("-")
    return int(generation), int(number)

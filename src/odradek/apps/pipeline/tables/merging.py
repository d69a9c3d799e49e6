"""Merging of batches: the files of neighbours become one file, or one per partition, with the table's columns."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

from odradek.apps.pipeline.tables.batch_files import (
    Manifest,
    found_files,
    make_durable,
    read_manifest,
    remove_directory,
    write_manifest,
)
from odradek.apps.pipeline.tables.commit_log import open_delta
from odradek.apps.pipeline.tables.core.actions import DataFile
from odradek.apps.pipeline.tables.core.batch_ranges import BatchRange, merged

if TYPE_CHECKING:
    import pyarrow as pa

_ROWS_AT_ONCE = 65_536


def merge_batches(
    table: Path, group: Sequence[BatchRange], files: Sequence[DataFile], columns: "pa.Schema"
) -> list[DataFile]:
    """Write the group's files anew, in a directory of its own that no commit knows yet; return the new files."""
    target = merged(list(group), uuid4().hex[:8]).directory
    try:
        by_partition: dict[str, list[DataFile]] = {}
        for file in files:
            by_partition.setdefault("/".join(file.path.split("/")[1:-1]), []).append(file)
        for partition, members in by_partition.items():
            _write(table, table / target / partition, members, columns)
        written = found_files(table, target)
        manifests = [read_manifest(table, batches.directory) for batches in group]
        whole = Manifest(
            rows=sum(manifest.rows for manifest in manifests),
            start=manifests[0].start,
            end=manifests[-1].end,
            columns={name: kind for manifest in manifests for name, kind in manifest.columns.items()},
        )
        write_manifest(table, target, whole)
        make_durable(table, target, written)
    except BaseException:
        remove_directory(table, target)
        raise
    return written


def file_columns(table: Path, partition_by: Sequence[str]) -> "pa.Schema":
    """Columns of the table's files: all except the partition columns, which are in the paths."""
    import pyarrow as pa

    whole = pa.schema(open_delta(table).schema().to_arrow())
    return pa.schema([column for column in whole if column.name not in partition_by])


def _write(table: Path, directory: Path, members: Sequence[DataFile], columns: "pa.Schema") -> None:
    import pyarrow.parquet as pq

    directory.mkdir(parents=True, exist_ok=True)
    with pq.ParquetWriter(directory / f"part-{uuid4().hex}.parquet", columns, compression="zstd") as writer:
        for member in members:
            for rows in _batches(table / member.path, columns):
                writer.write_batch(rows)


def _batches(file: Path, columns: "pa.Schema") -> "Iterator[pa.RecordBatch]":
    """Rows of a file with the table's columns; missing columns are null."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    with pq.ParquetFile(file, coerce_int96_timestamp_unit="us") as parquet:
        for batch in parquet.iter_batches(_ROWS_AT_ONCE):
            present = {name.lower(): batch.column(name) for name in batch.schema.names}
            arrays = [
                _as_type(present[column.name.lower()], column.type)
                if column.name.lower() in present
                else pa.nulls(batch.num_rows, column.type)
                for column in columns
            ]
            yield pa.RecordBatch.from_arrays(arrays, schema=columns)


def _as_type(values: "pa.Array", kind: "pa.DataType") -> "pa.Array":
    import pyarrow as pa

    if pa.types.is_timestamp(kind) and kind.tz and not values.type.tz:  # INT96 has instants, and says no zone
        values = values.cast(pa.timestamp(values.type.unit)).cast(pa.timestamp(values.type.unit, tz="UTC"))
    return values.cast(kind) if values.type != kind else values

"""`odradek pipeline migrate`: tables of earlier releases, a directory of Parquet files per batch, become Delta tables.

The batches are merged into new files with Delta's types (Spark wrote timestamps as INT96), and one commit makes the
Delta table of them. Until that commit the table is what it was; the old directories are removed later, as those of
merged batches are.
"""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

from odradek.apps.pipeline.checkpoint import write_durably
from odradek.apps.pipeline.table_output import WrittenBatch, written_batches
from odradek.apps.pipeline.tables.batch_files import MANIFEST, found_files, retire
from odradek.apps.pipeline.tables.commit_log import commit, is_delta, now_ms
from odradek.apps.pipeline.tables.core.actions import (
    DataFile,
    SchemaFields,
    add,
    commit_info,
    grown,
    metadata,
    protocol,
    table_fields,
    transaction,
)
from odradek.apps.pipeline.tables.core.batch_ranges import BatchRange, parse_directory
from odradek.apps.pipeline.tables.core.compaction import LARGE_BYTES
from odradek.apps.pipeline.tables.merging import merge_batches
from odradek.base.errors import FatalError

_SPARK_SCHEMA = b"org.apache.spark.sql.parquet.row.metadata"
_DELTA_NAMES = {"int": "integer", "bigint": "long", "smallint": "short", "tinyint": "byte"}


def is_of_directories(table: Path) -> bool:
    """Return whether it is a table of an earlier release."""
    try:
        owner = json.loads((table / MANIFEST).read_text())
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return False
    return owner.get("format") is None and not is_delta(table)


def migrate_table(table: Path, pipeline: str, sink: str, partition_by: tuple[str, ...]) -> tuple[int, int]:
    """Convert the table to a Delta table; return the numbers of batches and files. The pipeline must not be running."""
    import pyarrow as pa
    from deltalake import Schema

    owner = {"pipeline": pipeline, "sink": sink, "format": "delta"}
    old = list(written_batches(table))
    if not old:
        write_durably(table / MANIFEST, owner)
        return 0, 0
    fields: SchemaFields = []
    for batch in old:
        fields = grown(fields, _fields_of(batch, partition_by, sink), sink, str(table))
    whole = pa.schema(Schema.from_json(json.dumps({"type": "struct", "fields": fields})).to_arrow())
    columns = pa.schema([column for column in whole if column.name not in partition_by])
    files: list[DataFile] = []
    for group, members in _groups(table, old):
        files += merge_batches(table, group, members, columns)
    now, newest = now_ms(), old[-1]
    actions = [
        commit_info("CONVERT", now, odradek={"generation": newest.generation, "number": newest.number}),
        protocol(fields),
        metadata(str(uuid4()), fields, partition_by, now),
        transaction(f"{pipeline}/{sink}/g{newest.generation}", newest.number, now),
        *(add(file, is_new_data=True) for file in files),
    ]
    version = commit(table, -1, actions)
    write_durably(table / MANIFEST, owner)
    retire(table, [batch.path.name for batch in old], version, now)
    return len(old), len(files)


def _groups(table: Path, old: Sequence[WrittenBatch]) -> Iterator[tuple[list[BatchRange], list[DataFile]]]:
    """Group neighbours of one generation up to a large file; the newest batch stays alone, because it is compared if it
    is repeated."""
    group: list[BatchRange] = []
    members: list[DataFile] = []
    for batch in old:
        batches, files = parse_directory(batch.path.name), found_files(table, batch.path.name)
        if batches is None:
            raise FatalError(f"{batch.path} is not a batch of this table")
        size = sum(file.size for file in (*members, *files))
        if group and (batch is old[-1] or batches.generation != group[-1].generation or size > LARGE_BYTES):
            yield group, members
            group, members = [], []
        group, members = [*group, batches], [*members, *files]
    yield group, members


def _fields_of(batch: WrittenBatch, partition_by: tuple[str, ...], sink: str) -> SchemaFields:
    """Columns of a batch: of its files as Spark noted them, of its paths as the manifest has them."""
    import pyarrow.parquet as pq

    file = next(batch.path.rglob("*.parquet"))
    noted: dict[str, Any] = json.loads((pq.read_metadata(file).metadata or {}).get(_SPARK_SCHEMA, b'{"fields": []}'))
    named = [
        {"name": name, "type": _DELTA_NAMES.get(batch.columns[name], batch.columns[name]), "nullable": True}
        for name in partition_by
        if name in batch.columns
    ]
    return table_fields({"fields": [*noted["fields"], *named]}, sink)

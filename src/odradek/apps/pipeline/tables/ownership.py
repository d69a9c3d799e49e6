"""Owner of a table, checked before a run writes to it; and the batches that a replay takes back."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from odradek.apps.pipeline.checkpoint import make_directory, write_durably
from odradek.apps.pipeline.tables.batch_files import MANIFEST, Manifest, read_manifest, retire
from odradek.apps.pipeline.tables.commit_log import commit, is_delta, now_ms, open_delta, snapshot
from odradek.apps.pipeline.tables.core.actions import commit_info, grown, remove, table_fields
from odradek.apps.pipeline.tables.core.batch_ranges import BatchRange, parse_directory
from odradek.base.errors import FatalError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True, slots=True)
class TableBatches:
    """A directory of the table with its batches."""

    batches: BatchRange
    manifest: Manifest


def claim_delta(table: Path, pipeline: str, sink: str, writer: str) -> None:
    """Claim the directory for this sink; FatalError if it belongs to another one, or has other files."""
    owner = {"pipeline": pipeline, "sink": sink, "format": "delta"}
    make_directory(table)
    note = table / MANIFEST
    if note.exists():
        kept = json.loads(note.read_text())
        if (kept["pipeline"], kept["sink"]) != (pipeline, sink):
            raise FatalError(
                f"{table} is the table of [sinks.{kept['sink']}] of pipeline {kept['pipeline']!r}: choose another"
            )
        if kept.get("format") != "delta" and any(parse_directory(path.name) for path in table.iterdir()):
            raise FatalError(
                f"{table} is a table of an earlier release, a directory of Parquet files for each batch: make it a "
                'Delta table with: odradek pipeline migrate; or keep it with format = "parquet"'
            )
    elif any(table.iterdir()) and not (is_delta(table) and open_delta(table).transaction_version(writer) is not None):
        raise FatalError(f"{table} is not empty, and no table of this pipeline: choose another directory")
    write_durably(note, owner)


def check_table_columns(table: Path, sink: str, frame: "DataFrame", partition_by: tuple[str, ...]) -> None:
    """FatalError if Delta can't have the columns, or the table has one with another type or another partitioning."""
    fields = table_fields(frame.schema.jsonValue(), sink)
    now = snapshot(table)
    grown(list(now.fields), fields, sink, str(table))
    if now.version >= 0 and now.partition_by != partition_by:
        columns = ", ".join(now.partition_by) or "nothing"
        raise FatalError(f"[sinks.{sink}]: the table {table} is partitioned by {columns}: choose another table")


def table_batches(table: Path) -> list[TableBatches]:
    """Batches that the table has now, oldest first; neighbours that were merged are one entry."""
    names = dict.fromkeys(file.directory for file in snapshot(table).files)
    found = [batches for name in names if (batches := parse_directory(name))]
    return [TableBatches(batches, read_manifest(table, batches.directory)) for batches in sorted(found)]


def take_back(table: Path, batches: Iterable[BatchRange]) -> None:
    """Remove the batches from the table by one commit. Earlier versions still have them."""
    names = {each.directory for each in batches}
    if not names:
        return
    now, at = snapshot(table), now_ms()
    removed = [remove(file, at, is_data_lost=True) for file in now.files if file.directory in names]
    version = commit(table, now.version, [commit_info("DELETE", at), *removed])
    retire(table, names, version, at)

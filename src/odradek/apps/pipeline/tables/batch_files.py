"""Files of a batch in a table: found, counted, made durable, described; retired when no version needs them.

TABLE/batch-g1-000000012.4f1c09ab/part-….parquet     a file, or below a directory per partition column
TABLE/batch-g1-000000012.4f1c09ab/_odradek.json      which records of which topics it was made of, and its columns
TABLE/batch-g1-000000012.4f1c09ab/_retired.json      since which version, and when, the table does without it
TABLE/_odradek.json                         whose table this is
"""

import json
import os
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from odradek.apps.pipeline.checkpoint import sync_directory, write_durably
from odradek.apps.pipeline.tables.core.actions import DataFile
from odradek.apps.pipeline.tables.core.batch_ranges import BatchRange, parse_directory
from odradek.base.errors import FatalError

MANIFEST = "_odradek.json"
RETIRED = "_retired.json"


@dataclass(frozen=True, slots=True)
class Manifest:
    """The records that batches were made of: the offsets of each source before the first and after the last."""

    rows: int
    start: list[Any]
    end: list[Any]
    columns: Mapping[str, str] = field(default_factory=dict)


def found_files(table: Path, directory: str) -> list[DataFile]:
    """Data files of one directory, in a stable order."""
    import pyarrow.parquet as pq

    found: list[DataFile] = []
    for file in sorted((table / directory).rglob("*.parquet")):
        about = file.stat()
        rows = int(pq.read_metadata(file).num_rows)
        found.append(DataFile(str(file.relative_to(table)), about.st_size, rows, about.st_mtime_ns // 1_000_000))
    return found


def make_durable(table: Path, directory: str, files: Iterable[DataFile]) -> None:
    """Sync files and directories: neither Spark nor pyarrow does."""
    directories = {table, table / directory}
    for file in files:
        path = table / file.path
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
        directories |= {parent for parent in path.parents if parent.is_relative_to(table / directory)}
    for parent in directories:
        sync_directory(parent)


def write_manifest(table: Path, directory: str, manifest: Manifest) -> None:
    content = {"rows": manifest.rows, "start": manifest.start, "end": manifest.end, "columns": dict(manifest.columns)}
    write_durably(table / directory / MANIFEST, content)


def read_manifest(table: Path, directory: str) -> Manifest:
    try:
        return Manifest(**json.loads((table / directory / MANIFEST).read_text()))
    except FileNotFoundError:
        raise FatalError(f"{table / directory} has no {MANIFEST}: it was changed by hand") from None


def retire(table: Path, directories: Iterable[str], version: int, at_ms: int) -> None:
    """Note that versions from `version` on don't use the directories; `clear_retired` removes them later."""
    for directory in directories:
        if (table / directory).is_dir():
            write_durably(table / directory / RETIRED, {"version": version, "at_ms": at_ms})


def retired_since(table: Path, directory: str) -> tuple[int, int] | None:
    """Return the version and the time at which the directory was retired; None if it was not."""
    try:
        note = json.loads((table / directory / RETIRED).read_text())
    except FileNotFoundError:
        return None
    return int(note["version"]), int(note["at_ms"])


def batch_directories(table: Path) -> dict[str, BatchRange]:
    """Directories of batches, also those that are no longer in the table."""
    with os.scandir(table) as entries:
        named = {entry.name: parse_directory(entry.name) for entry in entries if entry.is_dir()}
    return {name: batches for name, batches in named.items() if batches is not None}


def remove_directory(table: Path, directory: str) -> None:
    shutil.rmtree(table / directory, ignore_errors=True)

"""Log of a Delta table: opened by delta-rs, committed to by a file that must not exist yet.

    TABLE/_delta_log/00000000000000000012.json      the actions of version 12

A commit is written beside the log, made durable, and linked to its name, which fails if another process was first. So
a reader sees a commit whole or not at all. delta-rs commits too, but takes 0.3 s for it at a thousand versions; a link
takes a millisecond (decision 0030).
"""

import os
import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from odradek.apps.pipeline.checkpoint import make_directory, sync_directory
from odradek.apps.pipeline.tables.core.actions import Action, DataFile, SchemaFields, as_lines, from_lines
from odradek.apps.pipeline.tables.core.conflicts import check_follows
from odradek.base.errors import FatalError

if TYPE_CHECKING:
    from deltalake import DeltaTable

LOG = "_delta_log"
_COMMIT = re.compile(r"(\d{20})\.json")
_KNOWN_FEATURES = frozenset({"appendOnly", "invariants", "timestampNtz"})
_COMMIT_ATTEMPTS_MAX = 1000


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A table at one version. A table without a commit is at version -1."""

    version: int = -1
    table_id: str = ""
    created_ms: int = 0
    fields: Sequence[dict[str, Any]] = ()
    partition_by: tuple[str, ...] = ()
    files: tuple[DataFile, ...] = ()


def is_delta(table: Path) -> bool:
    return next(commits(table), None) is not None


def open_delta(table: Path, version: int | None = None) -> "DeltaTable":
    """Open the table. FatalError if it doesn't exist, or that version was removed."""
    try:
        from deltalake import DeltaTable
        from deltalake.exceptions import DeltaError, TableNotFoundError
    except ImportError:
        raise FatalError("Delta tables need the package deltalake: pip install 'odradek[spark]'") from None
    try:
        return DeltaTable(table, version=version)
    except TableNotFoundError:
        raise FatalError(f"there is no table in {table} yet") from None
    except (DeltaError, ValueError) as error:
        what = f" at version {version}" if version is not None else ""
        raise FatalError(f"the table {table} can't be opened{what}: {error}") from None


def snapshot(table: Path) -> Snapshot:
    if not is_delta(table):
        return Snapshot()
    opened = open_delta(table)
    _check_protocol(table, opened)
    metadata = opened.metadata()
    return Snapshot(
        version=opened.version(),
        table_id=str(metadata.id),
        created_ms=metadata.created_time or 0,
        fields=schema_fields(opened),
        partition_by=tuple(metadata.partition_columns),
        files=data_files(opened),
    )


def schema_fields(opened: "DeltaTable") -> SchemaFields:
    import json

    fields: SchemaFields = json.loads(opened.schema().to_json())["fields"]
    return fields


def data_files(opened: "DeltaTable") -> tuple[DataFile, ...]:
    import pyarrow as pa

    adds = pa.table(opened.get_add_actions(flatten=True))
    names = ("path", "size_bytes", "num_records", "modification_time")
    rows = zip(*(adds[name].to_pylist() for name in names), strict=True)
    return tuple(DataFile(unquote(path), size, count or 0, _milliseconds(at)) for path, size, count, at in rows)


def commits(table: Path) -> Iterator[int]:
    """Versions whose commits the log still has, in no order."""
    try:
        names = os.listdir(table / LOG)
    except (FileNotFoundError, NotADirectoryError):
        return
    for name in names:
        if found := _COMMIT.fullmatch(name):
            yield int(found[1])


def read_commit(table: Path, version: int) -> list[Action]:
    return from_lines(commit_path(table, version).read_text())


def commit_path(table: Path, version: int) -> Path:
    return table / LOG / f"{version:020d}.json"


def commit(table: Path, after: int, actions: Sequence[Action]) -> int:
    """Append the actions as one version, the first one free after `after`; return it.

    AlreadyCommitted or TableChanged if it conflicts with a commit made meanwhile.
    """
    make_directory(table / LOG)
    staged = table / LOG / f".odradek.{os.getpid()}.{time.monotonic_ns()}.tmp"
    version = after + 1
    try:
        with staged.open("w") as file:
            file.write(as_lines(actions))
            file.flush()
            os.fsync(file.fileno())
        for version in range(after + 1, after + 1 + _COMMIT_ATTEMPTS_MAX):
            try:
                os.link(staged, commit_path(table, version))
            except FileExistsError:
                check_follows(actions, read_commit(table, version))
            else:
                sync_directory(table / LOG)
                return version
    finally:
        staged.unlink(missing_ok=True)
    raise FatalError(f"no commit to {table}: other processes were first {_COMMIT_ATTEMPTS_MAX} times")


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def _check_protocol(table: Path, opened: "DeltaTable") -> None:
    protocol = opened.protocol()
    features = {*(protocol.reader_features or []), *(protocol.writer_features or [])}
    if protocol.min_writer_version > 2 and not (protocol.min_writer_version == 7 and features <= _KNOWN_FEATURES):
        raise FatalError(
            f"the table {table} needs writer version {protocol.min_writer_version} of Delta"
            f" ({', '.join(sorted(features - _KNOWN_FEATURES)) or 'no features'}), which is not written here: use "
            "Delta's own package for Spark"
        )


def _milliseconds(at: Any) -> int:
    return at if isinstance(at, int) else int(at.timestamp() * 1000)

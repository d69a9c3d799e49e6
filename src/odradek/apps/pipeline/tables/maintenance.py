"""Maintenance of a Delta table while batches come in: small files merged, the log kept short, old files removed.

A run does it every fifty commits; `odradek pipeline optimize` does it at once and merges all files. One process at a
time, by a lock. Each step is atomic: after a crash the next maintenance removes the remaining files.
"""

import fcntl
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from odradek.apps.pipeline.tables.batch_files import batch_directories, remove_directory, retire, retired_since
from odradek.apps.pipeline.tables.commit_log import (
    LOG,
    Snapshot,
    commit,
    commit_path,
    commits,
    is_delta,
    now_ms,
    open_delta,
    snapshot,
)
from odradek.apps.pipeline.tables.core.actions import add, commit_info, remove
from odradek.apps.pipeline.tables.core.batch_ranges import BatchRange, parse_directory
from odradek.apps.pipeline.tables.core.compaction import StoredBatches, groups_to_merge
from odradek.apps.pipeline.tables.core.conflicts import TableChanged
from odradek.apps.pipeline.tables.merging import file_columns, merge_batches
from odradek.base.errors import FatalError

HISTORY = 1000
COMMITS_BETWEEN = 50
# A reader that opened the table before its files were merged has this long to read them.
_READER_MS = 3_600_000
_LOCK = "_odradek.lock"
_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint(\..+)?\.parquet")


@dataclass(frozen=True, slots=True)
class Maintained:
    """Outcome of one maintenance."""

    files_before: int = 0
    files_after: int = 0
    versions_removed: int = 0
    directories_removed: int = 0


def maintain(table: Path, history: int = HISTORY, *, everything: bool = False) -> Maintained:
    """Merge, write a checkpoint, and remove files that none of the last `history` versions needs. FatalError if another
    process does it."""
    if not is_delta(table):
        return Maintained()
    with _only_one(table):
        before = snapshot(table)
        merge_small_files(table, before, everything=everything)
        open_delta(table).create_checkpoint()
        kept = shorten_log(table, history)
        done = Maintained(len(before.files), len(snapshot(table).files), kept.versions_removed)
        return replace(done, directories_removed=clear_retired(table, kept.oldest_version))


def is_due(table: Path) -> bool:
    """Return whether fifty commits were made since the last checkpoint."""
    return max(commits(table), default=-1) - max(_checkpoints(table), default=-1) >= COMMITS_BETWEEN


def merge_small_files(table: Path, now: Snapshot, *, everything: bool) -> None:
    stored: dict[BatchRange, StoredBatches] = {}
    for file in now.files:
        batches = parse_directory(file.directory)
        if batches is None:
            continue  # a file that another writer added stays as it is
        entry = stored.setdefault(batches, StoredBatches(batches, 0))
        stored[batches] = replace(entry, size=entry.size + file.size)
    partitions = len({tuple(file.partition_values.items()) for file in now.files})
    groups = groups_to_merge(list(stored.values()), partitions, everything=everything)
    columns = file_columns(table, now.partition_by) if groups else None
    for group in groups:
        names = {batches.directory for batches in group}
        members = [file for file in now.files if file.directory in names]
        members.sort(key=lambda file: (parse_directory(file.directory) or group[0], file.path))
        written = merge_batches(table, group, members, columns)
        at = now_ms()
        actions = [commit_info("OPTIMIZE", at, isBlindAppend=False)]
        actions += [remove(file, at, is_data_lost=False) for file in members]
        actions += [add(file, is_new_data=False) for file in written]
        try:
            version = commit(table, now.version, actions)
        except TableChanged as error:
            raise FatalError(f"the files of {table} were not merged: {error}") from None
        retire(table, names, version, at)


@dataclass(frozen=True, slots=True)
class _LogKept:
    oldest_version: int
    versions_removed: int


def shorten_log(table: Path, history: int) -> _LogKept:
    """Remove commits that only versions before the last `history` need: those before a checkpoint that is old enough.

    delta-rs lists the log whenever it opens a table: 8 ms at a thousand commits, 460 ms at a hundred thousand.
    """
    known, checkpoints = sorted(commits(table)), sorted(_checkpoints(table))
    bases = [version for version in checkpoints if version <= (known[-1] if known else 0) - history]
    if not bases:
        return _LogKept(known[0] if known else 0, 0)
    base = bases[-1]
    old = [version for version in known if version < base]
    for version in old:
        commit_path(table, version).unlink(missing_ok=True)
    for name in os.listdir(table / LOG):
        if (found := _CHECKPOINT.fullmatch(name)) and int(found[1]) < base:
            (table / LOG / name).unlink(missing_ok=True)
    return _LogKept(base, len(old))


def clear_retired(table: Path, oldest_version: int) -> int:
    """Remove directories that no kept version needs and no reader can still read; note directories that a crash
    left."""
    now = snapshot(table)
    used = {file.directory for file in now.files}
    newest = max((batches for name in used if (batches := parse_directory(name))), default=None)
    removed = 0
    for name, batches in batch_directories(table).items():
        if name in used or newest is None or (batches.generation, batches.last) > (newest.generation, newest.last):
            continue  # a batch that is being written
        noted = retired_since(table, name)
        if noted is None:
            retire(table, [name], now.version, now_ms())
        elif noted[0] <= oldest_version and noted[1] <= now_ms() - _READER_MS:
            remove_directory(table, name)
            removed += 1
    return removed


def _checkpoints(table: Path) -> Iterator[int]:
    for name in os.listdir(table / LOG) if (table / LOG).is_dir() else []:
        if found := _CHECKPOINT.fullmatch(name):
            yield int(found[1])


@contextmanager
def _only_one(table: Path) -> Iterator[None]:
    handle = os.open(table / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise FatalError(f"the table {table} is being optimized already") from None
        yield
    finally:
        os.close(handle)

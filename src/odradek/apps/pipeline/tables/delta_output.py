"""A Delta table that has every batch exactly once, written by Spark's executors and committed here, without a jar.

Spark writes the files of a batch into a directory of the table, where no reader looks for them; one commit then adds
them together with the batch's number (`txn`, the application transaction). A batch that Spark gives a second time,
after a crash between that commit and its own, is known by its number and left out.
"""

import errno
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from odradek.apps.pipeline.checkpoint import batch_offsets, make_directory
from odradek.apps.pipeline.tables.batch_files import (
    Manifest,
    found_files,
    make_durable,
    read_manifest,
    write_manifest,
)
from odradek.apps.pipeline.tables.commit_log import Snapshot, commit, now_ms, open_delta, snapshot
from odradek.apps.pipeline.tables.core.actions import (
    Action,
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
from odradek.apps.pipeline.tables.core.conflicts import AlreadyCommitted, TableChanged
from odradek.base.errors import FatalError

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

_TIMESTAMPS = "spark.sql.parquet.outputTimestampType"
# A commit of the table makes the batch whole, so the files need no second rename and no mark.
_WRITE_OPTIONS = {
    "mapreduce.fileoutputcommitter.algorithm.version": "2",
    "mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
}


@dataclass(slots=True)
class DeltaTableOutput:
    """Writer that Spark calls with each batch of the query whose checkpoint is given."""

    sink: str
    table: Path
    partition_by: tuple[str, ...]
    writer: str  # PIPELINE/SINK/gN: the application of Delta's transactions
    generation: int
    checkpoint: Path
    _opened: "OpenTable | None" = field(default=None, init=False)

    def __call__(self, batch: "DataFrame", number: int) -> None:
        self._add(number, batch.schema, lambda directory: self._write(batch, directory))

    @property
    def takes_collected(self) -> bool:
        """Rows of the driver; where rows are spread over directories, Spark names them."""
        return not self.partition_by

    def write_collected(self, rows: "pa.Table", schema: "StructType", number: int) -> None:
        self._add(number, schema, lambda directory: _write_rows(rows, self.table, directory))

    def _add(self, number: int, schema: "StructType", write: Callable[[str], list[DataFile]]) -> None:
        """Add the batch unless the table has it; `write` writes its files into a directory and returns them."""
        if self._opened is None:
            self._opened = OpenTable.of(self.table, self.writer)
        if self._opened.last_batch is not None and number <= self._opened.last_batch:
            self._check_same(number, self._opened.last_batch)
            return
        opened, self._opened = self._opened, None  # after a failure the table is read again
        directory = BatchRange(self.generation, number, number, uuid4().hex[:8]).directory
        with full_disk_explained(self.table, number):
            try:
                files = [file for file in write(directory) if file.rows]
                if files:
                    self._complete(number, schema, directory, files)
            except BaseException:
                shutil.rmtree(self.table / directory, ignore_errors=True)
                raise
            if not files:
                shutil.rmtree(self.table / directory, ignore_errors=True)
            if files or opened.version < 0:  # a table without rows can be read too
                self._commit(opened, schema, number, files)
        self._opened = opened

    def _write(self, batch: "DataFrame", directory: str) -> list[DataFile]:
        batch.sparkSession.conf.set(_TIMESTAMPS, "TIMESTAMP_MICROS")  # INT96 is not Delta's
        writer = batch.write.partitionBy(*self.partition_by) if self.partition_by else batch.write
        writer.options(**_WRITE_OPTIONS).parquet(str(self.table / directory))
        return found_files(self.table, directory)

    def _complete(self, number: int, schema: "StructType", directory: str, files: list[DataFile]) -> None:
        """Describe the files and make them durable: until they are committed, no reader knows of them."""
        start, end = batch_offsets(self.checkpoint, number - 1), batch_offsets(self.checkpoint, number)
        columns = {field.name: field.dataType.simpleString() for field in schema.fields}
        write_manifest(self.table, directory, Manifest(sum(file.rows for file in files), start, end, columns))
        make_durable(self.table, directory, files)

    def _commit(self, opened: "OpenTable", schema: "StructType", number: int, files: list[DataFile]) -> None:
        fields = grown(list(opened.fields), table_fields(schema.jsonValue(), self.sink), self.sink, str(self.table))
        actions = self._actions(opened, fields, number, files)
        try:
            opened.version = commit(self.table, opened.version, actions)
        except AlreadyCommitted:
            raise FatalError(f"another process writes the table {self.table}, and has batch {number} in it") from None
        except TableChanged as error:
            raise FatalError(f"batch {number} is not in the table {self.table} yet: {error}") from None
        opened.last_batch, opened.fields = number, fields

    def _actions(self, opened: "OpenTable", fields: SchemaFields, number: int, files: list[DataFile]) -> list[Action]:
        now = now_ms()
        batch = {"generation": self.generation, "number": number, "writer": self.writer}
        actions = [commit_info("WRITE", now, odradek=batch), transaction(self.writer, number, now)]
        if fields != opened.fields:
            if opened.version < 0 or protocol(fields) != protocol(opened.fields):
                actions.append(protocol(fields))
            actions.append(metadata(opened.table_id, fields, self.partition_by, opened.created_ms or now))
        return [*actions, *(add(file, is_new_data=True) for file in files)]

    def _check_same(self, number: int, last: int) -> None:
        """FatalError if the table's batch has this number and other records: its checkpoint was removed."""
        if number == last:  # Spark repeats its last batch, no other
            written = batch_manifest(self.table, self.generation, number)
            if written is None or written.end == batch_offsets(self.checkpoint, number):
                return
        raise FatalError(
            f"batch {number} of the table {self.table} was made of other records than the batch that has its number "
            "now: the checkpoint was removed and the table was not. Remove the table too, or choose another"
        )

    def __getstate__(self) -> dict[str, Any]:
        names = ("sink", "table", "partition_by", "writer", "generation", "checkpoint")
        return {name: getattr(self, name) for name in names}

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            setattr(self, name, value)
        self._opened = None


@dataclass(slots=True)
class OpenTable:
    """The writer's knowledge of its table: all that the next commit needs."""

    version: int
    table_id: str
    created_ms: int
    fields: SchemaFields
    last_batch: int | None

    @classmethod
    def of(cls, table: Path, writer: str) -> "OpenTable":
        now = snapshot(table)
        if now == Snapshot():
            return cls(-1, str(uuid4()), 0, [], None)
        last = open_delta(table).transaction_version(writer)
        return cls(now.version, now.table_id, now.created_ms, list(now.fields), last)


def _write_rows(rows: "pa.Table", table: Path, directory: str) -> list[DataFile]:
    """Write the rows as one file; none without rows."""
    import pyarrow.parquet as pq

    if not rows.num_rows:
        return []
    make_directory(table / directory)
    path = table / directory / f"part-{uuid4().hex}.parquet"
    pq.write_table(rows, path, compression="zstd")
    about = path.stat()
    return [DataFile(str(path.relative_to(table)), about.st_size, rows.num_rows, about.st_mtime_ns // 1_000_000)]


def batch_manifest(table: Path, generation: int, number: int) -> Manifest | None:
    """Manifest of one batch; None if it had no rows."""
    for name in dict.fromkeys(file.directory for file in snapshot(table).files):
        batches = parse_directory(name)
        if batches is not None and (batches.generation, batches.first, batches.last) == (generation, number, number):
            return read_manifest(table, name)
    return None


@contextmanager
def full_disk_explained(table: Path, number: int) -> Iterator[None]:
    """Turn "no space left", from Spark or from the system, into one sentence."""
    try:
        yield
    except FatalError:
        raise
    except Exception as error:
        is_full = isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)
        if is_full or "No space left on device" in str(error) or "Disk quota exceeded" in str(error):
            raise FatalError(
                f"no space left for the table {table}: batch {number} is not in it, and is written again once there is"
            ) from None
        raise

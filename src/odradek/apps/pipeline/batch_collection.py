"""Small batches, collected by the driver: one job of Spark computes the batch and brings its rows here as Arrow.

The driver writes the table's file and the topics' records itself. A batch of some thousand rows costs the jobs that
write it more than its rows: each is planned, and has tasks, files and Python workers of its own. Larger batches are
kept by Spark and written by its tasks (`batch_output`).

The size of a batch is estimated from the number of its input records, and from the bytes per record in the batch
before. If its rows exceed Spark's limit for results (`spark.driver.maxResultSize`), tasks compute it again.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from odradek.apps.pipeline.checkpoint import batch_offsets
from odradek.apps.pipeline.spec import TopicSink
from odradek.apps.pipeline.topic_output import record_columns, record_key, record_names, record_value

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import StructType

BRANCH = "_branch"
LETTER = "letter"
RECORDS = "records"
RECORDS_MAX = 10_000
FIRST_RECORDS_MAX = 5_000  # while the size of a record is unknown
_BYTES_MAX = 32_000_000
_TOO_LARGE = "spark.driver.maxResultSize"


@runtime_checkable
class CollectedRowsOutput(Protocol):
    """Output of a table that takes rows from the driver."""

    @property
    def takes_collected(self) -> bool: ...

    def write_collected(self, rows: "pa.Table", schema: "StructType", number: int) -> None: ...


@runtime_checkable
class CollectedRecordsOutput(Protocol):
    """Output of topics that takes records from the driver, in batches with topic, key, value and headers."""

    def write_collected(self, records: "Sequence[pa.RecordBatch]", number: int) -> None: ...


@dataclass(frozen=True, slots=True)
class CollectedBatch:
    """Rows of all branches, and the records that follow from them."""

    rows: "pa.Table"
    schema: "StructType"

    def view(self, branch: int) -> "tuple[pa.Table, StructType]":
        import pyarrow as pa
        import pyarrow.compute as pc

        chosen = self.rows.filter(pc.equal(self.rows[BRANCH], branch))
        kind: StructType = self.schema[f"v{branch}"].dataType  # type: ignore[assignment]
        return pa.Table.from_struct_array(chosen[f"v{branch}"].combine_chunks()), kind

    def records(self) -> "list[pa.RecordBatch]":
        import pyarrow as pa

        found = [chunk.flatten() for chunk in self.rows[RECORDS].chunks]
        return [pa.RecordBatch.from_struct_array(chunk) for chunk in found if len(chunk)]


class BatchCollector:
    def __init__(
        self,
        checkpoint: Path,
        branches: int,
        tables: Collection[int],
        topics: Sequence[tuple[int, TopicSink]],
        dead_letters: str,
    ) -> None:
        """`tables` are the branches with rows for tables. The branch after all views has the dead letters."""
        self._checkpoint = checkpoint
        self._branches = branches
        self._tables = sorted(tables)
        self._topics = topics
        self._dead_letters = dead_letters
        self._bytes_per_record: float | None = None
        self._columns: tuple[list[Column], list[Column]] | None = None  # the same for every batch

    def collect(self, batch: "DataFrame", number: int) -> CollectedBatch | None:
        """Compute the batch and return its rows; None if it is not small, or its result is too large."""
        from pyspark.errors import PySparkException

        records = records_between(batch_offsets(self._checkpoint, number - 1), batch_offsets(self._checkpoint, number))
        if records > collected_records_max(self._bytes_per_record):
            return None
        if self._columns is None:
            self._columns = self._selected(batch)
        staged, collected = self._columns
        frame = batch.select(*staged).select(*collected)
        try:
            rows = frame.toArrow()
        except PySparkException as error:
            if _TOO_LARGE not in str(error):
                raise
            self._bytes_per_record = float(_BYTES_MAX)
            return None
        if records:
            self._bytes_per_record = rows.nbytes / records
        return CollectedBatch(rows, frame.schema)

    def _selected(self, batch: "DataFrame") -> "tuple[list[Column], list[Column]]":
        """Columns of two steps, after which a row has the columns of its table, and its records in `records`."""
        from pyspark.sql import functions as F

        tables = [F.col(f"v{branch}") for branch in self._tables]
        staged: list[Column] = []
        records = [self._letter()]
        for at, (branch, sink) in enumerate(self._topics):
            is_of_branch, names = F.col(BRANCH) == branch, record_names(sink, _names(batch, branch))
            prefix = f"v{branch}."
            key, value = record_key(sink, prefix), record_value(names, prefix)
            staged += [F.when(is_of_branch, key).alias(f"_key{at}"), F.when(is_of_branch, value).alias(f"_value{at}")]
            columns = record_columns(sink, self._dead_letters, F.col(f"_key{at}"), F.col(f"_value{at}"))
            records.append(F.when(is_of_branch, F.struct(*columns)))
        found = F.array_compact(F.array(*records)).alias(RECORDS)
        return [F.col(BRANCH), F.col(LETTER), *tables, *staged], [F.col(BRANCH), *tables, found]

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_columns": None}  # they belong to a session

    def _letter(self) -> "Column":
        from pyspark.sql import functions as F

        fields = [F.col(f"{LETTER}.{name}").alias(name) for name in ("key", "value", "headers")]
        letter = F.struct(F.lit(self._dead_letters).alias("topic"), *fields)
        return F.when(F.col(BRANCH) == self._branches, letter)


def collected_records_max(bytes_per_record: float | None) -> int:
    """Return the most records of a batch that the driver writes, by the bytes per record before."""
    if bytes_per_record is None:
        return FIRST_RECORDS_MAX
    return min(RECORDS_MAX, int(_BYTES_MAX / max(1.0, bytes_per_record)))


def records_between(start: Sequence[Any], end: Sequence[Any]) -> int:
    """Return the approximate number of records of a batch, by its offsets before and after: Spark names a source once
    for each branch."""
    before = _by_place(start)
    return sum(max(0, offset - before.get(place, 0)) for place, offset in _by_place(end).items())


def _by_place(sources: Sequence[Any]) -> dict[tuple[str, str], int]:
    return {
        (topic, partition): int(offset)
        for source in sources
        for topic, partitions in source.items()
        for partition, offset in partitions.items()
    }


def _names(batch: "DataFrame", branch: int) -> list[str]:
    return [field.name for field in batch.schema[f"v{branch}"].dataType.fields]  # type: ignore[attr-defined]

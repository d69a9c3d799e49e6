"""One batch of a query into all of its sinks.

The rows of a batch are those of all views of the query and of the dead letters of its inputs, each in a branch:

    _branch INT, v0 STRUCT<columns of the first view>, v1 STRUCT<…>, …, letter STRUCT<key, value, headers>

The batch is computed once and kept while its sinks write: first tables and consoles, then everything for topics
together. Each sink knows the batches that it has by their numbers. So a batch is completed after a crash between two
sinks, when Spark gives it again: sinks that have it skip it.

A small batch is written by the driver, where all of its sinks allow that (`batch_collection`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Protocol

from odradek.apps.pipeline.batch_collection import (
    BRANCH,
    LETTER,
    BatchCollector,
    CollectedBatch,
    CollectedRecordsOutput,
    CollectedRowsOutput,
)
from odradek.apps.pipeline.spec import TopicSink
from odradek.apps.pipeline.topic_output import as_records

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType


class RowsOutput(Protocol):
    def __call__(self, batch: "DataFrame", number: int) -> None: ...


class RecordsOutput(Protocol):
    """Writes rows with topic, key, value and headers. Called for every batch, also for one without such rows."""

    def __call__(self, batch: "DataFrame", number: int, count: int) -> None: ...


@dataclass(frozen=True, slots=True)
class BatchOutput:
    """Writer that Spark calls with each batch. Sinks are given with the number of their view's branch."""

    branches: int
    rows: Sequence[tuple[int, RowsOutput]]
    topics: Sequence[tuple[int, TopicSink]]
    records: RecordsOutput
    dead_letters: str
    collector: BatchCollector

    def __call__(self, batch: "DataFrame", number: int) -> None:
        tables = [(branch, output) for branch, output in self.rows if isinstance(output, CollectedRowsOutput)]
        can_collect = len(tables) == len(self.rows) and all(output.takes_collected for _, output in tables)
        if can_collect and isinstance(self.records, CollectedRecordsOutput):
            collected = self.collector.collect(batch, number)
            if collected is not None:
                _write_collected(collected, number, tables, self.records)
                return
        self._write_by_tasks(batch, number)

    def _write_by_tasks(self, batch: "DataFrame", number: int) -> None:
        batch.persist()
        try:
            counts = self._counts(batch)
            for branch, output in self.rows:
                if counts[branch] or not number:  # the first batch makes the table, so that it can be read
                    output(view_rows(batch, branch), number)
            records, count = self._records(batch, counts)
            self.records(records, number, count)
        finally:
            batch.unpersist()

    def _counts(self, batch: "DataFrame") -> Mapping[int, int]:
        """Rows of each branch; with them the whole batch is computed, and Spark has its state."""
        from pyspark.sql import functions as F

        columns = [F.count_if(F.col(BRANCH) == branch).alias(str(branch)) for branch in range(self.branches + 1)]
        found = batch.agg(*columns).collect()[0]
        return {branch: int(found[str(branch)]) for branch in range(self.branches + 1)}

    def _records(self, batch: "DataFrame", counts: Mapping[int, int]) -> tuple["DataFrame", int]:
        """Rows of all topic sinks with anything to write, and the dead letters."""
        from pyspark.sql import functions as F

        letters = batch.where(F.col(BRANCH) == self.branches).select(f"{LETTER}.*")
        parts = [letters.select(F.lit(self.dead_letters).alias("topic"), "key", "value", "headers")]
        written = [(branch, sink) for branch, sink in self.topics if counts[branch]]
        parts += [as_records(view_rows(batch, branch), sink, self.dead_letters) for branch, sink in written]
        count = counts[self.branches] + sum(counts[branch] for branch, _ in written)
        used = parts if counts[self.branches] or not written else parts[1:]
        return reduce(lambda one, other: one.unionByName(other), used), count


def _write_collected(
    batch: CollectedBatch,
    number: int,
    tables: Sequence[tuple[int, CollectedRowsOutput]],
    records: CollectedRecordsOutput,
) -> None:
    for branch, output in tables:
        rows, schema = batch.view(branch)
        if rows.num_rows or not number:  # the first batch makes the table, so that it can be read
            output.write_collected(rows, schema, number)
    records.write_collected(batch.records(), number)


def view_rows(batch: "DataFrame", branch: int) -> "DataFrame":
    from pyspark.sql import functions as F

    return batch.where(F.col(BRANCH) == branch).select(f"v{branch}.*")


def in_branches(views: "Sequence[DataFrame]", letters: "Sequence[DataFrame]") -> "DataFrame":
    """The frame of a query, as the module says."""
    from pyspark.sql import functions as F

    kinds = [_kind(frame) for frame in views]
    kind_of_letter = "struct<key:binary,value:binary,headers:array<struct<key:string,value:binary>>>"

    def branch(number: int, frame: "DataFrame") -> "DataFrame":
        row = F.struct(*(F.col(f"`{name}`") for name in frame.columns))
        columns = [
            (row if at == number else F.lit(None)).cast(kind).alias(f"v{at}")  # null is cast to the others' type
            for at, kind in enumerate(kinds)
        ]
        letter = (row if number == len(views) else F.lit(None)).cast(kind_of_letter).alias(LETTER)
        return frame.select(F.lit(number).alias(BRANCH), *columns, letter)

    branches = [branch(number, frame) for number, frame in enumerate(views)]
    branches += [branch(len(views), frame) for frame in letters]
    return reduce(lambda one, other: one.union(other), branches)


def _kind(frame: "DataFrame") -> "StructType":
    """Type of the row; its columns may be null, as in the other branches."""
    from pyspark.sql.types import StructField, StructType

    return StructType([StructField(field.name, field.dataType) for field in frame.schema.fields])

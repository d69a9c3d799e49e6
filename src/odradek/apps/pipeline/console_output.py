"""Batches shown to a person."""

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row


@dataclass(frozen=True, slots=True)
class ConsoleOutput:
    name: str
    rows: int

    def __call__(self, batch: "DataFrame", number: int) -> None:
        rows = self._first_rows(batch.drop("_record"))
        if rows:
            lines = [", ".join(f"{column}={value}" for column, value in row.asDict().items()) for row in rows]
            sys.stdout.write("".join(f"{self.name} {number}: {line}\n" for line in lines))
            sys.stdout.flush()

    def _first_rows(self, batch: "DataFrame") -> "list[Row]":
        """Compute the whole batch: Spark would not keep the state of partitions that are not shown."""
        batch.persist()
        try:
            batch.write.format("noop").mode("overwrite").save()
            return batch.take(self.rows)
        finally:
            batch.unpersist()

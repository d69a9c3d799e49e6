"""Output of batches on the terminal."""

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True, slots=True)
class ConsoleOutput:
    name: str
    rows: int

    def __call__(self, batch: "DataFrame", number: int) -> None:
        rows = batch.drop("_record").take(self.rows)
        if rows:
            lines = [", ".join(f"{column}={value}" for column, value in row.asDict().items()) for row in rows]
            sys.stdout.write("".join(f"{self.name} {number}: {line}\n" for line in lines))
            sys.stdout.flush()

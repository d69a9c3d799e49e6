"""Rows that stand for a batch of Spark: enough of a DataFrame for a table to be written, by pyarrow, without a JVM."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

import duckdb
import polars
import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable
from pyspark.sql.types import StructType

from odradek.apps.pipeline.tables.delta_output import DeltaTableOutput


class RowsAsFrame:
    def __init__(self, rows: Sequence[Mapping[str, Any]], kinds: Mapping[str, str]) -> None:
        self.rows, self.kinds = rows, dict(kinds)
        fields = [{"name": n, "type": kind, "nullable": False, "metadata": {}} for n, kind in kinds.items()]
        self.schema = StructType.fromJson({"type": "struct", "fields": fields})
        self.dtypes = [(column.name, column.dataType.simpleString()) for column in self.schema.fields]

    @property
    def sparkSession(self) -> Any:
        return self

    @property
    def conf(self) -> Any:
        return self

    def set(self, key: str, value: str) -> None:
        pass

    def given_to(self, output: DeltaTableOutput, number: int) -> None:
        output(self, number)  # type: ignore[arg-type]  # enough of a DataFrame

    @property
    def write(self) -> "RowsWriter":
        return RowsWriter(self)


_ARROW = {"long": pa.int64(), "string": pa.string(), "timestamp": pa.timestamp("us", tz="UTC"), "double": pa.float64()}


@dataclass
class RowsWriter:
    frame: RowsAsFrame
    by: tuple[str, ...] = ()
    extra: dict[str, str] = field(default_factory=dict)

    def partitionBy(self, *names: str) -> "RowsWriter":
        return RowsWriter(self.frame, names)

    def options(self, **_: str) -> "RowsWriter":
        return self

    def parquet(self, path: str) -> None:
        target = Path(path)
        target.mkdir(parents=True)
        columns = {name: _ARROW[kind] for name, kind in self.frame.kinds.items() if name not in self.by}
        groups: dict[str, list[Mapping[str, Any]]] = {}
        for row in self.frame.rows:
            groups.setdefault("/".join(f"{name}={quote(str(row[name]), safe=' ')}" for name in self.by), []).append(row)
        for number, (place, rows) in enumerate(groups.items() or [("", [])]):
            (target / place).mkdir(parents=True, exist_ok=True)
            arrays = {name: pa.array([row[name] for row in rows], kind) for name, kind in columns.items()}
            noted = {"type": "struct", "fields": self.frame.schema.jsonValue()["fields"]}
            table = pa.table(arrays).replace_schema_metadata(
                {"org.apache.spark.sql.parquet.row.metadata": json.dumps(noted)}
            )
            pq.write_table(table, target / place / f"part-{number:05d}.parquet")


def output_of(table: Path, *, generation: int = 1, partition_by: tuple[str, ...] = ()) -> DeltaTableOutput:
    checkpoint = table.parent / f"checkpoint-g{generation}"
    (checkpoint / "offsets").mkdir(parents=True, exist_ok=True)
    return DeltaTableOutput("s", table, partition_by, f"p/s/g{generation}", generation, checkpoint)


def ids(*numbers: int, kinds: Mapping[str, str] | None = None, **fixed: Any) -> Any:
    return RowsAsFrame([{"id": number, **fixed} for number in numbers], {"id": "long", **(kinds or {})})


def write(output: DeltaTableOutput, number: int, frame: Any, end: int | None = None) -> None:
    """Batch N ends at offset 10 N + 10 of one partition, unless told otherwise."""
    at = 10 * number + 10 if end is None else end
    (output.checkpoint / "offsets" / str(number)).write_text(f'v1\n{{}}\n{{"t":{{"0":{at}}}}}')
    frame.given_to(output, number)


def judged(table: Path, version: int | None = None) -> list[int]:
    """The ids by three readers that must agree."""
    opened = DeltaTable(table, version=version)
    by_delta_rs = sorted(opened.to_pyarrow_table(columns=["id"])["id"].to_pylist())
    dataset = opened.to_pyarrow_dataset()
    assert dataset is not None
    by_duckdb = [row[0] for row in duckdb.sql("SELECT id FROM dataset ORDER BY id").fetchall()]
    by_polars = polars.scan_delta(str(table), version=version).select("id").collect()["id"].sort().to_list()
    assert by_delta_rs == by_duckdb == by_polars
    return by_delta_rs

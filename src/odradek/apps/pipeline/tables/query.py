"""`odradek pipeline query`: SQL on a pipeline's tables, answered by DuckDB in this process, without Spark."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from odradek.apps.pipeline.spec import Pipeline, TableFormat, TableSink
from odradek.apps.pipeline.tables.commit_log import is_delta
from odradek.apps.pipeline.tables.reading import NOW, Moment, open_table
from odradek.base.errors import FatalError

_ROWS_AT_ONCE = 1000


class QueryAnswer:
    """Columns and rows of an answer; rows are read while they are asked for."""

    def __init__(self, result: Any) -> None:
        self._result = result
        self.columns = [str(column[0]) for column in result.description or []]

    def rows(self) -> Iterator[dict[str, Any]]:
        while found := self._result.fetchmany(_ROWS_AT_ONCE):
            for row in found:
                yield dict(zip(self.columns, row, strict=True))


def query_tables(pipeline: Pipeline, sql: str, moment: Moment = NOW) -> QueryAnswer:
    """Answer a query; each table has the name of its sink. FatalError has DuckDB's message."""
    try:
        import duckdb
    except ImportError:
        raise FatalError(
            "queries are answered by DuckDB, which is not installed: pip install 'odradek[query]'"
        ) from None
    connection = duckdb.connect(":memory:")
    known: list[str] = []
    for sink in pipeline.sinks.values():
        if isinstance(sink, TableSink) and (frame := _readable(sink, moment)) is not None:
            if isinstance(frame, str):
                connection.execute(f'CREATE VIEW "{sink.name}" AS {frame}')
            else:
                connection.register(sink.name, frame)
            known.append(sink.name)
    try:
        return QueryAnswer(connection.execute(sql))
    except duckdb.Error as error:
        message = " ".join(str(error).split("\n\nLINE")[0].split())
        raise FatalError(f"{message}; tables: {', '.join(known) or 'none has a batch yet'}") from None


def _readable(sink: TableSink, moment: Moment) -> Any:
    """An Arrow dataset or SQL for DuckDB; None if there is nothing to read."""
    if is_delta(sink.path):
        return open_table(sink.path, moment).to_pyarrow_dataset()
    if sink.format is TableFormat.PARQUET and _has_files(sink.path) and moment == NOW:
        place = str(sink.path / "batch=*" / "**" / "*.parquet").replace("'", "''")
        return f"SELECT * EXCLUDE (batch) FROM read_parquet('{place}', hive_partitioning = true, union_by_name = true)"
    return None


def _has_files(table: Path) -> bool:
    return next(table.glob("batch=*/**/*.parquet"), None) is not None

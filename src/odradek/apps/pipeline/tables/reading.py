"""Reading of a pipeline's Delta tables: now, at a version, at a batch or at a time; by Spark without a jar."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from odradek.apps.pipeline.tables.commit_log import commits, data_files, open_delta, read_commit, schema_fields
from odradek.apps.pipeline.tables.core.actions import NULL_PARTITION
from odradek.base.errors import FatalError

if TYPE_CHECKING:
    from deltalake import DeltaTable
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import DataType


@dataclass(frozen=True, slots=True)
class Moment:
    """A state of a table in its past; the present if nothing is set."""

    version: int | None = None
    batch: int | None = None
    generation: int | None = None  # of the batch; None: the newest
    at_ms: int | None = None


NOW = Moment()
_BATCH = re.compile(r"(?:g(\d+)-)?(\d+)")


def parse_batch(text: str) -> Moment:
    """`12`, or `g1-12` for batch 12 of generation 1."""
    found = _BATCH.fullmatch(text)
    if found is None:
        raise FatalError(f"{text!r} is not a batch such as 12, or g1-12 of an earlier generation")
    return Moment(batch=int(found[2]), generation=int(found[1]) if found[1] else None)


def open_table(table: Path, moment: Moment = NOW) -> "DeltaTable":
    """Open the table at a moment. FatalError if the log no longer has it."""
    return open_delta(table, version_at(table, moment))


def version_at(table: Path, moment: Moment) -> int | None:
    """Return the version of the moment: the newest one with that batch, or not after that time."""
    if moment.version is not None or (moment.batch is None and moment.at_ms is None):
        return moment.version
    generation = moment.generation
    for version in sorted(commits(table), reverse=True):
        actions = read_commit(table, version)
        info: dict[str, Any] = next((action["commitInfo"] for action in actions if "commitInfo" in action), {})
        if moment.at_ms is not None and info.get("timestamp", 0) <= moment.at_ms:
            return version
        written = info.get("odradek")
        if moment.batch is None or written is None:
            continue
        generation = written["generation"] if generation is None else generation
        if written["generation"] == generation and written["number"] <= moment.batch:
            return version
    what = f"batch {moment.batch}" if moment.batch is not None else "that time"
    raise FatalError(f"the table {table} doesn't keep {what} any more; history = N in its sink keeps more versions")


def read_table(spark: "SparkSession", table: str | Path, moment: Moment = NOW) -> "DataFrame":
    """The table as a DataFrame, through Spark's own Parquet reader."""
    from pyspark.sql import functions as F
    from pyspark.sql.types import StructType

    place = Path(table).absolute()
    opened = open_table(place, moment)
    schema = StructType.fromJson({"type": "struct", "fields": schema_fields(opened)})
    paths = [str(place / file.path) for file in data_files(opened)]
    if not paths:
        return spark.createDataFrame([], schema)
    in_paths = opened.metadata().partition_columns
    in_files = StructType([column for column in schema.fields if column.name not in in_paths])
    rows = spark.read.schema(in_files).option("recursiveFileLookup", "true").parquet(*paths)
    columns = [_from_path(c.name, c.dataType) if c.name in in_paths else F.col(f"`{c.name}`") for c in schema.fields]
    return rows.select(*columns)


def _from_path(name: str, kind: "DataType") -> "Column":
    """A partition column, whose value is part of the file's path: escaped by Spark as in Hive, then as a URI."""
    from pyspark.sql import functions as F

    escaped = F.regexp_extract("_metadata.file_path", f"/{re.escape(quote(quote(name)))}=([^/]*)/", 1)
    once = F.url_decode(F.regexp_replace(escaped, r"\+", "%2B"))
    value = F.url_decode(F.regexp_replace(once, r"\+", "%2B"))
    return F.when(once == NULL_PARTITION, F.lit(None)).otherwise(value).cast(kind).alias(name)

"""From the declaration to Spark's queries: one for each sink, one for the dead letters of each input."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from odradek.apps.pipeline.checkpoint import Checkpoint
from odradek.apps.pipeline.console_output import ConsoleOutput
from odradek.apps.pipeline.lake_output import DeltaOutput, IcebergOutput
from odradek.apps.pipeline.quality import dead_letters
from odradek.apps.pipeline.spec import ConsoleSink, Pipeline, Sink, TableFormat, TableSink, TopicSink
from odradek.apps.pipeline.table_output import TableOutput, check_columns, columns_of
from odradek.apps.pipeline.tables.delta_output import DeltaTableOutput
from odradek.apps.pipeline.tables.ownership import check_table_columns
from odradek.apps.pipeline.topic_output import TopicOutput, as_records
from odradek.apps.pipeline.views import Views
from odradek.base.errors import FatalError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

EXACTLY_ONCE = "exactly once"
AT_LEAST_ONCE = "at least once"
DEAD_LETTERS = "dead_letters_"
Output = Callable[["DataFrame", int], None]


@dataclass(frozen=True, slots=True)
class Query:
    name: str
    mode: str
    frame: "DataFrame"
    output: Output

    def start(self, checkpoint: Checkpoint, generation: int, trigger: str | None) -> "StreamingQuery":
        """Without a trigger: all that is there now, and the end."""
        writer = (
            self.frame.writeStream.queryName(self.name)
            .outputMode(self.mode)
            .option("checkpointLocation", str(checkpoint.query(generation, self.name)))
            .foreachBatch(self.output)
        )
        timed = writer.trigger(processingTime=trigger) if trigger else writer.trigger(availableNow=True)
        return timed.start()


@dataclass(frozen=True, slots=True)
class QueryPlan:
    """Plan of a query, made without Spark: enough to claim a checkpoint and to describe it."""

    name: str
    target: str
    delivery: str


def group_of(pipeline: str, query: str) -> str:
    """The consumer group under which a query shows its lag."""
    return f"pipeline-{pipeline}-{query}"


def plan(pipeline: Pipeline) -> list[QueryPlan]:
    letters = f"topic {pipeline.dead_letters}"
    return [
        *(QueryPlan(name, target(sink), delivery(sink)) for name, sink in pipeline.sinks.items()),
        *(
            QueryPlan(f"{DEAD_LETTERS}{name}", letters, AT_LEAST_ONCE)
            for name in (*pipeline.sources, *pipeline.dimensions)
        ),
    ]


def build(pipeline: Pipeline, views: Views, checkpoint: Checkpoint, generation: int) -> list[Query]:
    """Plan every query, so that Spark's objections are reported before any query runs."""
    from pyspark.sql import functions as F

    frames = views.build()
    queries: list[Query] = []

    def add(name: str, mode: str, frame: "DataFrame", output: Output) -> None:
        queries.append(Query(name, mode, frame, output))

    def topic_output(name: str, *topics: str) -> TopicOutput:
        intent = checkpoint.query(generation, f"{name}.intent.json")
        return TopicOutput(pipeline.bootstrap, topics, f"{pipeline.name}/{name}/g{generation}", intent)

    for name, sink in pipeline.sinks.items():
        frame = _checked(sink, frames[sink.view])
        if name in pipeline.own_delta_tables and isinstance(sink, TableSink):
            check_table_columns(sink.path, name, frame, sink.partition_by)
        match sink:
            case TopicSink():
                records = as_records(frame, sink, pipeline.dead_letters)
                add(name, sink.mode.value, records, topic_output(name, sink.topic, pipeline.dead_letters))
            case TableSink():
                add(
                    name,
                    sink.mode.value,
                    frame,
                    _table_output(pipeline, sink, generation, checkpoint.query(generation, name)),
                )
            case ConsoleSink():
                add(name, sink.mode.value, frame, ConsoleOutput(name, sink.rows))
    for view, judgement in views.judgements().items():
        name = f"{DEAD_LETTERS}{view}"
        letters = dead_letters(judgement, view).withColumn("topic", F.lit(pipeline.dead_letters))
        add(name, "append", letters, topic_output(name, pipeline.dead_letters))
    return queries


def target(sink: Sink) -> str:
    match sink:
        case TopicSink():
            return f"topic {sink.topic}"
        case TableSink():
            return f"{sink.format.value} table {sink.path}"
        case ConsoleSink():
            return "console"


def delivery(sink: Sink) -> str:
    return EXACTLY_ONCE if isinstance(sink, TableSink) else AT_LEAST_ONCE


def _checked(sink: Sink, frame: "DataFrame") -> "DataFrame":
    if not frame.isStreaming:
        raise FatalError(
            f"[sinks.{sink.name}] reads from {sink.view!r}, which is no stream: nothing new would ever come"
        )
    named = sink.partition_by if isinstance(sink, TableSink) else ()
    named += (*sink.key, *sink.columns) if isinstance(sink, TopicSink) else ()
    for column in named:
        if column not in frame.columns:
            raise FatalError(f"[sinks.{sink.name}]: {sink.view} has no {column!r}; it has {', '.join(frame.columns)}")
    if isinstance(sink, TableSink) and sink.format is TableFormat.PARQUET:
        check_columns(sink.path, sink.name, columns_of(frame))
    return frame


def table_writer(pipeline: Pipeline, sink: str, generation: int) -> str:
    """The application under which Delta knows the batches of a sink."""
    return f"{pipeline.name}/{sink}/g{generation}"


def _table_output(pipeline: Pipeline, sink: TableSink, generation: int, checkpoint: Path) -> Output:
    writer = table_writer(pipeline, sink.name, generation)
    if sink.name in pipeline.own_delta_tables:
        return DeltaTableOutput(sink.name, sink.path, sink.partition_by, writer, generation, checkpoint)
    match sink.format:
        case TableFormat.PARQUET:
            return TableOutput(sink.path, sink.partition_by, generation, checkpoint)
        case TableFormat.DELTA:
            return DeltaOutput(sink.path, sink.partition_by, writer)
        case TableFormat.ICEBERG:
            return IcebergOutput(sink.path, sink.partition_by, writer, catalog=f"odradek_{sink.name}")

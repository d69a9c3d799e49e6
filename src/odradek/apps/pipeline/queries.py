"""Spark's queries of a declaration: one for the sinks that read the same sources, with their dead letters."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from odradek.apps.pipeline.batch_collection import BatchCollector
from odradek.apps.pipeline.batch_output import BatchOutput, RecordsOutput, RowsOutput, in_branches
from odradek.apps.pipeline.batch_transaction import BatchTransaction
from odradek.apps.pipeline.checkpoint import Checkpoint, last_begun_batch
from odradek.apps.pipeline.console_output import ConsoleOutput
from odradek.apps.pipeline.lake_output import DeltaOutput, IcebergOutput
from odradek.apps.pipeline.plan_modes import mode_bound, watermark_bound
from odradek.apps.pipeline.quality import dead_letters
from odradek.apps.pipeline.sharing import SharedQuery, share, sources_of_views
from odradek.apps.pipeline.spec import ConsoleSink, Delivery, Pipeline, Sink, TableFormat, TableSink, TopicSink
from odradek.apps.pipeline.table_output import TableOutput, check_columns, columns_of
from odradek.apps.pipeline.tables.delta_output import DeltaTableOutput
from odradek.apps.pipeline.tables.ownership import check_table_columns
from odradek.apps.pipeline.targets import target
from odradek.apps.pipeline.topic_output import TopicOutput
from odradek.apps.pipeline.transaction_output import TransactionOutput
from odradek.apps.pipeline.views import Views
from odradek.base.errors import FatalError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

EXACTLY_ONCE = "exactly once"
AT_LEAST_ONCE = "at least once"
_GUARANTEES = {Delivery.EXACTLY_ONCE: EXACTLY_ONCE, Delivery.AT_LEAST_ONCE: AT_LEAST_ONCE}
DEAD_LETTERS = "dead_letters"
# Batches without records, which Spark runs when the watermark has moved: each costs as much as a small one. To decide
# on one, Spark follows the watermark through the plan that ran, and loses it where a branch reuses the exchange of
# another; the next batch has what it found, so that the branch's state is never removed, and its windows are never
# final. Without such batches it follows the plan as it is before that. So only a query with one view has them.
EMPTY_BATCHES = "spark.sql.streaming.noDataMicroBatches.enabled"
Output = Callable[["DataFrame", int], None]


@dataclass(frozen=True, slots=True)
class SinkPlan:
    """A target of the pipeline and its delivery guarantee, known without Spark."""

    name: str
    target: str
    delivery: str


@dataclass(frozen=True, slots=True)
class Query:
    name: str
    mode: str
    frame: "DataFrame"
    output: Output
    sinks: tuple[SinkPlan, ...]
    shared: SharedQuery
    has_empty_batches: bool = False

    def start(self, checkpoint: Checkpoint, generation: int, trigger: str | None) -> "StreamingQuery":
        """Start the query. Without a trigger it processes the available records and ends."""
        writer = (
            self.frame.writeStream.queryName(self.name)
            .outputMode(self.mode)
            .option("checkpointLocation", str(checkpoint.query(generation, self.name)))
            .foreachBatch(self.output)
        )
        timed = writer.trigger(processingTime=trigger) if trigger else writer.trigger(availableNow=True)
        with self._empty_batches():
            return timed.start()

    @contextmanager
    def _empty_batches(self) -> Iterator[None]:
        """A query has the settings that its session has when it starts."""
        settings = self.frame.sparkSession.conf
        before = settings.get(EMPTY_BATCHES)
        settings.set(EMPTY_BATCHES, str(self.has_empty_batches).lower())
        try:
            yield
        finally:
            settings.set(EMPTY_BATCHES, before or "true")


def group_of(pipeline: str, query: str) -> str:
    """Return the consumer group that shows the lag of a query."""
    return f"pipeline-{pipeline}-{query}"


def plan(pipeline: Pipeline) -> list[SinkPlan]:
    letters = SinkPlan(DEAD_LETTERS, f"topic {pipeline.dead_letters}", _GUARANTEES[pipeline.delivery])
    sinks = pipeline.sinks.items()
    return [*(SinkPlan(name, target(sink), promise(sink, pipeline.delivery)) for name, sink in sinks), letters]


def build(pipeline: Pipeline, views: Views, checkpoint: Checkpoint, generation: int) -> list[Query]:
    """Plan every query, so that Spark's errors are reported before any query runs."""
    frames = views.build()
    for sink in pipeline.sinks.values():
        _check(sink, frames[sink.view])
        if sink.name in pipeline.own_delta_tables and isinstance(sink, TableSink):
            check_table_columns(sink.path, sink.name, frames[sink.view], sink.partition_by)
    texts = {name: transform.file.read_text() for name, transform in pipeline.transforms.items()}
    sinks = {sink.view: frames[sink.view] for sink in pipeline.sinks.values()}
    shared = share(pipeline, sources_of_views(pipeline, texts), mode_bound(sinks), kept=checkpoint.queries(generation))
    return [_query(pipeline, views, query, checkpoint, generation) for query in shared]


def _query(pipeline: Pipeline, views: Views, shared: SharedQuery, checkpoint: Checkpoint, generation: int) -> Query:
    letters = [dead_letters(views.judgement(name), name) for name in shared.letters]
    frame = in_branches([views.frames[name] for name in shared.views], letters)
    rows: list[tuple[int, RowsOutput]] = []
    topics: list[tuple[int, TopicSink]] = []
    plans = {each.name: each for each in plan(pipeline)}
    directory = checkpoint.query(generation, shared.name)
    written = [pipeline.sinks[name] for name in shared.sinks if name in pipeline.sinks]
    for sink in written:
        branch = shared.views.index(sink.view)
        match sink:
            case TopicSink():
                topics.append((branch, sink))
            case TableSink():
                rows.append((branch, _table_output(pipeline, sink, generation, directory)))
            case ConsoleSink():
                rows.append((branch, ConsoleOutput(sink.name, sink.rows)))
    written_topics = tuple(dict.fromkeys([*(sink.topic for _, sink in topics), pipeline.dead_letters]))
    records = _records_output(pipeline, shared.name, written_topics, checkpoint, generation)
    tables = {branch for branch, _ in rows}
    collector = BatchCollector(directory, len(shared.views), tables, topics, pipeline.dead_letters)
    output = BatchOutput(len(shared.views), rows, topics, records, pipeline.dead_letters, collector)
    sink_plans = (*(plans[sink.name] for sink in written), *([plans[DEAD_LETTERS]] if letters or topics else []))
    bound = watermark_bound({name: views.frames[name] for name in shared.views}, shared.mode)
    has_empty_batches = bool(bound) and len(shared.views) == 1
    return Query(shared.name, shared.mode.value, frame, output, sink_plans, shared, has_empty_batches)


def _records_output(
    pipeline: Pipeline, query: str, topics: tuple[str, ...], checkpoint: Checkpoint, generation: int
) -> RecordsOutput:
    name = f"{pipeline.name}/{query}/g{generation}"
    if pipeline.delivery is Delivery.AT_LEAST_ONCE:
        return TopicOutput(pipeline.bootstrap, topics, name, checkpoint.query(generation, f"{query}.intent.json"))
    group, kept = group_of(pipeline.name, query), checkpoint.identity()
    checkpoint_id = kept.checkpoint_id if kept else ""  # without one, nothing runs
    transaction = BatchTransaction(pipeline.bootstrap, group, group)
    directory = checkpoint.query(generation, query)
    return TransactionOutput(transaction, name, checkpoint_id, generation, directory, last_begun_batch(directory))


def promise(sink: Sink, topics: Delivery) -> str:
    match sink:
        case TableSink():
            return EXACTLY_ONCE
        case TopicSink():
            return _GUARANTEES[topics]
        case ConsoleSink():
            return AT_LEAST_ONCE


def _check(sink: Sink, frame: "DataFrame") -> None:
    if not frame.isStreaming:
        raise FatalError(
            f"[sinks.{sink.name}] reads from {sink.view!r}, which is not a stream: nothing new would ever come"
        )
    named = sink.partition_by if isinstance(sink, TableSink) else ()
    named += (*sink.key, *sink.columns) if isinstance(sink, TopicSink) else ()
    for column in named:
        if column not in frame.columns:
            raise FatalError(f"[sinks.{sink.name}]: {sink.view} has no {column!r}; it has {', '.join(frame.columns)}")
    if isinstance(sink, TableSink) and sink.format is TableFormat.PARQUET:
        check_columns(sink.path, sink.name, columns_of(frame))


def table_writer(pipeline: Pipeline, sink: str, generation: int) -> str:
    """The application under which Delta knows the batches of a sink."""
    return f"{pipeline.name}/{sink}/g{generation}"


def _table_output(pipeline: Pipeline, sink: TableSink, generation: int, checkpoint: Path) -> RowsOutput:
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

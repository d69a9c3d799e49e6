"""`odradek pipeline run`: from the project to running queries, until they end or are stopped.

One run per project at a time, ensured by a lock that the system releases when the process dies.
"""

import fcntl
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from types import FrameType
from typing import TYPE_CHECKING, Any

from odradek.apps.pipeline.checkpoint import Checkpoint, Identity, committed_offsets, make_directory, state_store
from odradek.apps.pipeline.cluster_side import EndsWatch, cluster_with_inputs, create_outputs
from odradek.apps.pipeline.declaration_changes import changes, declared
from odradek.apps.pipeline.decoding import check_package, check_schema_file
from odradek.apps.pipeline.kafka_settings import settings_of_workers, use_kafka_settings
from odradek.apps.pipeline.lake_output import check_format
from odradek.apps.pipeline.pipeline_metrics import pipeline_registry
from odradek.apps.pipeline.plan_modes import state_shapes
from odradek.apps.pipeline.progress import QueryProgressBoard
from odradek.apps.pipeline.queries import Query, build, group_of, plan, table_writer
from odradek.apps.pipeline.replay import retire_replayed
from odradek.apps.pipeline.session import (
    ROCKSDB,
    SHORT_LIVED,
    STATE_STORE,
    SparkTarget,
    jvm_of_finite_run,
    jvm_of_lasting_run,
    start_workers,
    ui_address,
)
from odradek.apps.pipeline.spark_errors import in_one_sentence
from odradek.apps.pipeline.spark_start import SparkStart
from odradek.apps.pipeline.spec import Delivery, Pipeline, TableFormat, TableSink
from odradek.apps.pipeline.status import (
    FAILED,
    RUNNING,
    STARTING,
    STOPPED,
    STOPPING,
    RunFacts,
    lag,
    now,
    read_status,
    status_document,
    write_status,
)
from odradek.apps.pipeline.supervisor import Supervisor
from odradek.apps.pipeline.table_output import claim_table
from odradek.apps.pipeline.tables.maintenance_thread import TableMaintenance
from odradek.apps.pipeline.tables.ownership import claim_delta
from odradek.apps.pipeline.views import Views
from odradek.base.errors import FatalError
from odradek.base.metrics_endpoint import MetricsEndpoint

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from odradek.apps.pipeline.listener import GroupListener

_TEND_SECONDS = 0.5
Show = Callable[[dict[str, Any], float], None]


@dataclass(frozen=True, slots=True)
class RunOptions:
    target: SparkTarget
    once: bool = False
    metrics_port: int | None = None


def validate(pipeline: Pipeline, target: SparkTarget) -> dict[str, list[tuple[str, str]]]:
    """Plan every query as a run does, without starting it; return the columns of each sink. FatalError describes the
    fault."""
    pipeline = secured(pipeline, target)
    _check_formats(pipeline)
    with SparkStart(pipeline, target, has_ui=False, note=_ignored) as start:
        start.begin(SHORT_LIVED)
        spark = start.session()
        try:
            with in_one_sentence():
                views = Views(spark, pipeline)
                _planned(pipeline, spark, views, Checkpoint(pipeline.checkpoint), 1)
                return {name: views.frames[sink.view].dtypes for name, sink in pipeline.sinks.items()}
        finally:
            spark.stop()


def run(pipeline: Pipeline, options: RunOptions, show: Show, note: Callable[[str], None]) -> None:
    """Return when asked to stop, or with `once` when all available records are processed."""
    stop = StopRequest()
    with _locked(pipeline), stop.heard():
        pipeline = secured(pipeline, options.target)
        _check_formats(pipeline)
        with SparkStart(pipeline, options.target, has_ui=not options.once, note=note) as spark:
            if not options.once:  # the options of a finite run depend on what waits
                spark.begin(jvm_of_lasting_run(pipeline.spark), may_record=True)
            checkpoint, identity = claim(pipeline, note)
            Run(pipeline, options, checkpoint, identity, spark, show, note).go(stop)


def secured(pipeline: Pipeline, target: SparkTarget) -> Pipeline:
    """Use the pipeline's settings of Kafka's clients in this process, and in Spark's workers."""
    use_kafka_settings(pipeline.kafka)
    return replace(pipeline, spark={**pipeline.spark, **settings_of_workers(pipeline.kafka, target)})


def claim(pipeline: Pipeline, note: Callable[[str], None]) -> tuple[Checkpoint, Identity]:
    """Claim the checkpoint and the tables for this pipeline, and create its topics. FatalError if another pipeline owns
    them."""
    cluster = cluster_with_inputs(pipeline)
    checkpoint = Checkpoint(pipeline.checkpoint)
    identity = checkpoint.claim(_identity(pipeline, cluster))
    for sink in pipeline.sinks.values():
        if sink.name in pipeline.own_delta_tables and isinstance(sink, TableSink):
            claim_delta(sink.path, pipeline.name, sink.name, table_writer(pipeline, sink.name, identity.generation))
        elif isinstance(sink, TableSink) and sink.format is TableFormat.PARQUET:
            claim_table(sink.path, pipeline.name, sink.name)
    retire_replayed(pipeline, identity)
    for topic in create_outputs(pipeline):  # after all other checks
        note(f"created topic {topic}")
    return checkpoint, identity


class Run:
    def __init__(
        self,
        pipeline: Pipeline,
        options: RunOptions,
        checkpoint: Checkpoint,
        identity: Identity,
        spark: SparkStart,
        show: Show,
        note: Callable[[str], None],
    ) -> None:
        self._spark = spark
        self._pipeline = pipeline
        self._options = options
        self._checkpoint = checkpoint
        self._identity = identity
        self._show = show
        self._note = note
        self._ends = EndsWatch(pipeline)
        self._board = QueryProgressBoard([])  # queries are known when Spark has planned them
        self._metrics = self._metrics_endpoint()
        self._facts = RunFacts(
            spark=str(options.target),
            started_at=now(),
            generation=identity.generation,
            metrics_port=self._metrics.port if self._metrics else None,
            sinks={},
        )

    def go(self, stop: "StopRequest") -> None:
        state, reason = STOPPED, None
        try:
            self._tell(STARTING)
            with in_one_sentence():
                self._with_spark(stop)
        except BaseException as error:
            if stop.asked and isinstance(error, FatalError | KeyboardInterrupt):
                return  # the signal may have ended Spark's process, too
            state, reason = FAILED, str(error) or type(error).__name__
            raise
        finally:
            self._tell(state, reason)
            self._ends.close()
            if self._metrics:
                self._metrics.stop()

    def _with_spark(self, stop: "StopRequest") -> None:
        pipeline = self._pipeline
        if self._options.once:
            self._spark.begin(jvm_of_finite_run(self._waiting(), has_state_in_heap=self._has_state_in_heap()))
        spark = self._spark.session()
        self._note("Spark runs; the first batch compiles its queries, which takes up to a minute")
        self._facts = replace(self._facts, spark_ui=ui_address(spark))
        listener = self._listener()
        stop.wait_for_queries()
        generation = self._identity.generation
        views = Views(spark, pipeline, self._identity.starting, self._ends.ends)
        if self._options.target.is_local:
            start_workers(spark, views.streams.read_nothing)
        try:
            spark.streams.addListener(listener)
            queries = _planned(pipeline, spark, views, self._checkpoint, generation)
            check_changes(pipeline, views, self._checkpoint, generation, self._note)
            self._checkpoint.keep_queries(generation, [query.shared for query in queries])
            self._facts = replace(self._facts, sinks={query.name: query.sinks for query in queries})
            for query in queries:
                read = committed_offsets(self._checkpoint.query(generation, query.name))
                self._board.resume(query.name, read, branches=len(query.shared.views))
            trigger = None if self._options.once else pipeline.trigger
            supervisor = Supervisor(queries, self._checkpoint, generation, trigger, self._board)
            maintenance = TableMaintenance(
                {name: (sink.path, sink.history) for name, sink in pipeline.own_delta_tables.items()}
            )
            try:
                maintenance.start()
                while not stop.asked and supervisor.tend():
                    self._tell(RUNNING)
                    time.sleep(_TEND_SECONDS)
                self._tell(STOPPING)
            finally:
                supervisor.stop()
                maintenance.stop()
        finally:
            with suppress(Exception):  # Py4J raises many kinds of errors while Spark shuts down
                spark.streams.removeListener(listener)
            listener.close()
            spark.stop()

    def _waiting(self) -> int:
        """Return the approximate number of records that wait for the query with the most; a topic that was never read
        counts in full."""
        generation, ends = self._identity.generation, self._ends.ends
        kept = [self._checkpoint.query(generation, query.name) for query in self._checkpoint.queries(generation)]
        lags = [lag(offsets, ends) for checkpoint in kept if (offsets := committed_offsets(checkpoint))]
        return max((each or 0 for each in lags), default=sum(sum(topic.values()) for topic in ends.values()))

    def _has_state_in_heap(self) -> bool:
        """Return whether a query has another state store than RocksDB, by its checkpoint or by the declaration."""
        generation, chosen = self._identity.generation, self._pipeline.spark.get(STATE_STORE, ROCKSDB)
        kept = [self._checkpoint.query(generation, query.name) for query in self._checkpoint.queries(generation)]
        return any(
            (state_store(checkpoint) or chosen) != ROCKSDB for checkpoint in kept or [self._checkpoint.directory]
        )

    def _tell(self, state: str, reason: str | None = None) -> None:
        ends = self._ends.refresh()
        document = status_document(self._pipeline, self._facts, state, reason, self._board.queries(), ends)
        write_status(self._pipeline, document)
        self._show(document, time.monotonic())

    def _listener(self) -> "GroupListener":
        from odradek.apps.pipeline.listener import GroupListener

        is_in_transactions = self._pipeline.delivery is Delivery.EXACTLY_ONCE  # they commit the offsets themselves
        return GroupListener(
            self._pipeline.bootstrap,
            lambda query: None if is_in_transactions else group_of(self._pipeline.name, query),
            self._board,
        )

    def _metrics_endpoint(self) -> MetricsEndpoint | None:
        port = self._options.metrics_port if self._options.metrics_port is not None else self._pipeline.metrics_port
        if port is None:
            return None
        registry = pipeline_registry(self._pipeline.name, self._board, lambda: self._ends.ends)
        try:
            endpoint = MetricsEndpoint("127.0.0.1", port, registry)
        except OSError as error:
            why = os.strerror(error.errno or 0)
            raise FatalError(f"metrics can't be served at port {port}: {why}; choose another: --metrics-port") from None
        endpoint.start()
        return endpoint


def _planned(
    pipeline: Pipeline, spark: "SparkSession", views: Views, checkpoint: Checkpoint, generation: int
) -> list[Query]:
    for sink in pipeline.sinks.values():
        is_jars = isinstance(sink, TableSink) and sink.name not in pipeline.own_delta_tables
        if is_jars and isinstance(sink, TableSink) and sink.format is not TableFormat.PARQUET:
            check_format(spark, sink.format)
    return build(pipeline, views, checkpoint, generation)


def check_changes(
    pipeline: Pipeline, views: Views, checkpoint: Checkpoint, generation: int, note: Callable[[str], None]
) -> None:
    """Report the changes of the declaration since the checkpoint, and store the new one; FatalError if they need a
    replay."""
    texts = {name: transform.file.read_text() for name, transform in pipeline.transforms.items()}
    states = state_shapes({sink.view: views.frames[sink.view] for sink in pipeline.sinks.values()})
    wanted, kept = declared(pipeline, texts, states), checkpoint.declaration(generation)
    found = changes(kept, wanted) if kept is not None and checkpoint.begun(generation) else []
    if any(not change.is_kept for change in found):
        raise FatalError(
            f"the checkpoint in {checkpoint.directory} can't be kept: {'; '.join(map(str, found))}. "
            "Declare it as before, or compute again with: odradek pipeline replay --from-offset earliest --execute"
        )
    for change in found:
        note(f"declaration changed: {change}")
    checkpoint.keep_declaration(generation, wanted)


def _check_formats(pipeline: Pipeline) -> None:
    decodings = [source.decoding for source in pipeline.sources.values()]
    decodings += [dimension.decoding for dimension in pipeline.dimensions.values()]
    for decoding in decodings:
        check_package(decoding.encoding)
        if decoding.file is not None:
            check_schema_file(decoding, decoding.file)


def _identity(pipeline: Pipeline, cluster: str) -> Identity:
    return Identity(
        pipeline=pipeline.name,
        cluster=cluster,
        reads={name: list(source.topics) for name, source in pipeline.sources.items()},
        writes={query.name: query.target for query in plan(pipeline)},
    )


@contextmanager
def _locked(pipeline: Pipeline) -> Iterator[None]:
    make_directory(pipeline.state_directory)
    handle = os.open(pipeline.state_directory / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        other = read_status(pipeline.directory) or {}
        raise FatalError(
            f"pipeline {pipeline.name} is already running (process {other.get('pid', 'unknown')}); stop it with: "
            f"odradek pipeline stop {pipeline.directory}"
        ) from None
    try:
        yield
    finally:
        os.close(handle)


def _ignored(text: str) -> None:
    """Tell nobody."""


class StopRequest:
    """Handler of SIGTERM and Ctrl-C: the running batch is abandoned, and repeated at the next start."""

    def __init__(self) -> None:
        self.asked = False
        self._waits = False  # before there are queries, the end comes at once

    @contextmanager
    def heard(self) -> Iterator[None]:
        before = {number: signal.signal(number, self._ask) for number in (signal.SIGTERM, signal.SIGINT)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def wait_for_queries(self) -> None:
        """Stop running queries before the process ends. Restores our signal handler, which Spark has replaced."""
        signal.signal(signal.SIGINT, self._ask)
        self._waits = True

    def _ask(self, number: int, frame: FrameType | None) -> None:
        is_impatient = self.asked
        self.asked = True
        if is_impatient or not self._waits:
            raise KeyboardInterrupt

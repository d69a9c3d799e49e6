"""The DataFrames of a pipeline by name: sources, dimensions, then transforms after their inputs.

SQL sees them as temporary views; a Python transform gets those that its parameters name.
"""

import importlib.util
import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from traceback import extract_tb
from typing import TYPE_CHECKING, Any

from odradek.apps.pipeline.dimension_read import tasks_of, topic_rows
from odradek.apps.pipeline.input_streams import InputStreams, OffsetsByTopic
from odradek.apps.pipeline.quality import REASON, RECORD, branch_of, exchanged, good, judged
from odradek.apps.pipeline.spark_errors import in_one_sentence, is_sparks
from odradek.apps.pipeline.spec import Dimension, Pipeline, PythonTransform, Source, Transform
from odradek.base.errors import FatalError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class Views:
    """`starting` are the offsets to begin at where there is no checkpoint, instead of the declared start; `ends` the
    topics' end offsets now, as far as they are known.
    """

    def __init__(
        self,
        spark: "SparkSession",
        pipeline: Pipeline,
        starting: OffsetsByTopic | None = None,
        ends: OffsetsByTopic | None = None,
    ) -> None:
        self._spark = spark
        self._pipeline = pipeline
        self._streams = InputStreams(spark, pipeline, starting or {})
        self._ends = ends or {}
        self._frames: dict[str, DataFrame] = {}
        self._exchanges: dict[str, DataFrame] = {}

    @property
    def frames(self) -> "Mapping[str, DataFrame]":
        return self._frames

    def build(self) -> "Mapping[str, DataFrame]":
        for dimension in self._pipeline.dimensions.values():  # they need no stream, so they are first
            with _named(f"[dimensions.{dimension.name}]"):
                self._keep(dimension.name, self._dimension(dimension))
        for source in self._pipeline.sources.values():
            with _named(f"[sources.{source.name}]"):
                self._keep(source.name, self._source(source))
        for transform in self._pipeline.transforms.values():
            self._keep(transform.name, self._transformed(transform))
        return self._frames

    @property
    def streams(self) -> InputStreams:
        return self._streams

    def judgement(self, name: str) -> "DataFrame":
        """Input of dead letters: the topics of a source or a dimension, as a stream."""
        if name in self._exchanges:
            return branch_of(self._exchanges[name], self._pipeline.sources[name])
        dimension = self._pipeline.dimensions[name]
        return judged(self._streams.of(name).where("value IS NOT NULL"), dimension.decoding)

    def _keep(self, name: str, frame: "DataFrame") -> None:
        frame.createOrReplaceTempView(name)
        self._frames[name] = frame

    def _source(self, source: Source) -> "DataFrame":
        exchange = exchanged(judged(self._streams.of(source.name), source.decoding, source), source)
        self._exchanges[source.name] = exchange
        frame = good(branch_of(exchange, source))
        return frame.dropDuplicatesWithinWatermark(list(source.dedupe)) if source.dedupe else frame

    def _dimension(self, dimension: Dimension) -> "DataFrame":
        """The newest good record of each key; a tombstone takes its key away."""
        from pyspark.sql import functions as F

        tasks = tasks_of(self._ends.get(dimension.topic))
        connection = {"kafka.bootstrap.servers": self._pipeline.bootstrap}
        rows = topic_rows(self._spark, connection, dimension.topic, tasks)
        judgement = judged(rows, dimension.decoding)
        kept = judgement.where(F.col(REASON).isNull() | F.col("_value").isNull())
        newest = F.max_by(F.struct(*kept.columns), F.col(f"{RECORD}.offset")).alias("newest")
        latest = kept.groupBy(f"{RECORD}.partition", f"{RECORD}.key").agg(newest).select("newest.*")
        rows = latest.where(F.col(REASON).isNull()).drop(REASON, "_value", RECORD)
        # Few tasks read the rows, so Spark would estimate them as few and send them to every task of a join. A
        # transform can still ask for that: its BROADCAST overrides this hint.
        return rows.hint("merge")

    def _transformed(self, transform: Transform) -> "DataFrame":
        from pyspark.errors import AnalysisException

        with in_one_sentence(f"{transform.file.name}: "):
            if isinstance(transform, PythonTransform):
                return self._called(transform)
            try:
                return self._spark.sql(transform.file.read_text())
            except AnalysisException as error:
                if error.getCondition() != "TABLE_OR_VIEW_NOT_FOUND":
                    raise
                name = (error.getMessageParameters() or {}).get("relationName", "?")
                raise self._unknown(transform.file, f"there is no {name}") from None

    def _unknown(self, file: Path, what: str) -> FatalError:
        return FatalError(f"{file.name}: {what}; declared before it are: {', '.join(self._frames)}")

    def _called(self, transform: PythonTransform) -> "DataFrame":
        from pyspark.sql import DataFrame

        function = load_function(transform.file, transform.function)
        arguments: dict[str, Any] = {}
        for name in inspect.signature(function).parameters:
            if name == "spark":
                arguments[name] = self._spark
            elif name in self._frames:
                arguments[name] = self._frames[name]
            else:
                raise self._unknown(transform.file, f"{transform.function} wants {name!r}")
        try:
            frame = function(**arguments)
        except Exception as error:  # any error of the user's function, except errors of Spark
            if is_sparks(error):
                raise
            where = next(
                (f.lineno for f in reversed(extract_tb(error.__traceback__)) if f.filename == str(transform.file)), 0
            )
            raise FatalError(f"{transform.file.name}, line {where}: {type(error).__name__}: {error}") from error
        if not isinstance(frame, DataFrame):
            raise FatalError(f"{transform.file.name}: {transform.function} returns {frame!r}, which is not a DataFrame")
        return frame


@contextmanager
def _named(section: str) -> Iterator[None]:
    """Name the section of pipeline.toml in an error about it."""
    try:
        with in_one_sentence(f"{section}: "):
            yield
    except FatalError as error:
        if str(error).startswith("["):
            raise
        raise FatalError(f"{section}: {error}") from error


def load_function(path: Path, name: str) -> Callable[..., Any]:
    spec = importlib.util.spec_from_file_location(f"odradek_transform_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:  # any error of the user's module at its import
        raise FatalError(f"{path.name} can't be imported: {type(error).__name__}: {error}") from error
    function = getattr(module, name, None)
    if not callable(function):
        raise FatalError(f"{path.name} has no function {name}")
    return function  # type: ignore[no-any-return]

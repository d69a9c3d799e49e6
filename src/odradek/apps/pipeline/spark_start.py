"""Start and end of a run's Spark: the JVM begins as soon as its options are known, the session follows."""

from collections.abc import Callable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Self

from odradek.apps.pipeline.session import SparkTarget, start_jvm, start_session
from odradek.apps.pipeline.spec import Pipeline

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from odradek.apps.pipeline.spark_jvm import SparkJvm


class SparkStart:
    def __init__(self, pipeline: Pipeline, target: SparkTarget, *, has_ui: bool, note: Callable[[str], None]) -> None:
        self._pipeline = pipeline
        self._target = target
        self._settings: Mapping[str, str] = {"spark.ui.enabled": str(has_ui).lower(), **pipeline.spark}
        self._note = note
        self._jvm: SparkJvm | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._jvm is None:
            return
        with self._jvm:
            if error is None and self._jvm.is_recording:
                self._note("Spark's classes are stored, so that the next start is faster …")
                self._jvm.stop()

    def begin(self, options: Mapping[str, str], *, may_record: bool = False) -> None:
        """Start the JVM of a local Spark with these settings, unless the project has others."""
        self._note("Spark starts …")
        if self._target.is_local:
            self._settings = {**options, **self._settings}
            arguments = (self._pipeline.name, self._target, self._settings, self._pipeline.state_directory)
            self._jvm = start_jvm(*arguments, may_record=may_record)

    def session(self) -> "SparkSession":
        arguments = (self._pipeline.name, self._target, self._settings, self._pipeline.state_directory)
        return start_session(*arguments, self._jvm)

"""Declaration of a pipeline: the values of `pipeline.toml`, checked against each other, without Spark."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from odradek.apps.pipeline.kafka_settings import KafkaSettings


class Encoding(StrEnum):
    """Encoding of a record's value."""

    JSON = "json"
    CSV = "csv"
    TEXT = "text"
    AVRO = "avro"
    PROTOBUF = "protobuf"


class TableFormat(StrEnum):
    """Format of a table. Delta is committed by the pipeline itself, or by Delta's package where Spark has it."""

    PARQUET = "parquet"
    DELTA = "delta"
    ICEBERG = "iceberg"


class Mode(StrEnum):
    """Output mode of an aggregate: a row is written once it is final, or each time it changes."""

    APPEND = "append"
    UPDATE = "update"


class Delivery(StrEnum):
    """Delivery guarantee of output topics: with transactions, or for brokers without them."""

    EXACTLY_ONCE = "exactly-once"
    AT_LEAST_ONCE = "at-least-once"


@dataclass(frozen=True, slots=True)
class Decoding:
    """Decoding of a topic's values into columns: `schema` is Spark's DDL, `file` an Avro schema or a set of
    descriptors.
    """

    encoding: Encoding
    schema: str
    file: Path | None = None
    message: str = ""
    options: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Watermark:
    column: str
    delay: str


@dataclass(frozen=True, slots=True)
class Source:
    """A stream of records. Records that break a rule, or can't be decoded, become dead letters."""

    name: str
    topics: tuple[str, ...]
    decoding: Decoding
    start: str
    rules: Mapping[str, str]
    watermark: Watermark | None
    late_after: str | None
    dedupe: tuple[str, ...]
    fail_on_data_loss: bool = True


@dataclass(frozen=True, slots=True)
class Dimension:
    """A compacted topic as a table: the last value of each key, read anew for every batch."""

    name: str
    topic: str
    decoding: Decoding


@dataclass(frozen=True, slots=True)
class SqlTransform:
    name: str
    file: Path


@dataclass(frozen=True, slots=True)
class PythonTransform:
    """A function that gets the DataFrames that its parameters name."""

    name: str
    file: Path
    function: str


Transform = SqlTransform | PythonTransform


@dataclass(frozen=True, slots=True)
class TopicSink:
    name: str
    view: str
    mode: Mode
    topic: str
    key: tuple[str, ...]
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TableSink:
    name: str
    view: str
    mode: Mode
    path: Path
    format: TableFormat
    partition_by: tuple[str, ...]
    history: int = 1000  # versions of a Delta table that can be read


@dataclass(frozen=True, slots=True)
class ConsoleSink:
    name: str
    view: str
    mode: Mode
    rows: int


Sink = TopicSink | TableSink | ConsoleSink


@dataclass(frozen=True, slots=True)
class Pipeline:
    name: str
    directory: Path
    bootstrap: str
    trigger: str
    records_per_batch_max: int
    dead_letters: str
    delivery: Delivery
    checkpoint: Path
    metrics_port: int | None
    spark: Mapping[str, str]
    sources: Mapping[str, Source]
    dimensions: Mapping[str, Dimension]
    transforms: Mapping[str, Transform]
    sinks: Mapping[str, Sink]
    kafka: KafkaSettings = field(default_factory=KafkaSettings)

    @property
    def state_directory(self) -> Path:
        """Directory for other commands and for the next run."""
        return self.directory / ".odradek"

    @property
    def own_delta_tables(self) -> dict[str, TableSink]:
        """Delta tables that the pipeline commits to itself: those of a Spark without Delta's package."""
        given = self.spark.get("spark.jars.packages", ""), self.spark.get("spark.sql.extensions", "")
        if "delta-spark" in given[0] or "io.delta" in given[1]:
            return {}
        sinks = ((name, sink) for name, sink in self.sinks.items() if isinstance(sink, TableSink))
        return {name: sink for name, sink in sinks if sink.format is TableFormat.DELTA}

    @property
    def input_topics(self) -> tuple[str, ...]:
        topics = [topic for source in self.sources.values() for topic in source.topics]
        return tuple(dict.fromkeys([*topics, *(dimension.topic for dimension in self.dimensions.values())]))

    @property
    def output_topics(self) -> tuple[str, ...]:
        sinks = [sink.topic for sink in self.sinks.values() if isinstance(sink, TopicSink)]
        return tuple(dict.fromkeys([*sinks, self.dead_letters]))

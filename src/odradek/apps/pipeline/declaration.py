"""Reads `pipeline.toml` into a `Pipeline`: every key is known, every name resolves, every mistake is one sentence.

No Spark here: `validate` checks schemas, SQL and functions, by planning the queries.
"""

import re
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

from odradek.apps.pipeline.kafka_settings import KafkaSettings, read_kafka_settings
from odradek.apps.pipeline.spec import (
    ConsoleSink,
    Decoding,
    Delivery,
    Dimension,
    Encoding,
    Mode,
    Pipeline,
    PythonTransform,
    Sink,
    Source,
    SqlTransform,
    TableFormat,
    TableSink,
    TopicSink,
    Transform,
    Watermark,
)
from odradek.apps.pipeline.toml_section import FILE_NAME, Section
from odradek.base.errors import FatalError, KafkaError
from odradek.client.bootstrap import DEFAULT_BOOTSTRAP, parse_bootstrap
from odradek.model.topic_names import name_fault

_DEFAULT_TRIGGER = "1 second"
# A batch of any size has a cost of its own, seconds of CPU on a JVM that has just started (decision 0029).
_DEFAULT_RECORDS_PER_BATCH_MAX = 250_000
_CONSOLE_ROWS = 20
_TABLE_HISTORY = 1000
# Intervals as Spark reads them, without months and years, which triggers and watermarks refuse.
_UNIT_SECONDS = {
    "microsecond": 1e-6,
    "millisecond": 1e-3,
    "second": 1.0,
    "minute": 60.0,
    "hour": 3600.0,
    "day": 86_400.0,
    "week": 604_800.0,
}
_DURATION = re.compile(rf"(\d+ *({'|'.join(_UNIT_SECONDS)})s?( +|$))+", re.IGNORECASE)
_PART = re.compile(rf"(\d+) *({'|'.join(_UNIT_SECONDS)})", re.IGNORECASE)

T = TypeVar("T")


def read_pipeline(directory: Path) -> Pipeline:
    path = directory / FILE_NAME
    try:
        document = Section("", tomllib.loads(path.read_text()))
    except (FileNotFoundError, NotADirectoryError):
        raise FatalError(
            f"there is no {FILE_NAME} in {directory}; start a project with: odradek pipeline init NAME"
        ) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise FatalError(f"{path} is invalid TOML: {error}") from None
    except OSError as error:
        raise FatalError(f"{path} can't be read: {error.strerror}") from None
    pipeline = _pipeline(directory.absolute(), document)
    _check_references(pipeline)
    return pipeline


def _pipeline(directory: Path, document: Section) -> Pipeline:
    head = document.section("pipeline")
    name = head.text("name")
    if name_fault(name):
        raise head.wrong(f"name {name!r}: letters, digits, '.', '_' and '-' make a name")
    pipeline = Pipeline(
        name=name,
        directory=directory,
        bootstrap=_bootstrap(head),
        trigger=_duration(head, "trigger", head.text("trigger", _DEFAULT_TRIGGER)),
        records_per_batch_max=head.whole("records_per_batch_max", _DEFAULT_RECORDS_PER_BATCH_MAX),
        dead_letters=_topic(head, head.text("dead_letters", f"{name}.dead-letters")),
        delivery=head.choice("delivery", Delivery, Delivery.EXACTLY_ONCE),
        checkpoint=_local_path(head, directory, head.text("checkpoint", ".odradek/checkpoint")),
        metrics_port=head.whole("metrics_port", 0) if head.has("metrics_port") else None,
        spark=document.mapping("spark"),
        sources=_each(document, "sources", _source, directory),
        dimensions=_each(document, "dimensions", _dimension, directory),
        transforms=_each(document, "transforms", _transform, directory),
        sinks=_each(document, "sinks", _sink, directory),
        kafka=_kafka(head, directory),
    )
    head.finish()
    document.finish()
    return pipeline


def _kafka(head: Section, directory: Path) -> KafkaSettings:
    return read_kafka_settings(head.section("kafka"), directory) if head.has("kafka") else KafkaSettings()


def _bootstrap(head: Section) -> str:
    text = head.text("bootstrap", DEFAULT_BOOTSTRAP)
    try:
        parse_bootstrap(text)
    except KafkaError as error:
        raise head.wrong(f"bootstrap {error.message}") from None
    return text


def _duration(section: Section, key: str, text: str) -> str:
    if not _DURATION.fullmatch(text.strip()):
        raise section.wrong(f"{key} {text!r} is not a duration such as '10 seconds' or '1 hour 30 minutes'")
    return text


def _seconds(duration: str) -> float:
    return sum(float(number) * _UNIT_SECONDS[unit.lower()] for number, unit in _PART.findall(duration))


def _each(document: Section, key: str, read: Callable[[str, Section, Path], T], directory: Path) -> dict[str, T]:
    found: dict[str, T] = {}
    for name, section in document.sections(key).items():
        if not name.isidentifier():
            raise section.wrong(f"{name!r} is not a name for SQL: letters, digits and '_'")
        found[name] = read(name, section, directory)
        section.finish()
    return found


def _source(name: str, section: Section, directory: Path) -> Source:
    topics = tuple(_topic(section, topic) for topic in section.texts("topic"))
    if not topics:
        raise section.needs("topic", 'needs topic = "…"')
    watermark = None
    if section.has("watermark"):
        given = section.section("watermark")
        watermark = Watermark(given.text("column"), _duration(given, "delay", given.text("delay")))
        given.finish()
    late_after = section.maybe_text("late_after")
    source = Source(
        name=name,
        topics=topics,
        decoding=_decoding(section, directory),
        start=section.text("start", "earliest"),
        rules=section.mapping("rules"),
        watermark=watermark,
        late_after=late_after and _duration(section, "late_after", late_after),
        dedupe=section.texts("dedupe"),
        fail_on_data_loss=section.flag("fail_on_data_loss", default=True),
    )
    if source.start not in ("earliest", "latest"):
        raise section.wrong(f"start is earliest or latest, not {source.start!r}; for another place: pipeline replay")
    if watermark is None and (source.dedupe or source.late_after):
        what = "dedupe" if source.dedupe else "late_after"
        raise section.needs("watermark", f'{what} needs watermark = {{ column = "…", delay = "…" }}')
    if watermark and source.late_after and _seconds(source.late_after) > _seconds(watermark.delay):
        raise section.wrong(
            f"late_after {source.late_after!r} is longer than the watermark's delay {watermark.delay!r}: Spark would "
            "drop late records before they become dead letters"
        )
    return source


def _dimension(name: str, section: Section, directory: Path) -> Dimension:
    return Dimension(name, _topic(section, section.text("topic")), _decoding(section, directory))


def _decoding(section: Section, directory: Path) -> Decoding:
    encoding = section.choice("format", Encoding, Encoding.JSON)
    file: Path | None = None
    message = ""
    if encoding is Encoding.AVRO:
        file = _existing(section, directory, section.text("avro_schema"))
    if encoding is Encoding.PROTOBUF:
        file = _existing(section, directory, section.text("descriptors"))
        message = section.text("message")
    schema = section.text("schema", "value STRING" if encoding is Encoding.TEXT else None)
    return Decoding(encoding, schema, file, message, section.mapping("options"))


def _transform(name: str, section: Section, directory: Path) -> Transform:
    if section.has("sql") == section.has("python"):
        raise section.needs("sql", 'needs sql = "FILE" or python = "FILE:FUNCTION"')
    if section.has("sql"):
        return SqlTransform(name, _existing(section, directory, section.text("sql")))
    file, colon, function = section.text("python").rpartition(":")
    if not colon or not function.isidentifier():
        raise section.wrong('python is "FILE:FUNCTION"')
    return PythonTransform(name, _existing(section, directory, file), function)


def _sink(name: str, section: Section, directory: Path) -> Sink:
    view, mode = section.text("from"), section.choice("mode", Mode, Mode.APPEND)
    kinds = [kind for kind in ("topic", "table", "console") if section.has(kind)]
    if len(kinds) != 1:
        raise section.needs("topic", 'writes to one of topic = "…", table = "…" and console = ROWS')
    if kinds == ["topic"]:
        topic = _topic(section, section.text("topic"))
        return TopicSink(name, view, mode, topic, section.texts("key"), section.texts("columns"))
    if kinds == ["console"]:
        return ConsoleSink(name, view, mode, section.whole("console", _CONSOLE_ROWS))
    if mode is Mode.UPDATE:
        raise section.wrong('a table takes rows once they are final: mode = "append"')
    return TableSink(
        name,
        view,
        mode,
        _local_path(section, directory, section.text("table")),
        section.choice("format", TableFormat, TableFormat.DELTA),
        section.texts("partition_by"),
        section.whole("history", _TABLE_HISTORY),
    )


def _topic(section: Section, name: str) -> str:
    if problem := name_fault(name):
        raise section.wrong(f"topic {name!r}: {problem}")
    return name


def _existing(section: Section, directory: Path, name: str) -> Path:
    path = directory / name
    if not path.is_file():
        raise section.wrong(f"names {name}, which is not there")
    return path


def _local_path(section: Section, directory: Path, name: str) -> Path:
    """Refuse object stores: batches are completed by a rename, which they don't have."""
    scheme, separator, rest = name.partition("://")
    if separator and scheme != "file":
        raise section.wrong(f"{name}: only directories that this machine mounts can be used")
    return directory / (rest if separator else name)


def _check_references(pipeline: Pipeline) -> None:
    views: list[str] = []
    for kind, names in (
        ("sources", pipeline.sources),
        ("dimensions", pipeline.dimensions),
        ("transforms", pipeline.transforms),
    ):
        for name in names:
            if name in views:
                raise FatalError(f"{FILE_NAME}: [{kind}.{name}] has a name that is taken already")
            views.append(name)
    if not pipeline.sources:
        raise FatalError(f"{FILE_NAME} declares no source: [sources.NAME]")
    if not pipeline.sinks:
        raise FatalError(f"{FILE_NAME} declares no sink: [sinks.NAME]")
    for sink in pipeline.sinks.values():
        if sink.view not in views:
            raise FatalError(
                f"{FILE_NAME}: [sinks.{sink.name}] reads from {sink.view!r}; there are: {', '.join(views)}"
            )
    _check_loops(pipeline)


def _check_loops(pipeline: Pipeline) -> None:
    for topic in pipeline.output_topics:
        if topic in pipeline.input_topics:
            raise FatalError(f"{FILE_NAME}: topic {topic!r} is read and written: the pipeline would feed itself")
    paths: Mapping[Path, str] = {}
    for sink in pipeline.sinks.values():
        if isinstance(sink, TableSink):
            if sink.path in paths:
                raise FatalError(f"{FILE_NAME}: [sinks.{paths[sink.path]}] and [sinks.{sink.name}] share a table")
            paths = {**paths, sink.path: sink.name}

"""A pipeline in a test: a project of a few lines, run on the shared session until it has read what is there."""

import time
from collections.abc import Callable, Mapping
from pathlib import Path

from pyspark.sql import SparkSession

from odradek.apps.demo.proof import topic_records
from odradek.apps.pipeline.declaration import read_pipeline
from odradek.apps.pipeline.progress import QueryProgressBoard
from odradek.apps.pipeline.queries import Query, build
from odradek.apps.pipeline.runner import claim
from odradek.apps.pipeline.spec import Pipeline
from odradek.apps.pipeline.supervisor import Supervisor
from odradek.apps.pipeline.views import Views
from odradek.protocol.records import Record

PATIENCE_S = 500
Wrap = Callable[[Query], Query]


def declare(directory: Path, text: str, files: Mapping[str, str] | None = None) -> Pipeline:
    directory.mkdir(exist_ok=True)
    (directory / "pipeline.toml").write_text(text)
    for name, content in (files or {}).items():
        (directory / name).write_text(content)
    return read_pipeline(directory)


def run_once(spark: SparkSession, pipeline: Pipeline, wrap: Wrap | None = None) -> None:
    """Until every query has read what is there."""
    checkpoint, identity = claim(pipeline, lambda note: None)
    queries = build(pipeline, Views(spark, pipeline, identity.starting), checkpoint, identity.generation)
    checkpoint.keep_queries(identity.generation, [query.shared for query in queries])
    chosen = [wrap(query) if wrap else query for query in queries]
    supervisor = Supervisor(
        chosen, checkpoint, identity.generation, None, QueryProgressBoard([query.name for query in chosen])
    )
    deadline = time.monotonic() + PATIENCE_S
    try:
        while supervisor.tend():
            assert time.monotonic() < deadline, "the queries don't come to an end"
            time.sleep(0.1)
    finally:
        supervisor.stop()


def header(record: Record, name: str) -> str:
    found = [value for key, value in record.headers if (key if isinstance(key, str) else key.decode()) == name]
    return (found[0] or b"").decode() if found else ""


def dead_letters(bootstrap: str, topic: str) -> dict[tuple[int, int], str]:
    """The reason of each, by the partition and offset that it came from. Fails if one is there twice."""
    records = topic_records(bootstrap, topic)
    found = {
        (int(header(record, "odradek.partition")), int(header(record, "odradek.offset"))): header(
            record, "odradek.reason"
        )
        for record in records
    }
    assert len(found) == len(records), "a dead letter is there twice"
    return found

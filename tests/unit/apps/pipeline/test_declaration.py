"""`pipeline.toml`: what is declared is read, what is wrong is told in one sentence."""

import re
from pathlib import Path

import pytest

from odradek.apps.pipeline.declaration import read_pipeline
from odradek.apps.pipeline.scaffold import init_project
from odradek.apps.pipeline.spec import Mode, PythonTransform, SqlTransform, TableSink, TopicSink
from odradek.base.errors import FatalError

SMALLEST = """
[pipeline]
name = "p"
[sources.events]
topic = "events"
schema = "a STRING"
[sinks.out]
from = "events"
topic = "out"
"""


def declared(directory: Path, text: str) -> Path:
    (directory / "pipeline.toml").write_text(text)
    return directory


def test_the_project_that_init_writes_is_a_pipeline(tmp_path: Path) -> None:
    files = init_project(tmp_path / "shop", "shop", "127.0.0.1:1")
    assert {str(file) for file in files} >= {"pipeline.toml", ".gitignore", "generate.py", "tests/test_pipeline.py"}
    pipeline = read_pipeline(tmp_path / "shop")
    assert pipeline.bootstrap == "127.0.0.1:1"
    assert pipeline.input_topics == ("shop.orders", "shop.categories")
    assert pipeline.output_topics == ("shop.revenue", "shop.dead-letters")
    assert isinstance(pipeline.transforms["priced"], SqlTransform)
    assert isinstance(pipeline.transforms["revenue"], PythonTransform)
    table, topic = pipeline.sinks["orders_table"], pipeline.sinks["revenue_topic"]
    assert isinstance(table, TableSink)
    assert table.path == tmp_path / "shop" / "data" / "orders"
    assert isinstance(topic, TopicSink)
    assert (topic.mode, topic.key) == (Mode.UPDATE, ("category", "window_start"))


def test_a_project_is_not_written_over_another(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(FatalError, match="not empty"):
        init_project(tmp_path, "p", "127.0.0.1:1")
    with pytest.raises(FatalError, match="can't name a pipeline"):
        init_project(tmp_path / "new", "a b", "127.0.0.1:1")


def test_what_is_not_said_has_a_default(tmp_path: Path) -> None:
    pipeline = read_pipeline(declared(tmp_path, SMALLEST))
    assert (pipeline.bootstrap, pipeline.trigger, pipeline.dead_letters) == (
        "127.0.0.1:9092",
        "1 second",
        "p.dead-letters",
    )
    assert pipeline.checkpoint == tmp_path / ".odradek" / "checkpoint"
    assert pipeline.metrics_port is None


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (("[pipeline]", "[nothing]"), "needs [pipeline]"),
        (('name = "p"', 'name = "a b"'), "make a name"),
        (('name = "p"', 'name = "p"\ncolour = 3'), "takes no colour; it takes name, bootstrap, trigger"),
        (('name = "p"', 'name = "p"\ntriger = "1 second"'), "[pipeline] takes no triger; did you mean trigger?"),
        (("[sinks.out]", "[sink.out]"), "pipeline.toml: takes no sink; did you mean sinks?"),
        (('topic = "out"', 'topic = "out"\nkeys = "a"'), "[sinks.out] takes no keys; did you mean key?"),
        (('name = "p"', 'name = "p"\nbootstrap = "h:x"'), "[pipeline] bootstrap 'h:x' is not HOST:PORT"),
        (('name = "p"', 'name = "p"\ntrigger = "soon"'), "[pipeline] trigger 'soon' is not a duration such as"),
        (('name = "p"', 'name = "p"\ntrigger = "5"'), "[pipeline] trigger '5' is not a duration such as"),
        (
            ('schema = "a STRING"', 'schema = "a STRING"\nwatermark = { column = "a", delay = "1 hour two" }'),
            "[sources.events.watermark] delay '1 hour two' is not a duration",
        ),
        (('topic = "events"', "topic = 3"), "topic is a text or a list of texts"),
        (('topic = "events"', 'topic = "a/b"'), "topic 'a/b'"),
        (('topic = "events"', 'topci = "events"'), "[sources.events] takes no topci; did you mean topic?"),
        (('schema = "a STRING"', 'shema = "a STRING"'), "[sources.events] takes no shema; did you mean schema?"),
        (
            ('schema = "a STRING"', 'schema = "a STRING"\ndedupe = "a"\nwatermrk = { column = "a", delay = "1 hour" }'),
            "takes no watermrk; did you mean watermark?",
        ),
        (
            (
                'schema = "a STRING"',
                'schema = "a STRING"\nwatermark = { column = "a", delay = "1 minute" }\nlate_after = "90 seconds"',
            ),
            "late_after '90 seconds' is longer than the watermark's delay '1 minute'",
        ),
        (('schema = "a STRING"', ""), 'needs schema = "…"'),
        (('schema = "a STRING"', 'schema = "a STRING"\nformat = "xml"'), "one of json, csv, text, avro, protobuf"),
        (('schema = "a STRING"', 'schema = "a STRING"\nformat = "avro"'), "needs avro_schema"),
        (('schema = "a STRING"', 'schema = "a STRING"\ndedupe = "a"'), "dedupe needs watermark"),
        (('schema = "a STRING"', 'schema = "a STRING"\nstart = "noon"'), "earliest or latest"),
        (('from = "events"', 'from = "orders"'), "reads from 'orders'; there are: events"),
        (('topic = "out"', ""), "writes to one of"),
        (('topic = "out"', 'topic = "out"\ntable = "t"'), "writes to one of"),
        (('topic = "out"', 'table = "t"\nmode = "update"'), "rows once they are final"),
        (('topic = "out"', 'table = "s3://bucket/t"'), "directories that this machine mounts"),
        (('topic = "out"', 'topic = "events"'), "would feed itself"),
        (('[sinks.out]\nfrom = "events"\ntopic = "out"', ""), "declares no sink"),
        (("[sinks.out]", '[transforms.t]\nsql = "no.sql"\n[sinks.out]'), "names no.sql, which is not there"),
        (("[sinks.out]", "[transforms.t]\n[sinks.out]"), "needs sql"),
        (("[sources.events]", '[sources."e v"]'), "not a name for SQL"),
        (("[pipeline]", "[pipeline"), "is invalid TOML"),
    ],
)
def test_a_mistake_is_told(tmp_path: Path, change: tuple[str, str], told: str) -> None:
    assert change[0] in SMALLEST
    with pytest.raises(FatalError, match=re.escape(told)):
        read_pipeline(declared(tmp_path, SMALLEST.replace(*change)))


def test_without_a_project_it_is_told_how_to_start_one(tmp_path: Path) -> None:
    with pytest.raises(FatalError, match="odradek pipeline init"):
        read_pipeline(tmp_path)

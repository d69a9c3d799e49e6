"""Sinks that read the same sources share a query; what keeps them apart; what a checkpoint holds together."""

from pathlib import Path

import pytest

from odradek.apps.pipeline.checkpoint import Checkpoint
from odradek.apps.pipeline.declaration import read_pipeline
from odradek.apps.pipeline.sharing import SharedQuery, share, sources_of_views
from odradek.apps.pipeline.spec import Mode, Pipeline
from odradek.base.errors import FatalError

HEAD = """
[pipeline]
name = "p"
[sources.orders]
topic = "o"
schema = "id STRING"
[sources.payments]
topic = "y"
schema = "id STRING"
[dimensions.kinds]
topic = "k"
schema = "kind INT"
[transforms.named]
sql = "named.sql"
[transforms.sums]
python = "sums.py:sums"
[transforms.settled]
sql = "settled.sql"
"""
FILES = {
    "named.sql": "SELECT * FROM Orders JOIN kinds USING (kind)",
    "sums.py": "import payments\n\ndef other(settled): ...\n\ndef sums(\n    named, spark\n):\n    ...\n",
    "settled.sql": "SELECT * FROM named JOIN payments USING (id)",
}
TABLE = '[sinks.{0}]\nfrom = "{1}"\ntable = "{0}"\n'
TOPIC = '[sinks.{0}]\nfrom = "{1}"\ntopic = "{0}"\nmode = "{2}"\n'


def declared(directory: Path, *sinks: str) -> Pipeline:
    (directory / "pipeline.toml").write_text(HEAD + "".join(sinks))
    for name, text in FILES.items():
        (directory / name).write_text(text)
    return read_pipeline(directory)


def shared(pipeline: Pipeline, *bound: str, kept: list[SharedQuery] | None = None) -> list[SharedQuery]:
    texts = {name: transform.file.read_text() for name, transform in pipeline.transforms.items()}
    return share(pipeline, sources_of_views(pipeline, texts), bound, kept or [])


def test_a_view_reads_the_sources_that_its_text_names(tmp_path: Path) -> None:
    pipeline = declared(tmp_path, TABLE.format("t", "named"))
    texts = {name: transform.file.read_text() for name, transform in pipeline.transforms.items()}
    assert sources_of_views(pipeline, texts) == {
        "orders": {"orders"},
        "payments": {"payments"},
        "kinds": set(),
        "named": {"orders"},
        "sums": {"orders"},  # by its parameters, whatever else its file names
        "settled": {"orders", "payments"},
    }


def test_sinks_of_one_source_and_all_dead_letters_share_a_query(tmp_path: Path) -> None:
    pipeline = declared(tmp_path, TABLE.format("t", "named"), TOPIC.format("s", "sums", "update"))
    assert shared(pipeline, "sums") == [
        SharedQuery("orders", ("t", "s"), ("named", "sums"), ("orders", "kinds"), Mode.UPDATE),
        SharedQuery("payments", (), (), ("payments",), Mode.APPEND),
    ]


def test_modes_and_sources_keep_sinks_apart(tmp_path: Path) -> None:
    pipeline = declared(
        tmp_path,
        TABLE.format("final", "sums"),
        TOPIC.format("growing", "sums", "update"),
        TABLE.format("plain", "named"),
        TABLE.format("same", "named"),
        TABLE.format("joined", "settled"),
    )
    queries = {query.name: (query.sinks, query.mode) for query in shared(pipeline, "sums", "settled")}
    assert queries == {
        "orders": (("final", "plain", "same"), Mode.APPEND),
        "orders.growing": (("growing",), Mode.UPDATE),
        "orders_payments": (("joined",), Mode.APPEND),
    }


def test_one_aggregate_in_update_mode_for_each_query(tmp_path: Path) -> None:
    views = (TOPIC.format("a", "sums", "update"), TOPIC.format("b", "sums", "update"))
    pipeline = declared(tmp_path, *views, TOPIC.format("c", "named", "update"))
    assert [query.sinks for query in shared(pipeline, "sums", "named")][:2] == [("a", "b"), ("c",)]


def test_a_checkpoint_keeps_its_queries_and_a_later_sink_gets_its_own(tmp_path: Path) -> None:
    checkpoint = Checkpoint(tmp_path / "checkpoint")
    first = shared(declared(tmp_path, TABLE.format("t", "named")))
    checkpoint.keep_queries(1, first)
    assert checkpoint.queries(1) == first
    more = declared(tmp_path, TABLE.format("early", "named"), TABLE.format("t", "named"))
    later = shared(more, kept=checkpoint.queries(1))
    assert later == [*first, SharedQuery("orders.early", ("early",), ("named",), (), Mode.APPEND)]
    for changed, told in (
        (TABLE.format("t", "orders"), "reads orders now|read by none"),
        (TABLE.format("u", "named"), ""),
    ):
        with pytest.raises(FatalError, match=f"query orders has state .*({told}).*odradek pipeline replay"):
            shared(declared(tmp_path, changed), kept=first)


def test_a_checkpoint_with_a_query_for_each_sink_is_told(tmp_path: Path) -> None:
    checkpoint = Checkpoint(tmp_path)
    assert checkpoint.queries(1) == []
    (tmp_path / "g1" / "orders_table" / "commits").mkdir(parents=True)
    with pytest.raises(FatalError, match=r"sinks share queries now.*odradek pipeline replay"):
        checkpoint.queries(1)

"""A declaration that differs from the checkpoint's: what is kept, what must be replayed."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from odradek.apps.pipeline.declaration import read_pipeline
from odradek.apps.pipeline.declaration_changes import changes, declared
from odradek.apps.pipeline.scaffold import init_project
from odradek.apps.pipeline.spec import ConsoleSink, Mode, Pipeline, Watermark

STATES = {
    "priced": ["DeduplicateWithinWatermark by order_id string"],
    "revenue": ["Aggregate by category: sum(amount)"],
}


@pytest.fixture
def pipeline(tmp_path: Path) -> Pipeline:
    init_project(tmp_path / "shop", "shop", "127.0.0.1:1")
    return read_pipeline(tmp_path / "shop")


def texts(pipeline: Pipeline) -> dict[str, str]:
    return {name: transform.file.read_text() for name, transform in pipeline.transforms.items()}


def told(before: Pipeline, after: Pipeline, **given: Any) -> list[tuple[str, bool]]:
    kept = declared(before, texts(before), STATES)
    found = changes(kept, declared(after, given.get("texts", texts(after)), given.get("states", STATES)))
    return [(change.what, change.is_kept) for change in found]


def with_source(pipeline: Pipeline, **values: Any) -> Pipeline:
    return replace(pipeline, sources={"orders": replace(pipeline.sources["orders"], **values)})


def test_the_same_declaration_has_no_changes_and_neither_have_comments(pipeline: Pipeline) -> None:
    commented = {
        "priced": f"-- new words\n{texts(pipeline)['priced']}",
        "revenue": texts(pipeline)["revenue"] + "\n# x\n",
    }
    assert told(pipeline, pipeline, texts=commented) == []


def test_rules_schema_and_transforms_hold_from_the_next_batch_on(pipeline: Pipeline) -> None:
    after = with_source(pipeline, rules={"positive": "amount > 1"}, late_after=None)
    other = {**texts(pipeline), "priced": "SELECT order_id FROM orders"}
    assert told(pipeline, after, texts=other) == [
        ("[sources.orders] has other rules", True),
        ("[sources.orders] has another late_after", True),
        ("[transforms.priced] computes something else", True),
    ]


def test_other_state_needs_a_replay(pipeline: Pipeline) -> None:
    states = {**STATES, "revenue": ["Aggregate by customer: sum(amount)"]}
    assert told(pipeline, pipeline, states=states) == [("revenue keeps other state", False)]


def test_other_keys_or_event_times_need_a_replay(pipeline: Pipeline) -> None:
    after = with_source(pipeline, dedupe=("customer",), watermark=Watermark("sold_at", "2 minutes"))
    assert told(pipeline, after) == [
        ("[sources.orders] has its watermark on another column", False),
        ("[sources.orders] deduplicates by other columns", False),
    ]


def test_sinks_come_and_go(pipeline: Pipeline) -> None:
    after = replace(pipeline, sinks={**pipeline.sinks, "screen": ConsoleSink("screen", "revenue", Mode.UPDATE, 5)})
    assert told(pipeline, after) == [("[sinks.screen] is new", True)]
    assert told(after, pipeline) == [("[sinks.screen] is gone", True)]

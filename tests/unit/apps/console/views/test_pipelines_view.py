"""The Pipelines screen before a run has queries."""

import pytest

from odradek.apps.console.readings.pipelines import PipelinesState
from odradek.apps.console.views.pipelines import pipelines_html


@pytest.mark.parametrize(
    ("doing", "text"),
    [("starting", "Spark is starting"), ("failed", "It failed before"), ("stopped", "It has no query.")],
)
def test_a_run_without_queries_says_why(doing: str, text: str) -> None:
    document = {"pipeline": "shop", "project": "/shop", "state": doing, "queries": []}
    assert text in pipelines_html(PipelinesState(0, (document,)), read_only=False)


@pytest.mark.parametrize(("doing", "is_there"), [("running", True), ("starting", True), ("stopped", False)])
def test_sparks_page_is_linked_while_it_is_there(doing: str, is_there: bool) -> None:
    document = {"pipeline": "shop", "state": doing, "queries": [], "spark_ui": "http://127.0.0.1:4040"}
    assert ("Spark UI" in pipelines_html(PipelinesState(0, (document,)), read_only=False)) == is_there

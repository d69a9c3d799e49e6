"""The graph of the project that `pipeline init` writes: nodes, inputs, counts, places; and its alerting rules."""

import json
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from odradek.apps.pipeline import pipeline_metrics
from odradek.apps.pipeline.declaration import read_pipeline
from odradek.apps.pipeline.graph.core.graph_svg import graph_svg
from odradek.apps.pipeline.graph.core.pipeline_graph import Node, graph_of, layers
from odradek.apps.pipeline.graph.graph_counts import counts_of
from odradek.apps.pipeline.graph.graph_text import graph_text
from odradek.apps.pipeline.scaffold import init_project


@pytest.fixture
def project(tmp_path: Path) -> Path:
    init_project(tmp_path / "shop", "shop", "127.0.0.1:1")
    return tmp_path / "shop"


def drawn(project: Path) -> list[Node]:
    pipeline = read_pipeline(project)
    texts = {name: transform.file.read_text() for name, transform in pipeline.transforms.items()}
    return graph_of(pipeline, texts, counts_of(pipeline))


def test_inputs_and_layers(project: Path) -> None:
    nodes = {node.name: node for node in drawn(project)}
    assert nodes["priced"].inputs == ("orders", "categories")
    assert nodes["revenue"].inputs == ("priced",)
    assert nodes["dead letters"].inputs == ("orders", "categories")
    columns = [[node.name for node in column] for column in layers(list(nodes.values()))]
    assert columns == [
        ["orders", "categories"],
        ["priced"],
        ["revenue"],
        ["orders_table", "revenue_topic", "dead letters"],
    ]


def test_counts_come_from_the_last_run(project: Path) -> None:
    (project / ".odradek").mkdir()
    offsets = [{"shop.orders": {"0": 4, "1": 9}}, {"shop.orders": {"0": 6}, "shop.categories": {"0": 3}}]
    status = {"state": "stopped", "queries": [{"offsets": each} for each in offsets]}
    (project / ".odradek" / "status.json").write_text(json.dumps(status))
    assert counts_of(read_pipeline(project)) == {"orders": 15, "categories": 3}
    told = graph_text(drawn(project))
    assert told.startswith("orders (source, shop.orders, 15 records)\n├─▶ priced (transform, priced.sql)\n")
    assert "│   │   └─▶ revenue_topic (sink, topic shop.revenue)" in told


def test_the_picture_is_well_formed_and_escaped(project: Path) -> None:
    strange = Node("x", "source", "<script>&", (), 3)
    picture = graph_svg("a < b", [*drawn(project), strange])
    root = ElementTree.fromstring(picture)
    assert len(root.findall(".//{http://www.w3.org/2000/svg}rect")) == 8
    assert "<script>" not in picture


def test_alerting_rules_name_metrics_that_exist(project: Path) -> None:
    rules = (project / "alerts.yml").read_text()
    served = Path(pipeline_metrics.__file__).read_text()
    named = re.findall(r"odradek_pipeline_(\w+)", rules)
    assert named
    assert [name for name in named if name not in served] == []

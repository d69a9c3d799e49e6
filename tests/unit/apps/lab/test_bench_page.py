"""The benchmark's page: rows of a run replace those of the same figures, and page and plots follow from them."""

from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from odradek.apps.lab.bench import page
from odradek.apps.lab.bench.__main__ import all_figures
from odradek.apps.lab.bench.figures import Figure, at_least, at_most
from odradek.apps.lab.bench.floor import floors, measure_floors
from odradek.apps.lab.bench.report import UNITS, Result, rows_to_keep

ROOT = Path(__file__).parents[4]
FACTS = {"rounds": 2, "quick": False, "CPU": "a fast one"}


def kept(group: str, title: str, ours: float, floor: float = 0.0) -> list[dict[str, Any]]:
    targets = (at_least("records_per_s", 1.1), at_most("cpu_s_per_gb", 0.8))
    figure = Figure(group, title, targets, None)  # type: ignore[arg-type]
    rounds = [
        {"Kafka": {"records_per_s": 100.0, "cpu_s_per_gb": 2.0, "noise": 0.02}, "Odradek": measured}
        for measured in (
            {"records_per_s": ours, "cpu_s_per_gb": 1.0, "noise": 0.2},
            {"records_per_s": ours * 1.2, "cpu_s_per_gb": 1.0, "noise": 0.01},
        )
    ]
    result = Result(figure, rounds, floors={"C": {"cpu_s_per_gb": floor}} if floor else {})
    return rows_to_keep([result], FACTS, "Kafka", "Odradek")


def test_every_figure_is_known_by_its_title_and_every_metric_has_a_unit() -> None:
    titles = [(figure.group, figure.title) for figure in all_figures()]
    assert len(titles) == len(set(titles))
    assert {target.metric for figure in all_figures() for target in figure.targets} <= UNITS.keys()


def test_a_row_has_the_median_of_its_rounds_its_spread_noise_and_floor() -> None:
    text = page.page(kept("produce", "produce 1 KB", 100.0, floor=0.75))
    assert "| produce 1 KB | records/s | 100 | 110 | **1.10** ±0.10 | ≥ 1.1 |  | **20%** |" in text
    assert "| produce 1 KB | broker CPU s per GB | 2 | 1 | **0.50** ±0.00 | ≤ 0.8 | 0.75 | **20%** |" in text
    assert "2 rounds; CPU a fast one." in text


def test_a_run_replaces_its_own_figures_and_leaves_the_others_where_they_stand() -> None:
    before = kept("produce", "a", 100.0) + kept("consume", "b", 100.0)
    after = page.merged(before, kept("produce", "a", 300.0) + kept("produce", "c", 100.0))
    assert [(row["figure"], round(row["ratio"], 1)) for row in after if row["metric"] == "records_per_s"] == [
        ("a", 3.3),
        ("c", 1.1),
        ("b", 1.1),
    ]


def test_a_checkout_gets_its_rows_its_page_its_plots_and_its_table(tmp_path: Path) -> None:
    (tmp_path / page.PLOTS).mkdir(parents=True)
    for name in (page.PAGE, page.README):
        (tmp_path / name).write_text(f"before\n{page.BEGIN}\nold\n{page.END}\nafter\n")
    page.keep(tmp_path, kept("produce", "produce <1 KB>", 100.0))
    page.write(tmp_path)
    assert "![Producing](pictures/bench-produce.svg)" in (tmp_path / page.PAGE).read_text()
    readme = (tmp_path / page.README).read_text()
    assert "| producing: records/s | 1.10 | ≥ 1.1 |" in readme
    assert readme.startswith("before\n")
    assert readme.endswith("after\n")
    assert "old" not in readme
    ElementTree.parse(tmp_path / page.PLOTS / "bench-produce.svg")


def test_the_page_is_what_the_kept_rows_make() -> None:
    rows = page.kept_rows(ROOT)
    for name, text in ((page.PAGE, page.page(rows)), (page.README, page.readme_table(rows))):
        document = (ROOT / name).read_text()
        assert not rows or document == page.between_marks(document, text), "run: make bench-page"


@pytest.mark.parametrize("name", floors())
def test_both_raw_servers_answer_every_request(name: str, tmp_path: Path) -> None:
    measured = measure_floors({name}, tmp_path, quick=True)[name]
    assert all(value > 0 for metrics in measured.values() for value in metrics.values())

"""Status files as runs leave them, and what is shown of them."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("nicegui", reason="the console needs odradek[console]")

from odradek.apps.console.readings.pipelines import PipelinesReader, PipelinesState
from odradek.apps.console.views.pipelines import pipelines_html
from odradek.base.errors import FatalError
from odradek.client.cluster_client import ClusterClient
from odradek.local.process_start import process_start

NOBODY = ClusterClient("127.0.0.1:1")


def _write(project: Path, rows: int, **changes: Any) -> None:
    query = {
        "name": "orders_table",
        "batch": 7,
        "input_rows_total": rows,
        "input_rows_per_second": 250.0,
        "processed_rows_per_second": 900.0,
        "batch_ms": 850,
        "state_rows": 40,
        "state_bytes": 5_000,
        "duplicates_total": 3,
        "target": "data/orders",
        "group": "odradek-pipeline-shop-orders_table",
        "lag": 12,
    }
    pid = os.getpid()
    document = {"pipeline": "shop", "project": str(project), "state": "running", "pid": pid, "queries": [query]}
    (project / ".odradek").mkdir(exist_ok=True)
    told = {**document, "process_start": process_start(pid), "dead_letters": "shop.<dead>", **changes}
    (project / ".odradek" / "status.json").write_text(json.dumps(told))


def _look_again(reader: PipelinesReader, before: PipelinesState) -> PipelinesState:
    while (state := reader.read(NOBODY, before)).at_ms <= before.at_ms:
        pass
    return state


def test_rows_rates_batch_time_lag_and_state(tmp_path: Path) -> None:
    reader = PipelinesReader([tmp_path])
    _write(tmp_path, 1_000)
    state = reader.read(NOBODY, None)
    _write(tmp_path, 1_500)
    state = _look_again(reader, state)
    (rate,) = state.rates[str(tmp_path), "orders_table"]
    assert rate > 0
    shown = pipelines_html(state)
    for word in (
        "running",
        "1,500",
        "250/s",
        "900/s",
        "850 ms",
        "40 rows, 4.9 KB",
        "3 duplicates",
        "shop.&lt;dead&gt;",
    ):
        assert word in shown


def test_a_run_whose_process_is_gone_has_died_and_has_no_rates(tmp_path: Path) -> None:
    _write(tmp_path, 10, process_start="of another")
    shown = pipelines_html(PipelinesReader([tmp_path]).read(NOBODY, None))
    assert "died" in shown
    assert "250/s" not in shown


def test_one_that_starts_has_had_no_batch(tmp_path: Path) -> None:
    _write(tmp_path, 0, queries=[{"name": "q", "batch": -1, "input_rows_total": 0, "batch_ms": 0}])
    shown = pipelines_html(PipelinesReader([tmp_path]).read(NOBODY, None))
    assert "-1" not in shown


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"queries": [1, null]}', '{"queries": {}}'])
def test_files_that_are_no_status_do_no_harm(tmp_path: Path, content: str) -> None:
    (tmp_path / ".odradek").mkdir()
    (tmp_path / ".odradek" / "status.json").write_text(content)
    pipelines_html(PipelinesReader([tmp_path]).read(NOBODY, None))


def test_without_a_project_it_says_what_to_give() -> None:
    with pytest.raises(FatalError, match="--pipeline DIR"):
        PipelinesReader([]).read(NOBODY, None)

"""Report of the rounds of the Spark measurement."""

from typing import Any

from odradek.apps.lab.spark_read.report import tables
from odradek.apps.lab.spark_read.ways import CONNECTOR, FILES, OURS


def run(seconds: float, worker_mb: float = 0.0) -> dict[str, Any]:
    return {"rows": 1000, "s": seconds, "cpu_s": 2 * seconds, "worker_mb": worker_mb}


def test_ratios_are_of_speeds_within_a_round() -> None:
    rounds = [
        {OURS: run(2.0, 90.0), CONNECTOR: run(1.0), FILES: run(0.5)},
        {OURS: run(20.0, 100.0), CONNECTOR: run(10.0)},
        {OURS: run(4.0, 95.0), CONNECTOR: run(4.0)},
    ]
    told = tables(rounds).splitlines()
    assert '| read: `format("odradek")` ÷ connector | 0.50 (0.50 to 1.00) | ≥ 0.67 |' in told
    assert '| read: `format("odradek-log")` ÷ `format("odradek")` | 4.00 (4.00 to 4.00) | ≥ 2.00 |' in told
    assert "| odradek | 3 | 1,000 | 4.0 | 250 | 8.0 | 100 MB |" in told
    assert "| connector | 3 | 1,000 | 4.0 | 250 | 8.0 | – |" in told
    assert not any("stream" in line for line in told), "what wasn't measured isn't told"

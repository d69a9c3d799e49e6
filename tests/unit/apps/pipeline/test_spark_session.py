"""Session of a pipeline: impossible settings are refused at once."""

from pathlib import Path

import pytest

from odradek.apps.pipeline.session import (
    RECORDS_OF_SHORT_RUN_MAX,
    RECORDS_WITHOUT_OPTIMIZER_MAX,
    SparkTarget,
    jvm_of_finite_run,
    jvm_of_lasting_run,
    start_session,
)
from odradek.base.errors import FatalError


@pytest.mark.parametrize(
    ("remote", "told"),
    [
        ("sc://127.0.0.1:1", "no server answers there \\(Connection refused\\)"),
        ("sc://127.0.0.1:99999", "no server answers there \\(Port out of range"),
        ("sc://", "is not a Spark Connect server: sc://HOST:PORT"),
        ("spark://127.0.0.1:7077", "is not a Spark Connect server: sc://HOST:PORT"),
    ],
)
def test_a_connect_server_that_is_none(remote: str, told: str, tmp_path: Path) -> None:
    with pytest.raises(FatalError, match=told):
        start_session("p", SparkTarget(remote=remote), {}, tmp_path)


def test_a_short_run_has_no_optimizing_compiler_and_a_long_one_has() -> None:
    short, long = (jvm_of_finite_run(RECORDS_WITHOUT_OPTIMIZER_MAX + more, has_state_in_heap=False) for more in (0, 1))
    assert "TieredStopAtLevel=1" in short["spark.driver.extraJavaOptions"]
    assert "TieredStopAtLevel" not in long["spark.driver.extraJavaOptions"]


def test_a_run_over_few_records_has_sparks_heap() -> None:
    assert "spark.driver.memory" not in jvm_of_finite_run(RECORDS_OF_SHORT_RUN_MAX, has_state_in_heap=True)


def test_a_heap_of_the_project_keeps_javas_collector() -> None:
    ours, theirs = (jvm_of_lasting_run(given) for given in ({}, {"spark.driver.memory": "8g"}))
    assert "UseSerialGC" in ours["spark.driver.extraJavaOptions"]
    assert "UseSerialGC" not in theirs["spark.driver.extraJavaOptions"]


@pytest.mark.parametrize(("records", "heap"), [(500_000, "1024m"), (2_000_000, "1650m"), (10**9, "4096m")])
def test_a_heap_with_state_grows_with_the_records_that_wait(records: int, heap: str) -> None:
    with_state, without = (jvm_of_finite_run(records, has_state_in_heap=has) for has in (True, False))
    assert with_state["spark.driver.memory"] == heap
    assert without["spark.driver.memory"] == "520m"

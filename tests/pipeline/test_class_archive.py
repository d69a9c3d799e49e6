"""The archive of Spark's classes, as a user gets it: the first run that lasts makes it, the next one maps it."""

from pathlib import Path

import pytest

from odradek.apps.pipeline.sample_orders import Sent
from odradek.apps.pipeline.scaffold import init_project
from odradek.apps.pipeline.spark_home import SWITCH, shared_home
from odradek.testing import OdradekCluster

from .shop_stage import Driver, books, sell


@pytest.mark.soak
@pytest.mark.timeout(900)
def test_the_second_run_maps_the_classes_of_the_first(
    odradek_cluster: OdradekCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(SWITCH)
    monkeypatch.delenv("SPARK_HOME", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    if shared_home({}) is None:
        pytest.skip("this Java has no archive of its own, on which another could build")
    for name in ("orders", "revenue", "dead-letters", "categories"):
        odradek_cluster.create_topic(f"shop.{name}", 1, 1)
    project = tmp_path / "shop"
    init_project(project, "shop", odradek_cluster.bootstrap_servers)
    driver = Driver(project, "--master", "local[2]")
    sent: list[Sent] = []
    for is_mapped in (False, True):
        driver.start()
        try:
            sent.append(sell(odradek_cluster.bootstrap_servers, seconds=3, seed=len(sent)))
            driver.await_rows(sent[-1].total)
            assert driver.process is not None
            assert maps(driver.process.pid, "classes.jsa", tmp_path) == is_mapped
        finally:
            driver.stop()
        (archive,) = (tmp_path / "cache").glob("odradek/spark-*/classes.jsa")
        assert [path.name for path in archive.parent.glob("recording-*")] == []
    proof = books(
        odradek_cluster.bootstrap_servers, project, Sent([record for each in sent for record in each.records])
    )
    assert proof.ok, proof.checks


def maps(process: int, name: str, below: Path) -> bool:
    """Whether a child of the process has mapped a file of that name."""
    children = Path(f"/proc/{process}/task").glob("*/children")
    pids = [pid for file in children for pid in file.read_text().split()]
    lines = [line for pid in pids for line in Path(f"/proc/{pid}/maps").read_text().splitlines()]
    return any(str(below) in line and line.endswith(name) for line in lines)

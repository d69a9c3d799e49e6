"""Screens that take minutes: the experiment of the Lab, and a pipeline on Spark, looked at while they run."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from odradek.testing import OdradekCluster
from waiting import eventually

from .conftest import await_handshake, start_console

pytestmark = [pytest.mark.soak, pytest.mark.timeout(1800)]
PATIENCE_MS = 1_500_000

expect = pytest.importorskip("playwright.sync_api", reason="the browser tests need playwright").expect


def test_three_designs_are_drawn_side_by_side(page: Any) -> None:
    page.goto("/lab")
    await_handshake(page)
    page.get_by_role("button", name="Run the experiment").click()
    members = page.get_by_label("Members of the group: 3, or 3, 10, 30")
    members.fill("two")
    page.get_by_role("dialog").get_by_role("button", name="Run", exact=True).click()
    expect(page.get_by_text("up to 3 numbers from 3 to 100, such as 3, 10")).to_be_visible()
    members.fill("10")
    members.press("Enter")
    expect(page.get_by_text("running", exact=True).last).to_be_visible()
    expect(page.get_by_text("All three designs are done.")).to_be_visible(timeout=PATIENCE_MS)
    drawing = page.frame_locator("iframe.drawing")
    for design in ("one", "two", "three"):
        expect(drawing.locator("td", has_text=design).first).to_be_visible()
    eventually(lambda: drawing.locator("svg").count() >= 3 * 6)


@pytest.fixture
def project(tmp_path: Path, three_brokers: OdradekCluster) -> Iterator[Path]:
    pytest.importorskip("pyspark")
    bootstrap = three_brokers.bootstrap_servers
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    for made in admin.create_topics([NewTopic("shop.orders", 3, 3), NewTopic("shop.categories", 1, 3)]).values():
        made.result(60)
    run = [sys.executable, "-m", "odradek", "pipeline"]
    subprocess.run([*run, "init", "shop", "--bootstrap-server", bootstrap], cwd=tmp_path, check=True)
    yield tmp_path / "shop"
    subprocess.run([*run, "stop", str(tmp_path / "shop")], check=False, capture_output=True)


def press(page: Any, name: str) -> None:
    page.get_by_role("button", name=name, exact=True).click()
    page.get_by_role("dialog").get_by_role("button", name=name, exact=True).click()
    expect(page.get_by_role("dialog")).to_have_count(0, timeout=PATIENCE_MS)


def test_a_pipeline_is_started_stopped_and_replayed(
    chromium: Any, project: Path, three_brokers: OdradekCluster, tmp_path: Path
) -> None:
    bootstrap = three_brokers.bootstrap_servers
    console = start_console(tmp_path, "--bootstrap-server", bootstrap, "--pipeline", str(project))
    seller = subprocess.Popen([sys.executable, "generate.py", "--seconds", "60"], cwd=project)
    try:
        visitor = chromium.new_page(base_url=console.url)
        visitor.goto("/pipelines")
        await_handshake(visitor)
        expect(visitor.get_by_text("never started", exact=True)).to_be_visible()
        press(visitor, "Start")
        expect(visitor.get_by_text("running", exact=True)).to_be_visible(timeout=PATIENCE_MS)
        row = visitor.locator("tr", has_text="data/orders")
        cells = row.locator("td")
        expect(cells.nth(2)).not_to_have_text("0", timeout=PATIENCE_MS)  # rows
        expect(cells.nth(4)).to_contain_text("/s", timeout=PATIENCE_MS)  # that come in
        expect(cells.nth(7)).to_contain_text("s", timeout=PATIENCE_MS)  # batch time
        press(visitor, "Stop")
        expect(visitor.get_by_text("stopped", exact=True)).to_be_visible(timeout=PATIENCE_MS)
        press(visitor, "Replay")
        press(visitor, "Start")
        expect(visitor.get_by_text("run 2 ")).to_be_visible(timeout=PATIENCE_MS)
        expect(cells.nth(2)).not_to_have_text("0", timeout=PATIENCE_MS)  # read again, from the earliest offset
        press(visitor, "Stop")
        expect(visitor.get_by_text("stopped", exact=True)).to_be_visible(timeout=PATIENCE_MS)
        visitor.close()
    finally:
        seller.terminate()
        seller.wait(60)
        console.stop()

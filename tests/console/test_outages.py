"""Outages: the page names what is gone, keeps what was there, and heals without a reload of the page."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient  # type: ignore[attr-defined]

from odradek.local.zookeeper_server import free_port
from odradek.testing import OdradekCluster

from .conftest import ConsoleProcess, await_handshake, browser_on, create_topic, start_console

PATIENCE_S = 90
KEPT = {
    "/": ".main table.rows tbody tr",
    "/topics": ".main a.name",
    "/topics/enduring": "[data-partition]",
    "/groups": ".main .card",
    "/history": ".moment",
}

expect = pytest.importorskip("playwright.sync_api", reason="the browser tests need playwright").expect
expect.set_options(timeout=PATIENCE_S * 1000)


def test_a_console_that_starts_again_is_found_again(
    chromium: Any, three_brokers: OdradekCluster, tmp_path: Path
) -> None:
    arguments = ["--bootstrap-server", three_brokers.bootstrap_servers]
    port = free_port()
    console: ConsoleProcess = start_console(tmp_path, *arguments, port=port)
    try:
        with browser_on(chromium, console) as page:
            page.goto("/")
            expect(page.locator(".health")).to_be_visible()
            await_handshake(page)
            console.stop()
            expect(page.get_by_text("Connection lost.")).to_be_visible()
            expect(page.locator(".health")).to_be_visible()
            console = start_console(tmp_path, *arguments, port=port)
            expect(page.get_by_text("Connection lost.")).to_be_hidden()
            expect(page.locator(".health")).to_be_visible()
    finally:
        console.stop()


@pytest.fixture(scope="module")
def pages(chromium: Any, console: ConsoleProcess, three_brokers: OdradekCluster) -> Iterator[dict[str, Any]]:
    """One tab on each screen. Each is marked: a page that is loaded anew loses its mark."""
    admin = AdminClient({"bootstrap.servers": three_brokers.bootstrap_servers, "log_level": 0})
    if "enduring" not in admin.list_topics(timeout=30).topics:
        create_topic(three_brokers.bootstrap_servers, "enduring")
    with browser_on(chromium, console) as page:
        opened = {path: page.context.new_page() for path in KEPT}
        for path, tab in opened.items():
            tab.goto(path)
            expect(tab.locator(KEPT[path]).first).to_be_visible()
            await_handshake(tab)
            tab.evaluate("window.mark = 'the same page'")
        yield opened


def _all_say(pages: dict[str, Any], text: str) -> None:
    for path, tab in pages.items():
        expect(tab.get_by_role("alert").filter(has_text=text).first).to_be_visible()
        expect(tab.locator(KEPT[path]).first).to_be_visible()


def _all_are_well(pages: dict[str, Any]) -> None:
    for path, tab in pages.items():
        expect(tab.get_by_role("alert")).to_have_count(0)
        expect(tab.locator(KEPT[path]).first).to_be_visible()
        assert tab.evaluate("window.mark") == "the same page"


def test_one_broker_all_brokers_and_back(pages: dict[str, Any], three_brokers: OdradekCluster) -> None:
    three_brokers.kill(1)
    _all_say(pages, "1 broker down: 1.")
    expect(pages["/topics/enduring"].locator(".bs .b.offline").first).to_be_visible()
    three_brokers.kill(0)
    three_brokers.kill(2)
    _all_say(pages, "No broker answers.")
    expect(pages["/topics/enduring"].get_by_text("What is shown is").first).to_be_visible()
    for broker in range(3):
        three_brokers.start(broker)
    _all_are_well(pages)
    expect(pages["/topics/enduring"].locator(".bs .b.offline, .bs .b.out")).to_have_count(0)


def test_zookeeper_gone_and_back(pages: dict[str, Any], three_brokers: OdradekCluster) -> None:
    three_brokers.stop_zookeeper()
    try:
        _all_say(pages, "Records are written and read as long as leaders live")
        producer = Producer({"bootstrap.servers": three_brokers.bootstrap_servers, "acks": "all", "log_level": 0})
        producer.produce("enduring", "still written", partition=0)
        assert producer.flush(30) == 0
    finally:
        three_brokers.start_zookeeper()
    _all_are_well(pages)

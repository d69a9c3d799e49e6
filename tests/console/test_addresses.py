"""What a page shows is in its address, with the cluster where there are several; rates are kept while nobody looks."""

from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import Producer

pytest.importorskip("nicegui", reason="the console needs odradek[console]")

from odradek.apps.console.changes import Changes
from odradek.apps.console.consoles import Consoles
from odradek.apps.console.guard import Guard
from odradek.apps.console.history_keeper import HistoryKeeper
from odradek.apps.console.options import ConsoleOptions
from odradek.base.clock import SYSTEM_CLOCK
from odradek.testing import OdradekCluster
from waiting import eventually

from .conftest import PATIENCE_S, ConsoleProcess, await_handshake, browser_on, create_topic, start_console

expect = pytest.importorskip("playwright.sync_api", reason="the browser tests need playwright").expect
expect.set_options(timeout=PATIENCE_S * 1000)


@pytest.fixture(scope="module")
def of_two(three_brokers: OdradekCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConsoleProcess]:
    """A console of two clusters, the second of which does not answer."""
    arguments = ["--bootstrap-server", three_brokers.bootstrap_servers, "--cluster", "closed=127.0.0.1:1"]
    process = start_console(tmp_path_factory.mktemp("of-two"), *arguments)
    yield process
    process.stop()


def test_an_address_names_its_cluster_and_links_stay_in_it(
    chromium: Any, of_two: ConsoleProcess, three_brokers: OdradekCluster
) -> None:
    with browser_on(chromium, of_two) as page:
        page.goto("/topics?cluster=closed")
        await_handshake(page)
        expect(page.get_by_text("No broker answers.")).to_be_visible()
        page.get_by_role("link", name="Groups", exact=True).click()
        page.wait_for_url("**/groups?cluster=closed")
        page.goto("/topics")  # no cluster was chosen by an address: the first one
        await_handshake(page)
        first = three_brokers.bootstrap_servers.split(",")[0].replace(":", "%3A")
        page.wait_for_url(f"**/topics?cluster={first}")
        page.get_by_label("Search topics").fill("nothing")
        page.wait_for_url(f"**/topics?q=nothing&cluster={first}")


def test_a_list_is_shared_as_it_is_sorted_and_a_topic_is_cloned(page: Any, three_brokers: OdradekCluster) -> None:
    create_topic(three_brokers.bootstrap_servers, "original", 2, **{"retention.ms": "3600000"})
    page.goto("/topics?q=origin")
    await_handshake(page)
    page.get_by_role("button", name="Partitions").click()
    page.wait_for_url("**/topics?q=origin&sort=partitions")
    page.reload()
    expect(page.get_by_role("button", name="Partitions ↑")).to_be_visible()
    page.goto("/topics/original")
    await_handshake(page)
    page.get_by_role("button", name="Clone").click()
    expect(page.get_by_label("Settings: key=value, key=value")).to_have_value("retention.ms=3600000")
    page.get_by_label("Name", exact=True).fill("duplicate")
    page.get_by_role("dialog").get_by_role("button", name="Create", exact=True).click()
    expect(page.get_by_text("Topic duplicate is there.")).to_be_visible()
    page.goto("/topics/duplicate")
    expect(page.get_by_text("3600000")).to_be_visible()
    expect(page.locator("[data-partition]")).to_have_count(2)


def test_rates_are_noted_while_nobody_looks(three_brokers: OdradekCluster) -> None:
    create_topic(three_brokers.bootstrap_servers, "steady", 1)
    options = ConsoleOptions(three_brokers.bootstrap_servers, clusters={"closed": "127.0.0.1:1"})
    changes, guard = Changes(SYSTEM_CLOCK, read_only=True), Guard(options, SYSTEM_CLOCK)
    consoles = Consoles(options, changes, guard, SYSTEM_CLOCK).unattended
    keeper = HistoryKeeper(consoles)
    producer = Producer({"bootstrap.servers": three_brokers.bootstrap_servers, "log_level": 0})

    def is_noted() -> bool:
        for _ in range(10):
            producer.produce("steady", b"v")
        assert producer.flush(PATIENCE_S) == 0
        keeper.look()  # a broker may hear of the topic later than the others
        return any(rate > 0 for _, rate in consoles[0].topic_rates.over_a_day("steady", SYSTEM_CLOCK.now_ms()))

    eventually(is_noted)
    assert consoles[1].topic_rates.over_a_day("steady", SYSTEM_CLOCK.now_ms()) == []

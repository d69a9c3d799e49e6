"""A broker's page, its settings with documentation; records deleted; a quota set."""

from typing import Any

import pytest
from confluent_kafka import Producer

from odradek.testing import OdradekCluster

from .conftest import PATIENCE_S, await_handshake, create_topic

expect = pytest.importorskip("playwright.sync_api", reason="the browser tests need playwright").expect
expect.set_options(timeout=PATIENCE_S * 1000)


def test_numbers_lead_to_what_they_count_and_settings_are_explained(page: Any, three_brokers: OdradekCluster) -> None:
    create_topic(three_brokers.bootstrap_servers, "counted", 3)
    page.goto("/")
    page.locator("a[href='/brokers/1?role=leader']").click()
    page.wait_for_url("**/brokers/1?role=leader")
    await_handshake(page)
    expect(page.locator("tr", has_text="counted").first).to_contain_text("leader")
    page.get_by_label("Search settings").fill("log.retention.hours")
    row = page.locator("tr", has=page.locator("summary", has_text="log.retention.hours"))
    expect(row).to_contain_text("7 d")
    row.locator("summary").click()
    expect(row.locator(".note").first).to_be_visible()
    page.goto("/topics?problem=offline")
    expect(page.get_by_text("No topic has a partition that is offline.")).to_be_visible()


def test_records_are_deleted_and_a_quota_is_set(page: Any, three_brokers: OdradekCluster) -> None:
    create_topic(three_brokers.bootstrap_servers, "purged", 1)
    producer = Producer({"bootstrap.servers": three_brokers.bootstrap_servers, "log_level": 0})
    for _ in range(10):
        producer.produce("purged", b"v", partition=0)
    assert producer.flush(PATIENCE_S) == 0
    page.goto("/topics/purged")
    await_handshake(page)
    expect(page.locator("[data-partition='0'] .figures")).to_contain_text("0 … 10")
    page.get_by_role("button", name="Delete records").click()
    page.get_by_label("Type the topic's name to go on: purged").fill("purged")
    page.get_by_role("dialog").get_by_role("button", name="Delete records").click()
    expect(page.locator("[data-partition='0'] .figures")).to_contain_text("10 … 10")

    page.goto("/quotas")
    await_handshake(page)
    page.get_by_role("button", name="Set quota").click()
    page.get_by_label("Client id").fill("greedy")
    page.get_by_label("Value").fill("1048576")
    page.get_by_role("dialog").get_by_role("button", name="Set", exact=True).click()
    row = page.locator("tr", has_text="greedy")
    expect(row).to_contain_text("MB/s")
    row.get_by_role("button", name="Remove").click()
    page.get_by_role("dialog").get_by_role("button", name="Remove", exact=True).click()
    expect(row).to_have_count(0)

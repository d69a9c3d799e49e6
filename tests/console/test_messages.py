"""Messages: a search that is in the address, a live tail, decoded internal topics, exports."""

import json
from typing import Any

import pytest
from confluent_kafka import Producer, TopicPartition

from odradek.testing import OdradekCluster

from .conftest import PATIENCE_S, await_handshake, commit, create_topic

expect = pytest.importorskip("playwright.sync_api", reason="the browser tests need playwright").expect
expect.set_options(timeout=PATIENCE_S * 1000)


@pytest.fixture(scope="module")
def producer(three_brokers: OdradekCluster) -> Producer:
    create_topic(three_brokers.bootstrap_servers, "invoices", 1)
    producer = Producer({"bootstrap.servers": three_brokers.bootstrap_servers, "log_level": 0})
    for number in range(40):
        producer.produce("invoices", json.dumps({"amount": number, "paid": number % 2 == 0}), f"k{number}", 0)
    assert producer.flush(PATIENCE_S) == 0
    return producer


def test_a_search_is_in_the_address_and_is_exported(page: Any, producer: Producer) -> None:
    page.goto("/messages?topic=invoices")
    await_handshake(page)
    expect(page.locator("details.record")).to_have_count(40)
    page.get_by_label("Filter").fill("value.amount >= 30 and value.paid = true and key !~ '6$'")
    page.get_by_role("button", name="Search", exact=True).click()
    expect(page.locator("details.record")).to_have_count(4)
    page.wait_for_url("**filter=value.amount*")
    page.reload()
    expect(page.locator("details.record")).to_have_count(4)
    await_handshake(page)
    page.get_by_role("button", name="Export").click()
    with page.expect_download() as downloading:
        page.get_by_text("JSON lines").click()
    lines = downloading.value.path().read_text().splitlines()
    assert sorted(json.loads(line)["value"]["amount"] for line in lines) == [30, 32, 34, 38]

    page.get_by_label("Filter").fill("value.amount >= ")
    page.get_by_role("button", name="Search", exact=True).click()
    expect(page.get_by_text("a value is missing after >=")).to_be_visible()


def test_columns_are_chosen_and_are_in_the_address(page: Any, producer: Producer) -> None:
    page.goto("/messages?topic=invoices&filter=value.amount+%3D+12&columns=value.amount,+value.paid")
    record = page.locator("details.record")
    expect(record).to_have_count(1)
    assert record.locator("summary span").all_inner_texts()[1:] == ["12", "true"]
    await_handshake(page)
    page.get_by_label("Columns").fill("key, nonsense")
    page.get_by_label("Columns").press("Enter")
    expect(page.get_by_text("'nonsense' is not a field")).to_be_visible()
    page.get_by_label("Columns").fill("key, size")
    page.get_by_label("Columns").press("Enter")
    page.wait_for_url("**columns=key*")
    expect(page.locator(".record-head")).to_contain_text("Size")
    assert record.locator("summary span").all_inner_texts()[1:] == ["k12", "28 B"]


def test_new_records_appear_while_they_are_written(page: Any, producer: Producer) -> None:
    page.goto("/messages?topic=invoices&filter=value.amount+%3E+1000&live=1")
    expect(page.get_by_text("Waiting for new records")).to_be_visible()
    producer.produce("invoices", json.dumps({"amount": 7}), partition=0)
    producer.produce("invoices", json.dumps({"amount": 4711}), partition=0)
    assert producer.flush(PATIENCE_S) == 0
    expect(page.locator("details.record")).to_have_count(1)
    expect(page.locator("details.record")).to_contain_text("4711")


def test_committed_offsets_are_decoded(page: Any, producer: Producer, three_brokers: OdradekCluster) -> None:
    commit(three_brokers.bootstrap_servers, "accountants", TopicPartition("invoices", 0, 12))
    page.goto("/messages?topic=__consumer_offsets&filter=key.group_id+%3D+accountants+and+value.offset+%3D+12")
    record = page.locator("details.record").first
    expect(record).to_contain_text("accountants")
    record.locator("summary").click()
    expect(record.locator("pre").first).to_contain_text('"offset": 12')

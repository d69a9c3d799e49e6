"""An open transaction is seen on its topic and on the Transactions screen, and is aborted there."""

from typing import Any

import pytest
from confluent_kafka import KafkaException, Producer

from odradek.testing import OdradekCluster

from .conftest import PATIENCE_S, await_handshake, create_topic

expect = pytest.importorskip("playwright.sync_api", reason="the browser tests need playwright").expect
expect.set_options(timeout=PATIENCE_S * 1000)


def test_a_transaction_that_holds_readers_back_is_named_and_aborted(page: Any, three_brokers: OdradekCluster) -> None:
    servers = three_brokers.bootstrap_servers
    create_topic(servers, "ledger", 1)
    producer = Producer({"bootstrap.servers": servers, "transactional.id": "bookkeeper", "log_level": 0})
    producer.init_transactions(PATIENCE_S)
    producer.begin_transaction()
    producer.produce("ledger", b"debit", partition=0)
    producer.commit_transaction(PATIENCE_S)
    producer.begin_transaction()
    for _ in range(3):
        producer.produce("ledger", b"credit", partition=0)
    assert producer.flush(PATIENCE_S) == 0

    page.goto("/topics/ledger")
    held = page.locator("tr", has_text="bookkeeper")
    expect(held).to_contain_text("3 records")
    page.goto("/transactions?q=bookkeeper")
    row = page.locator("tr", has_text="bookkeeper")
    expect(row).to_contain_text("Ongoing")
    row.get_by_role("link", name="bookkeeper").click()
    await_handshake(page)
    expect(page.locator("tr", has_text="ledger")).to_be_visible()
    page.get_by_role("button", name="Abort").click()
    page.get_by_role("dialog").get_by_role("button", name="Abort", exact=True).click()
    expect(page.locator(".figure", has_text="State")).to_contain_text("Empty")
    with pytest.raises(KafkaException, match="fenced"):
        producer.commit_transaction(PATIENCE_S)
    page.goto("/topics/ledger")
    expect(page.locator("[data-partition='0'] .figures")).to_contain_text("0 … 6")
    expect(page.get_by_text("Open transactions")).to_have_count(0)

"""The console before Apache Kafka: every screen shows what that can tell, and says in a sentence what it can't."""

from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from apache_kafka import KafkaPeer

from .conftest import ConsoleProcess, await_handshake, browser_on, commit, start_console

PATIENCE_S = 60

expect = pytest.importorskip("playwright.sync_api", reason="the browser tests need playwright").expect
expect.set_options(timeout=PATIENCE_S * 1000)


@pytest.fixture(scope="module")
def console(kafka_peer: KafkaPeer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConsoleProcess]:
    pytest.importorskip("nicegui", reason="the console needs odradek[console]")
    process = start_console(tmp_path_factory.mktemp("console"), "--bootstrap-server", kafka_peer.bootstrap_servers)
    yield process
    process.stop()


@pytest.fixture(scope="module")
def topic(kafka_peer: KafkaPeer) -> str:
    """With 30 records, of which a group has read 10."""
    name, servers = "seen-in-kafka", {"bootstrap.servers": kafka_peer.bootstrap_servers, "log_level": 0}
    admin = AdminClient(servers)
    admin.create_topics([NewTopic(name, 2, 1)])[name].result(30)
    producer = Producer(servers)
    for number in range(30):
        producer.produce(name, f'{{"n": {number}}}', key=b"\xff\x00", partition=0)
    assert producer.flush(30) == 0
    commit(kafka_peer.bootstrap_servers, "kafka-readers", TopicPartition(name, 0, 10))
    return name


@pytest.fixture
def page(chromium: Any, console: ConsoleProcess) -> Iterator[Any]:
    with browser_on(chromium, console) as page:
        yield page
    assert "Traceback" not in console.log.read_text()


def test_what_kafka_can_tell_is_shown(page: Any, topic: str) -> None:
    page.goto("/")
    expect(page.get_by_role("status")).to_contain_text("Healthy: 1 broker")
    broker = page.locator("tbody tr").first
    expect(broker).to_contain_text("controller")
    expect(broker).to_contain_text("rack-a")
    expect(page.get_by_text("epoch 1")).to_be_visible()  # from Kafka's own znodes
    page.goto("/topics")
    expect(page.locator("tr", has_text=topic)).to_contain_text("in sync")
    expect(page.locator("tr", has_text=topic)).to_contain_text("7 d")
    page.goto(f"/topics/{topic}")
    expect(page.locator("[data-partition='0'] .figures")).to_contain_text("0 … 30")
    expect(page.locator("tr", has_text="kafka-readers")).to_contain_text("20")
    page.goto(f"/messages?topic={topic}")
    expect(page.locator("details.record")).to_have_count(30)
    page.goto("/groups")
    expect(page.locator("tr", has_text="kafka-readers")).to_contain_text("20")
    page.goto("/groups/kafka-readers")
    expect(page.locator("tr", has_text=f"{topic}-0")).to_contain_text("20")
    page.goto("/reassign")
    expect(page.get_by_text("No reassignment was run here yet.")).to_be_visible()


def test_what_kafka_cant_tell_is_said(page: Any) -> None:
    page.goto("/")
    expect(page.get_by_text("No broker reports its bytes per second")).to_be_visible()
    page.goto("/history")
    expect(page.get_by_text("Only Odradek's brokers keep one")).to_be_visible()
    page.goto("/pipelines")
    expect(page.get_by_text("No project is known here")).to_be_visible()


def test_it_is_changed_too(page: Any, kafka_peer: KafkaPeer) -> None:
    page.goto("/topics")
    await_handshake(page)
    page.get_by_role("button", name="Create topic", exact=True).click()
    page.get_by_label("Name").fill("made-here")
    page.get_by_role("dialog").get_by_role("button", name="Create", exact=True).click()
    page.get_by_role("link", name="made-here").click()
    expect(page.locator("[data-partition]")).to_have_count(3)
    admin = AdminClient({"bootstrap.servers": kafka_peer.bootstrap_servers, "log_level": 0})
    assert len(admin.list_topics("made-here", 30).topics["made-here"].partitions) == 3

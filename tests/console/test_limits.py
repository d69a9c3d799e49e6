"""Values that are too large, too many or no text at all are shown within limits."""

import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest
from confluent_kafka import Producer

from odradek.apps.console.readings import records
from odradek.apps.console.readings.records import From, Query, browse
from odradek.apps.lab.bench.many_members import ManyMembers
from odradek.apps.lab.bench.systems import BenchError
from odradek.apps.records.filters import parse_filter
from odradek.client.broker_client import ConnectionFailed
from odradek.client.cluster_client import ClusterClient
from odradek.client.config_admin import Resource, alter_configs
from odradek.client.group_admin import describe_group
from odradek.protocol.messages.describe_configs import ConfigResourceType
from odradek.testing import OdradekCluster

from .conftest import await_handshake, create_topic

PATIENCE_S = 60
MANY = 60_000  # more than one look goes through
LARGE = 10_000_000
PER_ADDRESS = "max.connections.per.ip"
BEGIN_MS = 1_700_000_000_000

expect = pytest.importorskip("playwright.sync_api", reason="the browser tests need playwright").expect
expect.set_options(timeout=PATIENCE_S * 1000)


@pytest.fixture(scope="module")
def producer(three_brokers: OdradekCluster) -> Producer:
    servers = three_brokers.bootstrap_servers
    return Producer({"bootstrap.servers": servers, "log_level": 0, "message.max.bytes": 12 << 20, "linger.ms": 50})


@pytest.fixture(scope="module")
def client(three_brokers: OdradekCluster) -> Iterator[ClusterClient]:
    with ClusterClient(three_brokers.bootstrap_servers) as client:
        yield client


def _create(three_brokers: OdradekCluster, name: str, partitions: int, **config: str) -> str:
    create_topic(three_brokers.bootstrap_servers, name, partitions, 1, **config)
    return name


@pytest.fixture(scope="module")
def many(three_brokers: OdradekCluster, producer: Producer) -> str:
    """A topic of many records in two partitions, a second apart, whose keys say which they are."""
    name = _create(three_brokers, "many", 2, **{"retention.ms": "-1"})  # their times are long past
    _produce(producer, name, MANY)
    return name


def _produce(producer: Producer, topic: str, count: int) -> None:
    for number in range(count):
        producer.produce(topic, b"v", f"k{number}", partition=number % 2, timestamp=BEGIN_MS + number * 1000)
        if number % 10_000 == 0:
            producer.flush(60)
    assert producer.flush(60) == 0


def _keys(found: records.Found) -> list[int]:
    return [int((item.record.key or b"k-1")[1:]) for item in found.records]


def test_a_long_topic_is_browsed_from_both_ends_page_by_page(client: ClusterClient, many: str) -> None:
    newest = browse(client, Query(many))
    assert _keys(newest) == list(range(MANY - 1, MANY - 51, -1))
    assert newest.scanned < 1_000, "it begins at the end"
    older = browse(client, Query(many, resume=newest.resume))
    assert _keys(older) == list(range(MANY - 51, MANY - 101, -1))
    oldest = browse(client, Query(many, start=From.OLDEST))
    assert _keys(oldest) == list(range(50))
    assert _keys(browse(client, Query(many, start=From.OLDEST, resume=oldest.resume))) == list(range(50, 100))


def test_a_long_topic_is_entered_by_offset_and_time(client: ClusterClient, many: str) -> None:
    assert _keys(browse(client, Query(many, 1, From.OFFSET, offset=20_000)))[:2] == [40_001, 40_003]
    at_ms = BEGIN_MS + 30_000 * 1000
    assert _keys(browse(client, Query(many, start=From.TIME, time_ms=at_ms)))[:2] == [30_000, 30_001]
    assert browse(client, Query(many, 0, From.OFFSET, offset=10**30)).records == ()


def test_a_look_for_a_key_ends_and_goes_on(client: ClusterClient, many: str) -> None:
    query = Query(many, filter=parse_filter("key = k3"))
    first = browse(client, query)
    looks, found = 1, first
    while not found.records:
        assert found.resume is not None
        assert not found.is_complete
        assert found.scanned <= records.SCANNED_RECORDS_MAX + 20_000, "it ends soon after the limit"
        found = browse(client, Query(many, filter=query.filter, resume=found.resume))
        looks += 1
    assert _keys(found) == [3]
    assert looks > 1


@pytest.mark.soak
def test_a_million_records(client: ClusterClient, three_brokers: OdradekCluster, producer: Producer) -> None:
    name = _create(three_brokers, "million", 2, **{"retention.ms": "-1"})
    _produce(producer, name, 1_000_000)
    looks = {
        "newest": Query(name),
        "by offset": Query(name, 1, From.OFFSET, offset=250_000),
        "by time": Query(name, start=From.TIME, time_ms=BEGIN_MS + 500_000_000),
        "by key, among the newest": Query(name, filter=parse_filter("key = k999000")),
        "by key, not within the limits": Query(name, filter=parse_filter("key = k0")),
    }
    for what, query in looks.items():
        began = time.monotonic()
        found = browse(client, query)
        took_ms = (time.monotonic() - began) * 1000
        sys.stdout.write(f"\n{what:30}{took_ms:8.0f} ms{len(found.records):4} of {found.scanned:,}")
        assert found.scanned <= records.SCANNED_RECORDS_MAX + 20_000
        assert found.records or not found.is_complete


def test_records_of_ten_megabytes_come_newest_first_and_cut(
    page: Any, three_brokers: OdradekCluster, producer: Producer
) -> None:
    name = _create(three_brokers, "large", 1, **{"max.message.bytes": str(12 << 20)})
    for number in range(8):
        value = str(number).encode() * LARGE if number % 2 else b"\xff" + bytes([number]) * LARGE
        producer.produce(name, value, key=bytes([0xFF, number]), partition=0)
        assert producer.flush(60) == 0
    page.goto(f"/messages?topic={name}")
    shown = page.locator("details.record")
    expect(shown.first).to_have_attribute("data-offset", "7")
    shown.first.locator("summary").click()
    expect(shown.first).to_contain_text("text")
    expect(shown.first).to_contain_text("9.5 MB")
    expect(shown.first.locator("pre").first).to_contain_text("more")
    shown.nth(1).locator("summary").click()
    expect(shown.nth(1).locator("pre").first).to_contain_text("00000000  ff 06 06")
    assert len(page.content()) < 3_000_000
    page.get_by_text("Older records").click()
    expect(page.locator("details.record[data-offset='7']")).to_have_count(0)
    expect(page.locator("details.record[data-offset='0']")).to_have_count(1)


def test_a_group_of_a_thousand_members_is_paged(
    page: Any, client: ClusterClient, three_brokers: OdradekCluster
) -> None:
    with _gathered(client, 1_000) as crowd:
        page.goto("/groups/crowd")
        expect(page.get_by_text("1,000 in 20 pages")).to_be_visible()
        await_handshake(page)
        page.get_by_label("Next page").click()
        expect(page.locator(".pager").get_by_text("2", exact=True)).to_be_visible()
        crowd.leave()
    expect(page.get_by_text("The group has no active members.")).to_be_visible()


@contextmanager
def _gathered(client: ClusterClient, size: int) -> Iterator[ManyMembers]:
    """A group of so many from one address, which brokers allow only when told to."""
    everywhere = Resource(ConfigResourceType.BROKER, "")
    alter_configs(client, everywhere, {PER_ADDRESS: str(3 * size)})
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            with ExitStack() as opened:
                crowd = ManyMembers(describe_group(client, "crowd").coordinator_address, "crowd", size)
                opened.enter_context(crowd)
                crowd.join()
                opened.pop_all()
                break
        except (BenchError, ConnectionFailed):  # not told everywhere yet
            assert time.monotonic() < deadline
    with crowd:
        yield crowd
    alter_configs(client, everywhere, {}, [PER_ADDRESS])


def test_wrong_input_is_told_at_its_field(page: Any, many: str) -> None:
    page.goto(f"/messages?topic={many}&partition=first&offset=soon")
    await_handshake(page)
    expect(_field(page, "Partition")).to_contain_text("'first' is not a partition's number")
    page.get_by_label("Partition").fill("0")
    page.get_by_role("button", name="Search", exact=True).click()
    expect(_field(page, "Offset")).to_contain_text("'soon' is not an offset")
    page.get_by_label("Offset").fill("12")
    page.get_by_role("button", name="Search", exact=True).click()
    expect(page.locator("details.record").first).to_have_attribute("data-offset", "12")
    expect(page.locator(".q-field--error")).to_have_count(0)

    page.goto("/reassign")
    await_handshake(page)
    page.get_by_label("Brokers: 0, 2").fill("the second")
    page.get_by_role("button", name="Plan", exact=True).click()
    expect(_field(page, "Brokers: 0, 2")).to_contain_text("name brokers by their numbers")
    page.get_by_label("Brokers: 0, 2").fill("2")
    page.get_by_label("Throttle, MB/s (empty: none)").fill("fast")
    page.get_by_role("button", name="Plan", exact=True).click()
    expect(_field(page, "Throttle, MB/s (empty: none)")).to_contain_text("a number of MB/s, or nothing")


def _field(page: Any, label: str) -> Any:
    return page.locator(".q-field", has=page.get_by_label(label))

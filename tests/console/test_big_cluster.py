"""1,000 topics of 10 partitions, three replicas each: how long each page takes, and what looking costs.

pytest -m soak -s tests/console/test_big_cluster.py        # prints the figures that docs/console.md shows
"""

import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from odradek.testing import OdradekCluster
from waiting import eventually

from .conftest import ConsoleProcess, await_handshake, browser_on, commit, start_console

pytestmark = pytest.mark.soak

TOPICS = [f"tenant-{number // 50:02}.orders-{number:04}" for number in range(1_000)]
TOPIC = TOPICS[7]
SCREENS = {
    "Cluster": ("/", ".health"),
    "Cluster, with its brokers": ("/", ".main table.rows tbody tr:nth-child(3)"),
    "Topics": ("/topics", ".main tbody tr:nth-child(50) a.name"),
    "Topics, searched": ("/topics?q=orders-0777", ".main a.name[href$='0777']"),
    "Topic": (f"/topics/{TOPIC}", "tr[data-partition]:nth-child(10)"),
    "Messages": (f"/messages?topic={TOPIC}", "details.record:nth-child(50)"),
    "Groups": ("/groups", ".main a.name"),
    "Group": ("/groups/readers", ".main tbody tr"),
    "Reassign": ("/reassign", ".main .card.empty"),
    "History": ("/history", ".moment"),
    "Lab": ("/lab", ".brokerbox:nth-child(3)"),
}
SEEN = "selector => document.querySelector(selector) ? performance.now() : null"
ROUNDS = 3
PAGE_MS_MAX = 1_000
SEEN_S_MAX = 1.0


@pytest.fixture(scope="module")
def big(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OdradekCluster]:
    cluster = OdradekCluster(tmp_path_factory.mktemp("big"), brokers=3)
    try:
        cluster.start_all()
        _fill(cluster.bootstrap_servers)
        yield cluster
    finally:
        cluster.stop_all()


def _fill(servers: str) -> None:
    admin = AdminClient({"bootstrap.servers": servers, "log_level": 0})
    for begin in range(0, len(TOPICS), 20):
        wanted = [NewTopic(name, 10, 3) for name in TOPICS[begin : begin + 20]]
        for created in admin.create_topics(wanted, operation_timeout=60, request_timeout=120).values():
            created.result()
    producer = Producer({"bootstrap.servers": servers, "log_level": 0})
    for name in TOPICS[:20]:
        for number in range(100):
            producer.produce(name, f'{{"n": {number}}}', str(number))
    assert producer.flush(60) == 0
    commit(servers, "readers", *(TopicPartition(TOPIC, number, 1) for number in range(10)))


@pytest.fixture(scope="module")
def console(big: OdradekCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConsoleProcess]:
    arguments = ["--bootstrap-server", big.bootstrap_servers, "--data", str(big.data_dir), "--lab"]
    process = start_console(tmp_path_factory.mktemp("console"), *arguments)
    yield process
    process.stop()


def test_every_page_comes_at_once(chromium: Any, console: ConsoleProcess) -> None:
    took: dict[str, list[float]] = {name: [] for name in SCREENS}
    with browser_on(chromium, console) as page:
        for _ in range(ROUNDS):
            for name, (path, selector) in SCREENS.items():
                page.goto(path, wait_until="commit")
                took[name].append(page.wait_for_function(SEEN, arg=selector).json_value())
    _say("\nfrom navigation to content, ms: the first time, and the median")
    for name, times in took.items():
        _say(f"{name:28}{times[0]:8.0f}{median(times):8.0f}")
    assert not {name: times for name, times in took.items() if median(times) > PAGE_MS_MAX}


def test_changes_are_seen_soon(chromium: Any, console: ConsoleProcess, big: OdradekCluster) -> None:
    producer = Producer({"bootstrap.servers": big.bootstrap_servers, "log_level": 0})
    admin = AdminClient({"bootstrap.servers": big.bootstrap_servers, "log_level": 0})

    def produce() -> None:
        producer.produce(TOPIC, b"x", partition=3)
        assert producer.flush(30) == 0

    with browser_on(chromium, console) as page:
        page.goto(f"/topics/{TOPIC}")
        told = "[data-partition='3'] .figures"
        page.wait_for_selector(told)
        time.sleep(3)
        records = [_seen_after(page, produce, f'document.querySelector("{told}").innerText') for _ in range(5)]
        _say(f"\na record is seen after, s: {records}")
        assert median(records) < SEEN_S_MAX
        page.goto("/topics?q=brand-new")
        page.wait_for_selector(".empty")
        time.sleep(3)
        rows = "document.querySelectorAll('.main a.name').length"
        created, deleted = [], []
        for _ in range(3):
            created.append(_seen_after(page, lambda: _create(admin, "brand-new"), rows))
            deleted.append(_seen_after(page, lambda: _delete(admin, "brand-new"), rows))
        _say(f"a topic that was created, s: {created}, deleted: {deleted}")
        page.goto("/topics")
        page.wait_for_selector(".main a.name")
        await_handshake(page)
        first = "document.querySelector('.main a.name').innerText"
        turned = [_seen_after(page, lambda: page.get_by_label("Next page").click(), first) for _ in range(3)]
        searched = _seen_after(page, lambda: page.get_by_label("Search topics").fill("0777"), rows)
        _say(f"a page turned, s: {turned}, a search: {searched}")
        assert max(*turned, searched) < SEEN_S_MAX


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")


def _create(admin: AdminClient, topic: str) -> None:
    """Until brokers tell of it: what was asked for takes its time in a cluster of 10,000 partitions."""
    admin.create_topics([NewTopic(topic, 1, 3)])[topic].result(60)
    eventually(lambda: topic in admin.list_topics(timeout=30).topics)


def _delete(admin: AdminClient, topic: str) -> None:
    admin.delete_topics([topic])[topic].result(60)
    eventually(lambda: topic not in admin.list_topics(timeout=30).topics)


def _seen_after(page: Any, change: Callable[[], None], expression: str) -> float:
    """Seconds from when the change was made until the page shows another value."""
    before = page.evaluate(expression)
    change()
    made = time.monotonic()
    page.wait_for_function(f"before => {expression} !== before", arg=before)
    return round(time.monotonic() - made, 2)


def test_who_does_not_look_costs_nothing(chromium: Any, console: ConsoleProcess, big: OdradekCluster) -> None:
    brokers = [pid for number in range(3) if (pid := big.pid(number)) is not None]
    _say("\nshare of a core, %: the console, the three brokers")
    with browser_on(chromium, console) as page:
        for name, path in {"Cluster": "/", "Topics": "/topics", "Topic": f"/topics/{TOPIC}"}.items():
            page.goto(path)
            time.sleep(8)
            _say(f"{name:12}{_shares([console.process.pid, *brokers])}")
    deadline = time.monotonic() + 60
    while _connections(console.process.pid):
        assert time.monotonic() < deadline, "the console's connections outlive those who looked"
        time.sleep(0.5)
    _say(f"{'nobody':12}{_shares([console.process.pid, *brokers])}")
    eventually(lambda: not _connections(console.process.pid))  # the keeper of rates reads once a minute


def _shares(processes: list[int]) -> list[float]:
    def seconds(process: int) -> float:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    before = [seconds(process) for process in processes]
    time.sleep(10)
    return [round(10 * (seconds(process) - used), 1) for process, used in zip(processes, before, strict=True)]


def _connections(process: int) -> int:
    """Return the connections that it opened or accepted and that are still there; its listener is none."""
    own = {os.readlink(link) for link in Path(f"/proc/{process}/fd").iterdir() if link.is_symlink()}
    established = "01"
    lines = Path(f"/proc/{process}/net/tcp").read_text().splitlines()[1:]
    return sum(f"socket:[{fields[9]}]" in own for line in lines if (fields := line.split())[3] == established)

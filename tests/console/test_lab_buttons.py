"""A cluster of `odradek up --lab`, broken and mended with the Lab's buttons while records are written; and what the
console asks of it when nobody looks."""

import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.request import urlopen

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from odradek.apps.console.feeds import LEASE_MS
from odradek.local.zookeeper_server import free_port, free_ports
from waiting import eventually

from .conftest import await_handshake, browser_on

pytestmark = [pytest.mark.soak, pytest.mark.timeout(600)]
PATIENCE_S = 120
TOPIC = "ferry"
METRICS_AFTER = 100
GONE_S = 20  # so long a page that lost its connection is waited for
CONSOLES_OWN = ("Metadata", "ListOffsets", "DescribeLogDirs", "DescribeConfigs", "ListGroups", "OffsetFetch")
# by one reading of the keeper: of three brokers and of the few groups of the test
READ_ONCE = {
    "Metadata": 8,
    "ListOffsets": 6,
    "DescribeLogDirs": 3,
    "DescribeConfigs": 3,
    "ListGroups": 3,
    "OffsetFetch": 8,
}

expect = pytest.importorskip("playwright.sync_api", reason="the browser tests need playwright").expect


@dataclass(frozen=True, slots=True)
class Up:
    url: str
    port: int

    @property
    def bootstrap(self) -> str:
        return ",".join(f"127.0.0.1:{self.port + number}" for number in range(3))

    def asked(self) -> dict[str, int]:
        """Counts of the requests that the three brokers have answered since they started, by kind."""
        told: dict[str, int] = dict.fromkeys(CONSOLES_OWN, 0)
        for number in range(3):
            with urlopen(f"http://127.0.0.1:{self.port + number + METRICS_AFTER}/metrics", timeout=10) as answer:
                text = answer.read().decode()
            for api, count in re.findall(r'requestmetrics_requests_total\{request="(\w+)",[^}]*\} (\S+)', text):
                told[api] = told.get(api, 0) + int(float(count))
        return told


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    pytest.importorskip("nicegui", reason="the console needs odradek[console]")
    data, port, console = (
        tmp_path_factory.mktemp("up"),
        free_ports(*(step + after for step in range(3) for after in (0, METRICS_AFTER))),
        free_port(),
    )
    odradek = [sys.executable, "-m", "odradek"]
    lab = ["--brokers", "3", "--lab", "--port", str(port), "--console", str(console), "--detach"]
    subprocess.run([*odradek, "up", *lab, "--data", data, "--set", "replica.lag.time.max.ms=8000"], check=True)
    try:
        yield Up(f"http://127.0.0.1:{console}", port)
    finally:
        subprocess.run([*odradek, "down", "--data", data], check=True)


@pytest.fixture(scope="module")
def writing(up: Up) -> Iterator[None]:
    """A producer that writes to every partition all the time, with acks=all."""
    settings: dict[str, str | int | float | bool] = {"bootstrap.servers": up.bootstrap, "log_level": 0}
    admin = AdminClient(settings)
    admin.create_topics([NewTopic(TOPIC, 3, 3)])[TOPIC].result(60)
    producer, enough = (
        Producer(
            {**settings, "acks": "all", "message.timeout.ms": 5_000, "topic.metadata.refresh.interval.ms": 3_600_000}
        ),
        threading.Event(),
    )

    def write() -> None:
        while not enough.wait(0.05):
            for partition in range(3):
                producer.produce(TOPIC, b"across", partition=partition)
            producer.poll(0)
        producer.flush(10)

    writer = threading.Thread(target=write)
    writer.start()
    yield
    enough.set()
    writer.join()


class Lab:
    """The Lab's page, as a person sees and uses it."""

    def __init__(self, page: Any) -> None:
        self.page = page
        page.goto(f"/lab?topic={TOPIC}")
        await_handshake(page)
        expect(page.locator(".strip")).to_have_count(3)
        self.all_in_sync()

    def box(self, broker: str) -> Any:
        return self.page.locator(f".brokerbox[data-broker='{broker}']")

    def strip(self, partition: str) -> Any:
        return self.page.locator(f".strip[data-partition='{partition}']")

    @property
    def controller(self) -> Any:
        return self.page.locator(".brokerbox", has_text="controller, epoch")

    def press(self, broker: str, act: str, choice: str = "") -> None:
        self.box(broker).get_by_role("button", name=act, exact=True).click()
        dialog = self.page.get_by_role("dialog")
        if choice:
            dialog.get_by_label("From").click()
            self.page.get_by_role("option", name=choice, exact=True).click()
        dialog.get_by_role("button", name=act, exact=True).click()
        expect(dialog).to_have_count(0)

    def led_by(self, broker: str) -> str:
        """A partition that the broker leads; elected first, where it leads none."""

        def leads() -> bool:
            return bool(self.page.locator(f".strip[data-leader='{broker}']").count())

        deadline = time.monotonic() + PATIENCE_S
        while not leads():
            assert time.monotonic() < deadline
            self.page.goto("/")
            await_handshake(self.page)
            elect = self.page.get_by_role("button", name="Elect preferred leaders")
            if elect.is_enabled():
                elect.click()
                self.page.get_by_role("dialog").get_by_role("button", name="Elect", exact=True).click()
                expect(self.page.get_by_role("dialog")).to_have_count(0)
            time.sleep(1)
            self.__init__(self.page)  # type: ignore[misc]
        return str(self.page.locator(f".strip[data-leader='{broker}']").first.get_attribute("data-partition"))

    def high_watermark(self, partition: str) -> int:
        told = self.strip(partition).locator(".lane").first.get_attribute("title") or ""
        return int(told.rpartition("high watermark ")[2])

    def goes_on(self, partition: str) -> None:
        """Wait until more is acknowledged there, and the page shows it."""
        before = self.high_watermark(partition)
        eventually(lambda: self.high_watermark(partition) > before, PATIENCE_S)

    def all_in_sync(self) -> None:
        for partition in "012":
            expect(self.strip(partition)).to_have_attribute("data-isr", re.compile(r"^(?=.*0)(?=.*1)(?=.*2)"))
        expect(self.page.locator(".lane.out, .lane.offline")).to_have_count(0)


@pytest.fixture
def lab(chromium: Any, up: Up, writing: None) -> Iterator[Lab]:
    expect.set_options(timeout=PATIENCE_S * 1000)
    with browser_on(chromium, up) as page:
        yield Lab(page)


@pytest.mark.parametrize("choice", ["ZooKeeper", "ZooKeeper and the other brokers"])
def test_a_controller_without_zookeeper_is_succeeded(lab: Lab, choice: str) -> None:
    broker = str(lab.controller.get_attribute("data-broker"))
    partition = lab.led_by(broker)
    lab.press(broker, "Isolate", choice)
    expect(lab.box(broker)).to_contain_text(f"isolated from {choice}")
    expect(lab.box(broker)).to_contain_text("it has no session")
    expect(lab.controller).to_have_count(1)
    expect(lab.controller).not_to_have_attribute("data-broker", broker)
    expect(lab.strip(partition)).not_to_have_attribute("data-leader", broker)
    expect(lab.strip(partition)).not_to_have_attribute("data-isr", re.compile(broker))
    lab.goes_on(partition)

    lab.press(broker, "Reconnect")
    expect(lab.box(broker)).to_contain_text("in the cluster")
    lab.all_in_sync()
    lab.goes_on(partition)


def test_a_broker_without_peers_leaves_their_isrs_and_comes_back(lab: Lab) -> None:
    ruler = str(lab.controller.get_attribute("data-broker"))
    broker = next(number for number in "012" if number != ruler)
    partition = lab.led_by(ruler)
    lab.press(broker, "Isolate", "the other brokers")
    expect(lab.box(broker)).to_contain_text("isolated from the other brokers")
    expect(lab.strip(partition)).not_to_have_attribute("data-isr", re.compile(broker))
    expect(lab.box(broker)).to_contain_text("in the cluster")
    expect(lab.controller).to_have_attribute("data-broker", ruler)
    lab.goes_on(partition)

    lab.press(broker, "Reconnect")
    lab.all_in_sync()
    for number in "012":
        lab.goes_on(number)


@pytest.mark.parametrize(
    ("breaks", "mends"), [("Kill", "Start"), ("Freeze (SIGSTOP)", "Resume (SIGCONT)"), ("Stop", "Start")]
)
def test_a_broker_is_broken_and_mended(lab: Lab, breaks: str, mends: str) -> None:
    broker = str(lab.controller.get_attribute("data-broker"))
    partition = lab.led_by(broker)
    lab.press(broker, breaks)
    expect(lab.controller).not_to_have_attribute("data-broker", broker)
    expect(lab.strip(partition)).not_to_have_attribute("data-leader", broker)
    expect(lab.strip(partition)).not_to_have_attribute("data-isr", re.compile(broker))
    lab.goes_on(partition)

    lab.press(broker, mends)
    expect(lab.box(broker)).to_contain_text("running")
    lab.all_in_sync()
    lab.goes_on(partition)


def test_when_nobody_looks_the_brokers_are_asked_once_a_minute_at_most(chromium: Any, up: Up) -> None:
    expect.set_options(timeout=PATIENCE_S * 1000)
    with browser_on(chromium, up) as page:
        before = up.asked()
        page.goto("/")
        expect(page.locator(".health")).to_be_visible()
        time.sleep(5)
        looked = _more(before, up.asked())
    time.sleep(GONE_S + 2 * LEASE_MS / 1000)
    before = up.asked()
    time.sleep(10)
    unseen = _more(before, up.asked())
    sys.stdout.write(f"\nrequests while somebody looked for 5 s: {looked}\nwhile nobody looked for 10 s: {unseen}\n")
    assert looked["Metadata"] > 0
    asked = [api for api in CONSOLES_OWN if unseen[api] > READ_ONCE.get(api, 0)]
    assert not asked


def _more(before: dict[str, int], now: dict[str, int]) -> dict[str, int]:
    return {api: grown for api, count in now.items() if (grown := count - before.get(api, 0)) or api in CONSOLES_OWN}

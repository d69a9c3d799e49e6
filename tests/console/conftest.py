"""A real cluster of three brokers, a console process before it, and Chromium to look at it."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from ssl import create_default_context
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import urlopen

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from odradek.local.zookeeper_server import free_port
from odradek.testing import OdradekCluster
from waiting import eventually

PATIENCE_S = 60
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


@dataclass
class ConsoleProcess:
    url: str
    process: subprocess.Popen[bytes]
    log: Path

    def stop(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def start_console(
    directory: Path, *arguments: str, host: str = "127.0.0.1", port: int = 0, certificate: Path | None = None
) -> ConsoleProcess:
    port = port or free_port()
    log = directory / f"console-{port}.log"
    command = [sys.executable, "-m", "odradek", "console", "--port", str(port), *arguments]
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            stdout=output,
            stderr=output,
            env={**os.environ, "ODRADEK_STATE_DIR": str(directory)},
        )
    trusted = None if certificate is None else create_default_context(cafile=certificate)
    console = ConsoleProcess(f"http{'s' if certificate else ''}://{host}:{port}", process, log)
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            urlopen(f"{console.url}/login", timeout=5, context=trusted).close()
            return console
        except HTTPError:
            return console  # without a password there is no login
        except (URLError, OSError):
            if process.poll() is not None or time.monotonic() > deadline:
                console.stop()
                pytest.fail(f"the console did not start: {log.read_text()}")
            time.sleep(0.1)


@pytest.fixture(scope="package")
def three_brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OdradekCluster]:
    pytest.importorskip("nicegui", reason="the console needs odradek[console]")
    cluster = OdradekCluster(tmp_path_factory.mktemp("console-cluster"), brokers=3, lab=True)
    try:
        cluster.start_all()
        yield cluster
    finally:
        cluster.stop_all()


@pytest.fixture(autouse=True)
def _brokers_run_again(request: pytest.FixtureRequest) -> Iterator[None]:
    """Whatever a test that failed has left of the shared brokers is nothing to the next one."""
    yield
    if "three_brokers" not in request.fixturenames:
        return
    cluster: OdradekCluster = request.getfixturevalue("three_brokers")
    for broker in [number for number in range(3) if cluster.pid(number) is None]:
        cluster.start(broker)


@pytest.fixture(scope="package")
def console(three_brokers: OdradekCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConsoleProcess]:
    arguments = ["--bootstrap-server", three_brokers.bootstrap_servers, "--data", str(three_brokers.data_dir), "--lab"]
    process = start_console(tmp_path_factory.mktemp("console"), *arguments)
    yield process
    process.stop()


def create_topic(servers: str, name: str, partitions: int = 3, replicas: int = 3, **config: str) -> None:
    """By a client of its own: librdkafka asks the controller that it has once heard of, for five minutes, however often
    that one says NOT_CONTROLLER. Tests move the controller, and the brokers don't learn of the new one all at once."""
    admin = AdminClient({"bootstrap.servers": servers, "log_level": 0})

    def is_created() -> bool:
        admin.list_topics(timeout=30)  # has the client hear of the controller anew
        try:
            admin.create_topics([NewTopic(name, partitions, replicas, config=config)])[name].result(30)
        except KafkaException as error:
            if error.args[0].code() == KafkaError.NOT_CONTROLLER:
                return False
            if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise  # it exists if the answer of an earlier attempt was lost
        return True

    eventually(is_created)


def commit(servers: str, group: str, *positions: TopicPartition) -> None:
    """In a group's name; a cluster that has just begun has no coordinator for a moment."""
    consumer = Consumer({"bootstrap.servers": servers, "group.id": group, "log_level": 0})
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            consumer.commit(offsets=list(positions), asynchronous=False)
            break
        except KafkaException:
            assert time.monotonic() < deadline
            time.sleep(0.2)
    consumer.close()


@dataclass
class Seen:
    """Errors of a page."""

    hosts: set[str] = field(default_factory=set)
    faults: list[str] = field(default_factory=list)


@pytest.fixture(scope="package")
def chromium():  # type: ignore[no-untyped-def]
    playwright = pytest.importorskip("playwright.sync_api", reason="the browser tests need playwright")
    if CHROMIUM is None:
        pytest.skip("there is no Chromium on this machine (apt-get install chromium)")
    with playwright.sync_playwright() as engine:
        browser = engine.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-dev-shm-usage"])
        yield browser
        browser.close()


def await_handshake(page: Any) -> None:
    """Until the page talks with its server: what is clicked before is lost. Asked by the clock, not at every frame: a
    busy machine may draw none for long."""
    page.wait_for_function("window.did_handshake === true", polling=100)


@contextmanager
def browser_on(chromium, console):  # type: ignore[no-untyped-def]
    """A fresh browser on the console. Whatever is done in it, the page asks no other host and runs nothing foreign."""
    context = chromium.new_context(
        base_url=console.url, viewport={"width": 1280, "height": 860}, reduced_motion="reduce"
    )
    context.set_default_timeout(PATIENCE_S * 1000)
    seen = Seen()

    def watch(page):  # type: ignore[no-untyped-def]
        page.on("request", lambda request: seen.hosts.add(urlsplit(request.url).netloc))
        page.on("websocket", lambda socket: seen.hosts.add(urlsplit(socket.url).netloc))
        page.on("pageerror", lambda error: seen.faults.append(str(error)))
        page.on("dialog", lambda dialog: (seen.faults.append(f"dialog: {dialog.message}"), dialog.dismiss()))

    context.on("page", watch)
    try:
        yield context.new_page()
        assert seen.hosts - {""} == {urlsplit(console.url).netloc}
        assert not seen.faults
    finally:
        context.close()


@pytest.fixture
def page(chromium, console):  # type: ignore[no-untyped-def]
    with browser_on(chromium, console) as page:
        yield page

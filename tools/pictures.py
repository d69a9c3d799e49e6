"""Take pictures of the console for docs/pictures: group, reassign, dialog, lab, history, pipelines.

The cluster is a local one with traffic. With --security it is a secured one, and the pictures are login, users, acls.

    python tools/pictures.py DIRECTORY [--pipeline | --security]

Needs the packages of `odradek[dev]` and Chromium; with --pipeline Spark, and minutes. Look at each one before it is
kept.
"""

import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, Producer
from playwright.sync_api import Page, sync_playwright

from odradek.base.config.properties import parse_properties
from odradek.local.zookeeper_server import free_ports, port_is_taken
from odradek.testing import OdradekCluster

PATIENCE_MS = 240_000
TOPICS = {"web.orders": 6, "web.shipments": 3, "audit.log": 1}


def main(target: Path, *, with_pipeline: bool) -> None:
    with _cluster_of_topics(brokers=3, lab=True) as (directory, cluster):
        try:
            project = _project(directory, cluster) if with_pipeline else None
            with _console(cluster, directory, project) as url, _traffic(cluster.bootstrap_servers):
                _take(url, target, project)
        finally:
            if with_pipeline:
                subprocess.run(_odradek("pipeline", "stop", str(directory / "shop")), check=False)


def secured(target: Path) -> None:
    with _cluster_of_topics(brokers=1, secure=True) as (directory, cluster):
        _give_rights(cluster)
        with _console(cluster, directory, None, "--login", str(cluster.data_dir / "console.properties")) as url:
            _take_secured(url, target, cluster)


@contextmanager
def _cluster_of_topics(
    *, brokers: int, lab: bool = False, secure: bool = False
) -> Iterator[tuple[Path, OdradekCluster]]:
    """A directory that goes in the end, and a cluster in it."""
    with tempfile.TemporaryDirectory(prefix="odradek-pictures-") as directory:
        cluster = OdradekCluster(Path(directory) / "cluster", brokers=brokers, lab=lab, secure=secure)
        try:
            cluster.start_all()
            for name, partitions in TOPICS.items():
                cluster.create_topic(name, partitions)
            yield Path(directory), cluster
        finally:
            cluster.stop_all()


RIGHTS = (
    ("User:warehouse", "--topic", "web.orders", ("Read", "Describe")),
    ("User:warehouse", "--group", "warehouse", ("Read",)),
    ("User:shop", "--topic", "web.", ("Write", "Create")),
    ("User:auditor", "--topic", "audit.log", ("Read",)),
)


def _give_rights(cluster: OdradekCluster) -> None:
    at = ["--bootstrap-server", cluster.bootstrap_servers, "--command-config", str(cluster.client_properties)]
    for user in ("warehouse", "shop", "auditor"):
        subprocess.run(_odradek("users", "set", user, *at), input=f"password of {user}\n", text=True, check=True)
    for principal, kind, name, operations in RIGHTS:
        words = [word for operation in operations for word in ("--operation", operation)]
        pattern = ["--resource-pattern-type", "prefixed"] if name.endswith(".") else []
        subprocess.run(_odradek("acls", "add", "--principal", principal, *words, kind, name, *pattern, *at), check=True)


def _take_secured(url: str, target: Path, cluster: OdradekCluster) -> None:
    users = parse_properties((cluster.data_dir / "security/users.properties").read_text())
    with sync_playwright() as engine:
        browser = engine.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        context = browser.new_context(base_url=url, viewport={"width": 1280, "height": 800}, color_scheme="dark")
        context.set_default_timeout(PATIENCE_MS)
        page = context.new_page()
        page.goto("/login")
        page.get_by_label("User of the cluster").fill("admin")
        page.get_by_label("Password").fill(users["admin"])
        page.screenshot(path=str(target / "login.png"))
        page.get_by_role("button", name="Log in").click()
        page.wait_for_function("window.did_handshake === true", polling=100)
        for name in ("users", "acls"):
            _open(page, f"/{name}")
            page.get_by_text("warehouse").first.wait_for()
            _shot(page, target / f"{name}.png")
        browser.close()


def _take(url: str, target: Path, project: Path | None) -> None:
    with sync_playwright() as engine:
        browser = engine.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        context = browser.new_context(base_url=url, viewport={"width": 1280, "height": 800}, color_scheme="dark")
        context.set_default_timeout(PATIENCE_MS)
        page = context.new_page()
        if project is not None:
            _pipelines(page, target)
        _group(page, target)
        _reassign(page, target)
        _lab(page, target)
        browser.close()


def _open(page: Page, path: str) -> None:
    page.goto(path)
    page.wait_for_function("window.did_handshake === true", polling=100)


def _shot(page: Page, path: Path) -> None:
    page.wait_for_timeout(2500)
    page.screenshot(path=str(path))


def _group(page: Page, target: Path) -> None:
    _open(page, "/groups/warehouse")
    page.get_by_text("warehouse-c").first.wait_for()
    page.wait_for_timeout(4000)
    _shot(page, target / "group.png")


def _reassign(page: Page, target: Path) -> None:
    _open(page, "/reassign")
    page.get_by_label("Goal").click()
    page.get_by_role("option", name="Change the number of replicas").click()
    page.get_by_label("Replicas").fill("2")
    page.get_by_label("Topics (empty: all)").fill("web.orders")
    page.get_by_role("button", name="Plan", exact=True).click()
    page.get_by_text("Brokers, before and after").wait_for()
    _shot(page, target / "reassign.png")


def _lab(page: Page, target: Path) -> None:
    _open(page, "/lab?topic=web.orders")
    controller = page.locator(".card", has_text="controller, epoch").first
    controller.get_by_role("button", name="Isolate").click()
    page.get_by_role("dialog").get_by_role("button", name="Isolate", exact=True).wait_for()
    _shot(page, target / "dialog.png")
    page.get_by_role("dialog").get_by_role("button", name="Isolate", exact=True).click()
    page.get_by_text("not in the cluster").wait_for()
    page.wait_for_timeout(6000)
    _shot(page, target / "lab.png")
    _open(page, "/history")
    page.get_by_text("A controller was elected").first.wait_for()
    _shot(page, target / "history.png")


def _pipelines(page: Page, target: Path) -> None:
    _open(page, "/pipelines")
    page.get_by_text("running", exact=True).wait_for()
    cell = page.locator("tr", has_text="data/orders").locator("td").nth(7)
    page.wait_for_function("cell => /[0-9]/.test(cell.textContent)", arg=cell.element_handle(), polling=500)
    page.wait_for_timeout(20_000)
    _shot(page, target / "pipelines.png")


@contextmanager
def _console(cluster: OdradekCluster, directory: Path, project: Path | None, *more: str) -> Iterator[str]:
    """Without more options, of a cluster with a laboratory."""
    port = free_ports()
    options = ["--port", str(port), "--data", str(cluster.data_dir), "-b", cluster.bootstrap_servers]
    options += more or ["--lab"]
    options += ["--pipeline", str(project)] if project else []
    with (directory / "console.log").open("wb") as log:
        process = subprocess.Popen(_odradek("console", *options), stdout=log, stderr=log)
    while not port_is_taken(port):
        time.sleep(0.2)
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(30)


def _project(directory: Path, cluster: OdradekCluster) -> Path:
    cluster.create_topic("shop.orders", 3)
    cluster.create_topic("shop.categories", 1)
    bootstrap = cluster.bootstrap_servers
    subprocess.run(_odradek("pipeline", "init", "shop", "-b", bootstrap), cwd=directory, check=True)
    project = directory / "shop"
    with (directory / "run.log").open("wb") as log:
        subprocess.Popen(_odradek("pipeline", "run"), cwd=project, stdout=log, stderr=log)
        subprocess.Popen([sys.executable, "generate.py", "--seconds", "200"], cwd=project, stdout=log, stderr=log)
    return project


@contextmanager
def _traffic(bootstrap: str) -> Iterator[None]:
    """Somebody writes, and a group of three reads, not quite as fast."""
    ended = threading.Event()
    threads = [threading.Thread(target=_write, args=(bootstrap, ended))]
    threads += [threading.Thread(target=_read, args=(bootstrap, f"warehouse-{name}", ended)) for name in "abc"]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        ended.set()
        for thread in threads:
            thread.join(30)


def _write(bootstrap: str, ended: threading.Event) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 20, "log_level": 0})
    numbers = random.Random(7)
    while not ended.wait(0.05):
        for _ in range(12):
            topic = "web.orders" if numbers.random() < 0.8 else "web.shipments"
            amount = numbers.randrange(1, 400)
            producer.produce(topic, f'{{"amount": {amount}, "status": "open"}}', f"customer-{numbers.randrange(900)}")
        producer.poll(0)


def _read(bootstrap: str, name: str, ended: threading.Event) -> None:
    settings: dict[str, Any] = {
        "bootstrap.servers": bootstrap,
        "group.id": "warehouse",
        "client.id": name,
        "auto.offset.reset": "earliest",
        "auto.commit.interval.ms": 1000,
        "log_level": 0,
    }
    consumer = Consumer(settings)
    consumer.subscribe(["web.orders", "web.shipments"])
    while not ended.is_set():
        consumer.poll(0.1)
    consumer.close()


def _odradek(*words: str) -> list[str]:
    return [sys.executable, "-m", "odradek", *words]


if __name__ == "__main__":
    if "--security" in sys.argv:
        secured(Path(sys.argv[1]))
    else:
        main(Path(sys.argv[1]), with_pipeline="--pipeline" in sys.argv)

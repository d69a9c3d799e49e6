"""Fixtures of the tests: topics of their own, Kafka's Java tools, and the command line."""

import itertools
import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any, Protocol

import pytest
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from apache_kafka import KafkaPeer
from kafka_tools import KafkaTools
from odradek.apps.cli import main

from .kafka_pair import KafkaPair, connected_pair

COMPRESSIONS = ("none", "gzip", "snappy", "lz4", "zstd")

_numbers = itertools.count(1)


class Cluster(Protocol):
    @property
    def bootstrap_servers(self) -> str: ...


class TopicMaker(Protocol):
    def __call__(self, partitions: int = 1, **config: str) -> str: ...


JavaTool = Callable[..., str]
Run = Callable[..., CompletedProcess[str]]


def unused_name() -> str:
    """All of one length, so that tables made of them can be compared."""
    return f"topic-{os.getpid()}-{next(_numbers):04}"


@pytest.fixture(scope="session")
def bootstrap(odradek_cluster: Cluster) -> str:
    return odradek_cluster.bootstrap_servers


@pytest.fixture(scope="session")
def admin(bootstrap: str) -> AdminClient:
    return AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})


@pytest.fixture(scope="session")
def new_topic(admin: AdminClient) -> TopicMaker:
    """Creates a topic; the dots of a configuration key are written as underscores."""

    def create(partitions: int = 1, **config: str) -> str:
        name = unused_name()
        settings = {key.replace("_", "."): value for key, value in config.items()}
        admin.create_topics([NewTopic(name, partitions, 1, config=settings)])[name].result(30)
        return name

    return create


@pytest.fixture(scope="module")
def pair(odradek_cluster: Cluster, kafka_peer: KafkaPeer) -> Iterator[KafkaPair]:
    with connected_pair(odradek_cluster.bootstrap_servers, kafka_peer.bootstrap_servers, unused_name()) as pair:
        yield pair


@pytest.fixture(scope="session")
def java_tool(kafka_tools: KafkaTools) -> JavaTool:
    """Runs one of Kafka's own tools and gives its output; a failure of it fails the test."""

    def run(tool: str, *arguments: object, stdin: str = "") -> str:
        printed = kafka_tools.run(tool, *arguments, stdin=stdin)
        assert printed.status == 0, printed.text
        return printed.output

    return run


@pytest.fixture
def odradek(
    odradek_cluster: Cluster,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> Run:
    """Runs a command to its end, in this process because a new one costs half a second; `stdin` is piped into it."""

    def run(*arguments: str, stdin: str = "") -> CompletedProcess[str]:
        typed = tmp_path / "stdin"
        typed.write_text(stdin)
        with open(typed) as file:
            monkeypatch.setattr(sys, "stdin", file)
            capfd.readouterr()
            code = main.run([*arguments, "--bootstrap-server", odradek_cluster.bootstrap_servers])
        output = capfd.readouterr()
        return CompletedProcess(arguments, code, output.out, output.err)

    return run


def told(result: CompletedProcess[str]) -> Any:
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


@pytest.fixture
def peer(kafka_lib: Path, tmp_path: Path) -> Iterator[KafkaPeer]:
    """A broker of Apache Kafka that the test may stop, kill and start again."""
    peer = KafkaPeer(kafka_lib, tmp_path)
    try:
        peer.start()
        yield peer
    finally:
        peer.stop()

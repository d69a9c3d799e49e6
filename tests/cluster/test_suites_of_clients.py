"""Own test suites of foreign clients, as their package managers deliver them, on three brokers.

rust-rdkafka comes from crates.io with its tests, franz-go from Go's module proxy. Nothing of them is kept here. Among
the soaks: they are compiled for minutes. ODRADEK_SUITES_BROKERS=kafka runs the same on Apache Kafka.
"""

import os
import re
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from apache_kafka import broker_command
from foreign_clients import franz_sources, rdkafka_crate
from obtaining import skipped_if_unobtainable
from odradek.apps.lab.cluster import ChaosCluster

pytestmark = [pytest.mark.soak, pytest.mark.timeout(3600)]

SUITE_S_MAX = 1500
RUST_SUITES = (
    "transactions",
    "high_producers",
    "low_producers",
    "high_consumers",
    "low_consumers",
    "admin",
    "metadata",
)
ELSEWHERE = (
    "test_metadata",  # one broker, at port 9092
    "test_future_producer_send",  # localhost:9092
    "test_future_producer_send_fail",  # the same
    "test_base_producer_timeout",  # fails where a topic is created and written within 100 ms
)
"""Tests of rust-rdkafka that are not about brokers like these."""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory, zookeeper: str, kafka_lib: Path) -> Iterator[ChaosCluster]:
    is_kafka = os.environ.get("ODRADEK_SUITES_BROKERS") == "kafka"
    launch = dict.fromkeys(range(3), broker_command(kafka_lib)) if is_kafka else {}
    settings = {
        "auto.create.topics.enable": "true",
        "zookeeper.session.timeout.ms": "18000",
        "replica.lag.time.max.ms": "30000",
        "min.insync.replicas": "1",  # topics with one replica are among those of the suites
        "num.partitions": "3",
        "transaction.state.log.num.partitions": "3",
    }
    directory = tmp_path_factory.mktemp("suites") / "cluster"
    with ChaosCluster(directory, zookeeper, settings=settings, launch=launch) as running:
        yield running


def run(command: list[str], directory: Path, **variables: str) -> str:
    result = subprocess.run(
        command,
        cwd=directory,
        env={**os.environ, **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=SUITE_S_MAX,
        check=False,
    )
    assert result.returncode == 0, failures(result.stdout)
    return result.stdout


def failures(printed: str) -> str:
    """The lines that name what failed, and the end of the output."""
    named = [line for line in printed.splitlines() if re.search(r"FAIL|panicked|failed", line)]
    return "\n".join([*named[-40:], printed[-3000:]])


@pytest.mark.parametrize("suite", RUST_SUITES)
def test_rust_rdkafka(cluster: ChaosCluster, suite: str) -> None:
    with skipped_if_unobtainable():
        crate = rdkafka_crate()
    options = ["--test-threads=1", "--exact", *(word for name in ELSEWHERE for word in ("--skip", name))]
    command = ["cargo", "test", "--locked", "--test", f"test_{suite}", "--", *options]
    printed = run(command, crate, KAFKA_HOST=cluster.bootstrap, KAFKA_VERSION="3.9", RUST_LOG="off")
    assert re.search(r"test result: ok\. [1-9]", printed), printed[-2000:]


@pytest.mark.parametrize("story", ["TestTxnEtl", "TestGroupETL"])
def test_franz_go(cluster: ChaosCluster, story: str) -> None:
    """Chains of consumers that write what they read, each record once; groups are rebalanced all the time."""
    with skipped_if_unobtainable():
        sources = franz_sources()
    variables: Mapping[str, str] = {"KGO_SEEDS": cluster.bootstrap, "KGO_TEST_RECORDS": "50000", "KGO_TEST_RF": "3"}
    command = ["go", "test", "-count=1", "-timeout", f"{SUITE_S_MAX}s", "-run", f"^{story}$", "./pkg/kgo"]
    assert "\nok" in "\n" + run(command, sources, **variables)

"""Kafka's Java producer of version 4 goes on with its transactions while brokers are frozen, stopped and killed.

Its transactions are of version 2. What it reported as committed is read, once and whole; nothing else is.
"""

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from java_program import java
from odradek.model.topic_names import TRANSACTIONS_TOPIC
from waiting import eventually

from .conftest import unused_name
from .own_cluster import PATIENCE_S, OwnCluster, running_cluster

pytestmark = [pytest.mark.soak, pytest.mark.timeout(300)]  # a minute each

PROGRAM = Path(__file__).parent.parent / "kafka4" / "Transactions.java"
COUNT = 400
PROGRESS = 25  # transactions before a fault, and between its begin and its end where brokers are left to do them


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory, zookeeper: str) -> Iterator[OwnCluster]:
    settings = {
        "transaction_state_log_num_partitions": "1",
        "transaction_state_log_replication_factor": "3",
        "transaction_state_log_min_isr": "1",
        "offsets_topic_num_partitions": "1",
        "offsets_topic_replication_factor": "3",
        "odradek_transaction_version": "2",
    }
    with running_cluster(tmp_path_factory.mktemp("version-2"), zookeeper, **settings) as running:
        yield running


def freeze(cluster: OwnCluster, broker: int, topic: str) -> None:
    """Until others have taken over; then it goes on with what lay in its sockets."""
    cluster.freeze(broker)
    try:
        cluster.await_leader_other_than(broker, topic)
    finally:
        cluster.thaw(broker)


def kill(cluster: OwnCluster, broker: int, topic: str) -> None:
    cluster.kill(broker)
    try:
        cluster.await_leader_other_than(broker, topic)
    finally:
        cluster.restart(broker)


@pytest.mark.parametrize("fault", [freeze, kill])
@pytest.mark.parametrize("whose", ["coordinator", "leader"])
def test_what_is_committed_is_read_once_and_whole(
    cluster: OwnCluster, kafka4_lib: Path, tmp_path: Path, whose: str, fault: Callable[[OwnCluster, int, str], None]
) -> None:
    topic, printed = unused_name(), tmp_path / "printed"
    cluster.create_topic(topic, (0, 1, 2), (1, 2, 0))
    compiled = tmp_path / "classes"
    subprocess.run(["javac", "-cp", f"{kafka4_lib}/*", "-d", str(compiled), str(PROGRAM)], check=True)

    def ended() -> list[str]:
        return printed.read_text().splitlines()

    words = ("Transactions", cluster.bootstrap, topic, unused_name(), COUNT)
    with java(f"{compiled}:{kafka4_lib}/*", printed, *words) as process:
        eventually(lambda: len(ended()) >= PROGRESS, PATIENCE_S)
        struck = TRANSACTIONS_TOPIC if whose == "coordinator" else topic
        fault(cluster, cluster.leader(struck), struck)
        before = len(ended())
        eventually(lambda: len(ended()) >= min(before + PROGRESS, COUNT), PATIENCE_S)
        assert process.wait(PATIENCE_S * 2) == 0, printed.with_suffix(".errors").read_text()
    lines = ended()
    assert lines[:COUNT] == [f"{'aborted' if n % 3 == 2 else 'committed'} {n}" for n in range(COUNT)]
    committed = [n for n in range(COUNT) if n % 3 != 2]
    assert sorted(lines[COUNT + 1 :]) == sorted(f"read {n}-{partition}" for n in committed for partition in (0, 1))
    cluster.await_isr(TRANSACTIONS_TOPIC, (0, 1, 2))

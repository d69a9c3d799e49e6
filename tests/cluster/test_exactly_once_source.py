"""Kafka Connect with an exactly-once source: workers are killed, and each line of a file is in the topic once."""

import json
import urllib.request
from pathlib import Path

import pytest

from apache_kafka import jars_of
from java_program import java
from obtaining import skipped_if_unobtainable
from odradek.local.zookeeper_server import free_port
from waiting import eventually

from .conftest import unused_name
from .own_cluster import OwnCluster
from .test_transactional_copier import cluster, committed

__all__ = ["cluster"]

pytestmark = [pytest.mark.soak, pytest.mark.timeout(600)]

CONNECT = "org.apache.kafka.connect.cli.ConnectDistributed"
PATIENCE_S = 120


def test_connect_copies_a_file_exactly_once_while_its_workers_are_killed(cluster: OwnCluster, tmp_path: Path) -> None:
    with skipped_if_unobtainable():
        jars = jars_of("streams", "ODRADEK_STREAMS_LIB")
    source, topic, group, port = tmp_path / "source.txt", unused_name(), unused_name(), free_port()
    cluster.create_topic(topic, (0, 1, 2), min_insync_replicas="2")
    worker = tmp_path / "worker.properties"
    worker.write_text(
        f"bootstrap.servers={cluster.bootstrap}\ngroup.id={group}\nlisteners=http://127.0.0.1:{port}\n"
        "key.converter=org.apache.kafka.connect.storage.StringConverter\n"
        "value.converter=org.apache.kafka.connect.storage.StringConverter\n"
        f"config.storage.topic={group}-configs\noffset.storage.topic={group}-offsets\n"
        f"status.storage.topic={group}-status\nexactly.once.source.support=enabled\nscheduled.rebalance.max.delay.ms=0\n"
    )
    connector = {
        "connector.class": "FileStreamSource",
        "file": str(source),
        "topic": topic,
        "tasks.max": "1",
        "batch.size": "100",
        "transaction.boundary": "poll",
        "exactly.once.support": "required",
    }
    written: list[int] = []
    for part in range(3):
        added = range(part * 2_000, part * 2_000 + 2_000)
        with source.open("a") as lines:
            lines.writelines(f"{number}\n" for number in added)
        written += added
        with java(f"{jars}/*", tmp_path / f"connect-{part}", CONNECT, worker) as process:
            if part == 0:
                eventually(lambda: _configured(port, connector), PATIENCE_S)
            wanted = len(written) - 1_000  # the connector keeps its last lines back until more are written
            eventually(lambda wanted=wanted: len(committed(cluster, topic, 0)) >= wanted, PATIENCE_S)  # type: ignore[misc]
            process.kill()
    found = committed(cluster, topic, 0)
    assert found == written[: len(found)]


def _configured(port: int, connector: dict[str, str]) -> bool:
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/connectors/source/config",
        json.dumps(connector).encode(),
        {"Content-Type": "application/json"},
        method="PUT",
    )
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status in (200, 201)
    except OSError:
        return False  # it doesn't listen yet, or rebalances

"""A log directory changes hands: written by Apache Kafka and opened here, continued here and opened by Apache Kafka.

As a clean stop leaves it, and as a kill does. Records must be the same to the byte, whoever reads them.
"""

import shutil
import time
from pathlib import Path
from uuid import UUID

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from apache_kafka import KafkaPeer
from odradek.base.clock import SYSTEM_CLOCK
from odradek.base.config.broker_config import BrokerConfig
from odradek.base.config.properties import parse_properties
from odradek.base.config.topic_config import TopicConfig
from odradek.broker.log.core.validation import BatchRules
from odradek.broker.log.directories.log_dirs import LogDirs
from odradek.broker.log.files.background import IMMEDIATE
from odradek.broker.log.files.partition_log import PartitionLog
from odradek.model import topology
from odradek.protocol.record_batch import batches, build_batch
from odradek.protocol.records import Record, read_records

TOPIC = "exchange"
TP = topology.TopicPartition(TOPIC, 0)
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")

Rows = list[tuple[int, int, bytes | None, bytes | None]]


@pytest.mark.timeout(300)
def test_a_log_directory_changes_hands(peer: KafkaPeer, tmp_path: Path) -> None:
    _create_topic(peer)
    _produce(peer, "first", count=300)
    first = _consume(peer, 300 * len(CODECS))
    peer._process.pause()  # kill -9 would leave the same files
    killed = _copy(peer.data_dir, tmp_path / "killed")
    peer._process.resume()
    peer._process.stop(patience_seconds=60)

    dirs = _open(_copy(peer.data_dir, tmp_path / "clean"))
    log = _log(dirs)
    assert len(log.segments) > 2
    assert _rows(log) == first
    assert log.recovery_point == log.log_end_offset
    assert len(log.producers.entries) == len(CODECS)
    assert log.epochs.latest_epoch == 0
    dirs.unlock()

    shutil.rmtree(peer.data_dir)
    killed.rename(peer.data_dir)
    assert not (peer.data_dir / ".kafka_cleanshutdown").exists()
    dirs = _open(peer.data_dir)
    log = _log(dirs)
    assert _rows(log) == first
    assert len(log.producers.entries) == len(CODECS)
    for number in range(200):
        record = Record(0, first[-1][1] + number, b"ours", b"continued %d" % number)
        log.append_as_leader(
            memoryview(bytearray(build_batch([record]))),
            leader_epoch=log.epochs.latest_epoch,
            rules=BatchRules(),
        )
    ours = _rows(log)
    assert len(ours) == len(first) + 200
    dirs.close()
    dirs.unlock()

    broker_log = tmp_path / "broker.log"
    size = broker_log.stat().st_size
    peer.start()
    _produce(peer, "last", count=10)
    last = _consume(peer, len(ours) + 10 * len(CODECS))
    assert last[: len(ours)] == ours
    said = broker_log.read_text()[size:]
    assert "since clean shutdown file was found" in said
    assert "orrupt" not in said


def _create_topic(peer: KafkaPeer) -> None:
    config = {"segment.bytes": "20000", "index.interval.bytes": "500"}
    admin = AdminClient({"bootstrap.servers": peer.bootstrap_servers})
    for future in admin.create_topics([NewTopic(TOPIC, 1, 1, config=config)]).values():
        future.result(30)


def _produce(peer: KafkaPeer, name: str, count: int) -> None:
    for codec in CODECS:
        producer = Producer(
            {
                "bootstrap.servers": peer.bootstrap_servers,
                "enable.idempotence": True,
                "compression.type": codec,
                "batch.num.messages": 7,
                "linger.ms": 5,
            }
        )
        for number in range(count):
            producer.produce(TOPIC, key=f"{name}-{codec}".encode(), value=b"%d" % number * 20)
        assert producer.flush(60) == 0


def _consume(peer: KafkaPeer, count: int) -> Rows:
    consumer = Consumer({"bootstrap.servers": peer.bootstrap_servers, "group.id": "none", "enable.auto.commit": False})
    consumer.assign([TopicPartition(TOPIC, 0, 0)])
    rows: Rows = []
    deadline = time.monotonic() + 60
    while len(rows) < count and time.monotonic() < deadline:
        for message in consumer.consume(500, timeout=1):
            assert message.error() is None
            rows.append((message.offset(), message.timestamp()[1], message.key(), message.value()))
    consumer.close()
    assert len(rows) == count
    return rows


def _copy(source: Path, target: Path) -> Path:
    shutil.copytree(source, target)
    return target


def _open(directory: Path) -> LogDirs:
    config = BrokerConfig.from_properties({"log.dirs": str(directory), "zookeeper.connect": "127.0.0.1:2181"})
    dirs = LogDirs([directory], config, IMMEDIATE, SYSTEM_CLOCK, pytest.fail)
    dirs.lock()
    cluster_id = parse_properties((directory / "meta.properties").read_text())["cluster.id"]
    assert dirs.remembered_id(cluster_id) == 0
    dirs.load()
    return dirs


def _log(dirs: LogDirs) -> PartitionLog:
    log = dirs.table.get(TP)
    assert log is not None
    overrides = {"segment.bytes": "20000", "index.interval.bytes": "500"}
    log.update_config(dirs.log_config(TopicConfig.of(dirs._config, overrides)))
    assert dirs._topic_ids[TP] != UUID(int=0)
    return log


def _rows(log: PartitionLog) -> Rows:
    rows: Rows = []
    offset = log.log_start_offset
    while offset < log.log_end_offset:
        data = log.read(offset, 1 << 20, upper_bound=log.log_end_offset).records.read()
        for position, header in batches(data):
            rows += [(r.offset, r.timestamp, r.key, r.value) for r in read_records(data, position, header)]
            offset = header.next_offset
    return rows

"""The same history compacted by Apache Kafka and here: the same batches, to the byte where they aren't compressed.

Kafka then goes on with the log that was compacted here, and its own tool finds nothing wrong with the files.
"""

import shutil
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)

from apache_kafka import KafkaPeer
from kafka_tools import KafkaTools
from odradek.broker.log.compaction.cleaner import Cleaner
from odradek.broker.log.core.config import DAY_MS, LogConfig
from odradek.broker.log.core.dirtiness import assess
from odradek.broker.log.core.key_map import KeyMap
from odradek.broker.log.files.checkpoint import read_offsets
from odradek.broker.log.files.partition_log import PartitionLog
from odradek.format.checkpoints import CLEANER_FILE
from odradek.model import topology
from odradek.protocol.compression import Codec
from odradek.protocol.record_batch import BatchHeader, batches
from odradek.protocol.records import Record, read_records

TOPIC = "compacted"
TP = topology.TopicPartition(TOPIC, 0)
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
CONFIG = LogConfig(segment_bytes=20_000, index_interval_bytes=500, cleanup_policy=frozenset({"compact"}))
PATIENCE_S = 120

Rows = list[tuple[int, int, bytes | None, bytes | None]]


class Partition:
    """A log with its lock, all of it committed."""

    def __init__(self, log: PartitionLog) -> None:
        self.log = log
        self.lock = threading.Lock()
        self.high_watermark = log.log_end_offset
        log.producers.advance_high_watermark(log.log_end_offset)

    def last_stable_offset(self, watermark: int) -> int:
        return watermark


@pytest.mark.timeout(600)
def test_the_same_history_is_compacted_to_the_same_log(
    peer: KafkaPeer, kafka_tools: KafkaTools, tmp_path: Path
) -> None:
    _create_topic(peer)
    _write_history(peer)
    _consume_to_the_end(peer)  # so every transaction has its marker
    theirs = peer.data_dir / str(TP)
    raw = tmp_path / "raw" / str(TP)
    shutil.copytree(theirs, raw)
    active = max(int(path.stem) for path in raw.glob("*.log"))

    _let_kafka_compact(peer)
    _until(lambda: read_offsets(peer.data_dir / CLEANER_FILE).get(TP) == active)
    expected_rows = _consume_to_the_end(peer)
    expected = _batches_in(theirs)
    horizons = {header.delete_horizon_ms for header, _, _ in expected} - {None}
    assert len(horizons) == 1
    (horizon_ms,) = horizons
    assert horizon_ms is not None

    log = PartitionLog.open(raw, TP, CONFIG)
    before = len(_batches_in(raw))
    _compact(log, now_ms=horizon_ms - DAY_MS)
    log.close()
    found = _batches_in(raw)
    assert len(found) < before
    assert {header.compression for header, _, _ in found} == set(Codec)
    assert any(0 < len(records) <= header.last_offset_delta for header, records, _ in found)  # made smaller
    assert any(not records for _, records, _ in found)  # kept for its sequence alone
    assert any(header.is_control and records for header, records, _ in found)
    for (our_header, our_records, ours), (header, records, data) in zip(found, expected, strict=True):
        if header.is_compressed:
            assert our_header._replace(crc=0, length=0) == header._replace(crc=0, length=0)
            assert our_records == records
        else:
            assert ours == data
    assert [path.name for path in _logs(raw)] == [path.name for path in _logs(theirs)]

    for directory in (raw, theirs):  # Kafka's is opened as a crash would leave it
        copy = shutil.copytree(directory, tmp_path / "copy" / directory.parent.name / str(TP))
        assert _read(PartitionLog.open(copy, TP, CONFIG)) == [data for _, _, data in _batches_in(directory)]

    _dump(kafka_tools, raw)
    peer._process.stop(patience_seconds=60)
    for path in [*theirs.glob("0*"), theirs / "leader-epoch-checkpoint"]:
        path.unlink()
    for path in [*raw.glob("0*"), raw / "leader-epoch-checkpoint"]:
        shutil.copy2(path, theirs)
    broker_log = tmp_path / "broker.log"
    size = broker_log.stat().st_size
    peer.start()
    assert _consume_to_the_end(peer) == expected_rows
    assert "orrupt" not in broker_log.read_text()[size:]


def _create_topic(peer: KafkaPeer) -> None:
    config = {"segment.bytes": "20000", "index.interval.bytes": "500", "min.cleanable.dirty.ratio": "0.01"}
    admin = AdminClient({"bootstrap.servers": peer.bootstrap_servers})
    for future in admin.create_topics([NewTopic(TOPIC, 1, 1, config=config)]).values():
        future.result(60)


def _let_kafka_compact(peer: KafkaPeer) -> None:
    admin = AdminClient({"bootstrap.servers": peer.bootstrap_servers})
    change = ConfigEntry("cleanup.policy", "compact", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, TOPIC, incremental_configs=[change])
    for future in admin.incremental_alter_configs([resource]).values():
        future.result(60)


def _write_history(peer: KafkaPeer) -> None:
    """Values, tombstones, transactions that end well and badly, in every codec; then what rolls the last segment."""
    for number, codec in enumerate(CODECS):
        settings = {
            "bootstrap.servers": peer.bootstrap_servers,
            "compression.type": codec,
            "batch.num.messages": 7,
            "linger.ms": 5,
        }
        plain = Producer({**settings, "enable.idempotence": True})
        for step in range(400):
            tombstone = step % 11 == number
            plain.produce(TOPIC, key=f"{codec} {step * step % 97}", value=None if tombstone else f"{codec} {step} " * 4)
        assert plain.flush(PATIENCE_S) == 0
        transactional = Producer({**settings, "transactional.id": codec})
        transactional.init_transactions(PATIENCE_S)
        for step in range(6):
            transactional.begin_transaction()
            for part in range(20):
                transactional.produce(TOPIC, key=f"{codec} {step * 10 + part}", value=f"in transaction {step}")
            assert transactional.flush(PATIENCE_S) == 0  # or an abort may find nothing to abort
            if step % 2:
                transactional.abort_transaction(PATIENCE_S)
            else:
                transactional.commit_transaction(PATIENCE_S)
    last = Producer({"bootstrap.servers": peer.bootstrap_servers})
    last.produce(TOPIC, key=b"large", value=bytes(19_000))
    assert last.flush(PATIENCE_S) == 0
    last.produce(TOPIC, key=b"end", value=b"end")
    assert last.flush(PATIENCE_S) == 0


def _consume_to_the_end(peer: KafkaPeer) -> Rows:
    """Return the records that a reader of committed records gets."""
    consumer = Consumer({"bootstrap.servers": peer.bootstrap_servers, "group.id": "none", "enable.auto.commit": False})
    consumer.assign([TopicPartition(TOPIC, 0, 0)])
    rows: Rows = []
    deadline = time.monotonic() + PATIENCE_S
    while not rows or rows[-1][2] != b"end":
        assert time.monotonic() < deadline, f"no end after {len(rows)} records"
        for message in consumer.consume(500, timeout=1):
            assert message.error() is None
            rows.append((message.offset(), message.timestamp()[1], message.key(), message.value()))
    consumer.close()
    return rows


def _compact(log: PartitionLog, now_ms: int) -> None:
    partition = Partition(log)
    dirtiness = assess(log.segments, CONFIG, first_dirty=0, last_stable_offset=partition.high_watermark, now_ms=now_ms)
    Cleaner(KeyMap(1 << 20, 0.9), 100_000, lambda size: None).clean(partition, dirtiness, now_ms, lambda: True)


def _batches_in(directory: Path) -> list[tuple[BatchHeader, list[Record], bytes]]:
    found = []
    for path in _logs(directory):
        data = path.read_bytes()
        found += [
            (header, list(read_records(data, position, header)), data[position : position + header.size])
            for position, header in batches(data)
        ]
    return found


def _logs(directory: Path) -> list[Path]:
    return sorted(directory.glob("*.log"))


def _read(log: PartitionLog) -> list[bytes]:
    """Every batch, as a reader gets them."""
    found: list[bytes] = []
    offset = log.log_start_offset
    while offset < log.log_end_offset:
        data = log.read(offset, 1 << 20, upper_bound=log.log_end_offset).records.read()
        for position, header in batches(data):
            found.append(data[position : position + header.size])
            offset = header.next_offset
    return found


def _dump(tools: KafkaTools, directory: Path) -> None:
    tool = "kafka-dump-log"
    text = tools.run(tool, "--deep-iteration", "--files", ",".join(map(str, _logs(directory)))).text
    assert text.count("baseOffset: ") == len(_batches_in(directory))
    assert "isvalid: false" not in text
    indexes = [str(path) for pattern in ("*.index", "*.timeindex") for path in sorted(directory.glob(pattern))]
    text = tools.run(tool, "--verify-index-only", "--files", ",".join(indexes)).text.lower()
    assert "mismatch" not in text
    assert "exception" not in text


def _until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, "it never came true"
        time.sleep(0.1)

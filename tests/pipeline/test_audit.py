"""`odradek audit` over the files of a three-broker cluster: nothing to find, and what was broken on purpose."""

import json
import shutil
import time
from pathlib import Path
from struct import pack_into

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from pyspark.sql import SparkSession

from odradek.apps.cli import main
from odradek.apps.cli.audit_assignment import find_assignment
from odradek.apps.pipeline import session
from odradek.apps.pipeline.audit.assignment import UNKNOWN_ASSIGNMENT, Assignment, AuditedFiles
from odradek.apps.pipeline.audit.findings import AuditReport, Kind
from odradek.apps.pipeline.audit.job import audit
from odradek.apps.pipeline.audit.report import as_html, verdict
from odradek.model.topology import TopicPartition
from odradek.protocol.record_batch import NO_SEQUENCE, build_batch
from odradek.protocol.records import Record
from odradek.protocol.transaction_markers import EndTransactionMarker, build_marker
from odradek.testing import OdradekCluster


def audited(spark: SparkSession, directory: Path, *topics: str, assignment: Assignment | None = None) -> AuditReport:
    return audit(spark, AuditedFiles.below([str(directory)], frozenset(topics)).scope(assignment))


def flip_a_byte(segment: Path) -> None:
    """In the last record of the last batch."""
    damaged = bytearray(segment.read_bytes())
    damaged[-10] ^= 0x10
    segment.write_bytes(damaged)


@pytest.fixture(scope="module")
def stopped_cluster(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of three brokers that held 2 × 3 replicas of one topic, and were stopped cleanly."""
    cluster = OdradekCluster(tmp_path_factory.mktemp("audited"), brokers=3)
    try:
        cluster.start_all()
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
        for future in admin.create_topics([NewTopic("orders", 2, 3), NewTopic("nothing", 2, 3)]).values():
            future.result(30)
        producer = Producer(
            {"bootstrap.servers": cluster.bootstrap_servers, "enable.idempotence": True, "linger.ms": 0}
        )
        for i in range(200):
            producer.produce("orders", b"order %d" % i, b"%d" % i, i % 2)
            if i % 20 == 0:
                producer.flush(60)
        assert producer.flush(60) == 0
    finally:
        cluster.stop_all()
    return cluster.data_dir


def test_replicas_that_agree_have_no_findings(spark: SparkSession, stopped_cluster: Path) -> None:
    report = audited(spark, stopped_cluster)

    assert report.findings == ()
    assert report.brokers == (0, 1, 2)
    [orders] = [topic for topic in report.topics if topic.topic == "orders"]
    assert (orders.partitions, orders.replicas, orders.records, orders.uncommitted) == (2, 6, 200, 0)
    [nothing] = [topic for topic in report.topics if topic.topic == "nothing"]
    assert (nothing.partitions, nothing.replicas, nothing.records) == (2, 6, 0), "what is empty is there too"


def test_a_stopped_cluster_tells_who_holds_what(
    spark: SparkSession,
    stopped_cluster: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """By the data of its ZooKeeper, which stays as it is; and a flipped byte beside left-over files is still found.

    The command runs in the session of these tests: a start of Spark takes half a minute on a busy machine.
    """
    monkeypatch.setattr(session, "start_session", lambda *_: spark)
    monkeypatch.setattr(SparkSession, "stop", lambda _: None)
    copy = shutil.copytree(stopped_cluster, tmp_path / "copy")
    logs = copy / "broker-1" / "logs"
    shutil.copytree(logs / "orders-0", logs / "deleted-0")
    [segment] = (logs / "orders-1").glob("*.log")
    flip_a_byte(segment)
    written = {path: path.stat().st_mtime_ns for path in (copy / "zookeeper" / "data").rglob("*")}

    exit_code = main.run(["audit", str(copy), "--format", "json"])

    printed = capsys.readouterr()
    assert exit_code == 1, printed.err
    report = json.loads(printed.out)
    assert report["assignment"] == f"the data of ZooKeeper in {copy / 'zookeeper' / 'data'}"
    [finding] = report["findings"]
    assert (finding["topic"], finding["partition"], finding["kind"]) == ("orders", 1, Kind.BROKEN.value)
    assert finding["brokers"] == [1]
    assert str(segment) in finding["detail"]
    [left] = report["left_overs"]
    assert (left["topic"], left["broker"], left["reason"]) == ("deleted", 1, "there is no such partition")
    assert left["bytes"] == sum(path.stat().st_size for path in (logs / "deleted-0").glob("*.log")) > 0
    assert {path: path.stat().st_mtime_ns for path in (copy / "zookeeper" / "data").rglob("*")} == written


def test_a_zookeeper_that_cannot_be_read_leaves_the_files(
    stopped_cluster: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copy = shutil.copytree(stopped_cluster, tmp_path / "copy")
    for snapshot in (copy / "zookeeper" / "data" / "version-2").iterdir():
        snapshot.unlink()
    assert find_assignment(None, [str(copy)]) is None
    assert "no assignment in" in capsys.readouterr().err
    assert AuditedFiles.below([str(copy)]).scope(None).assignment == UNKNOWN_ASSIGNMENT


def records(offsets: list[int], value: bytes = b"v") -> list[Record]:
    return [Record(offset, 1_700_000_000_000, b"k%d" % offset, value) for offset in offsets]


def replica(
    root: Path,
    broker: int,
    topic: str,
    batches: list[bytes],
    committed: int,
    cleaned: int | None = None,
    flushed: int | None = None,
) -> None:
    """A replica of partition 0 as a broker leaves it on disk."""
    directory = root / f"broker-{broker}"
    partition = directory / f"{topic}-0"
    partition.mkdir(parents=True)
    (partition / f"{0:020}.log").write_bytes(b"".join(batches))
    (directory / "meta.properties").write_text(f"version=0\nbroker.id={broker}\n")
    for name, offset in (
        ("replication-offset-checkpoint", committed),
        ("recovery-point-offset-checkpoint", flushed),
        ("cleaner-offset-checkpoint", cleaned),
    ):
        path = directory / name
        lines = path.read_text().splitlines()[2:] if path.exists() else []
        if offset is not None:
            lines.append(f"{topic} 0 {offset}")
        path.write_text("\n".join(["0", str(len(lines)), *lines, ""]))


def batch(
    *offsets: int,
    value: bytes = b"v",
    sequence: int = NO_SEQUENCE,
    producer_id: int = 7,
    last_offset: int | None = None,
) -> bytes:
    numbered = {"producer_id": producer_id, "producer_epoch": 0, "base_sequence": sequence}
    producer = {} if sequence == NO_SEQUENCE else numbered
    return build_batch(records([*offsets], value), base_offset=offsets[0], last_offset=last_offset, **producer)


def test_everything_that_can_be_wrong_is_named(spark: SparkSession, tmp_path: Path) -> None:
    """One topic per fault; and what looks like one but isn't, in topics called fine."""
    plain = [batch(0, 1), batch(2, 3), batch(4, 5)]
    for topic, second, committed, cleaned in (
        ("different", [plain[0], batch(2, 3, value=b"w"), plain[2]], 6, None),
        ("missing", [batch(0, 1), batch(2), batch(3, 4, 5)], 6, None),
        ("short", plain[:2], 6, None),
        ("fine-uncommitted-tail", [*plain[:2], batch(4, value=b"other")], 4, None),
        ("fine-follower-behind", plain[:1], 2, None),
        ("fine-other-tail-above-its-own-high-watermark", [*plain[:2], batch(4, value=b"other"), batch(5)], 4, None),
        ("fine-cleaned", [batch(1, last_offset=3), plain[2]], 6, 4),
        ("different-after-cleaning", [batch(1, value=b"w", last_offset=3), plain[2]], 6, 4),
    ):
        replica(tmp_path, 0, topic, plain, 4 if topic == "fine-uncommitted-tail" else 6)
        replica(tmp_path, 1, topic, second, committed, cleaned)
    replica(tmp_path, 0, "gap", [batch(0, 1), batch(3, 4)], 5)
    replica(tmp_path, 0, "gap-in-batch", [batch(0, 2)], 3)
    replica(tmp_path, 0, "overlap", [batch(0, 1), batch(1, 2)], 3)
    replica(tmp_path, 0, "twice", [batch(0, 1, sequence=0), batch(2, 3, sequence=2), batch(4, 5, sequence=2)], 6)
    coordinated = [batch(n, sequence=0, producer_id=-1) for n in range(3)]
    replica(tmp_path, 0, "fine-without-producer", coordinated, 3)
    in_transactions = [batch(n, sequence=0) for n in range(3)]  # Kafka's coordinator numbers none of its own
    replica(tmp_path, 0, "__consumer_offsets", in_transactions, 3)
    replica(tmp_path, 0, "torn", [batch(0, 1), batch(2, 3)[:-5]], 4)
    replica(tmp_path, 0, "fine-torn-tail", [batch(0, 1), batch(2, 3)[:-5]], 2, flushed=2)
    replica(tmp_path, 0, "torn-after-flush", [batch(0, 1), batch(2, 3)[:-5]], 2, flushed=4)

    report = audited(spark, tmp_path)

    assert [(f.topic, f.offset, f.kind, f.brokers) for f in report.findings] == [
        ("different", 2, Kind.DIFFERENT, (0, 1)),
        ("different-after-cleaning", 1, Kind.DIFFERENT, (0, 1)),
        ("gap", 3, Kind.GAP, (0,)),
        ("gap-in-batch", 0, Kind.GAP, (0,)),
        ("missing", 2, Kind.DIFFERENT, (0, 1)),
        ("missing", 3, Kind.MISSING, (0,)),
        ("missing", 4, Kind.MISSING, (1,)),
        ("overlap", 1, Kind.OVERLAP, (0,)),
        ("short", 4, Kind.SHORT, (1,)),
        ("torn", 2, Kind.BROKEN, (0,)),
        ("torn", 3, Kind.SHORT, (0,)),
        ("torn-after-flush", 2, Kind.BROKEN, (0,)),
        ("twice", 4, Kind.DUPLICATE, (0,)),
    ]
    page = as_html(report)
    assert "the batch has 2 contents" in page
    assert UNKNOWN_ASSIGNMENT in page


def in_transaction(offset: int, producer_id: int, epoch: int = 0, time_ms: int = 1_700_000_000_000) -> bytes:
    numbered = {"producer_id": producer_id, "producer_epoch": epoch, "base_sequence": offset}
    return build_batch([Record(offset, time_ms, b"k", b"v")], base_offset=offset, transactional=True, **numbered)


def marker(offset: int, producer_id: int, epoch: int = 0) -> bytes:
    built = build_marker(EndTransactionMarker(producer_id, epoch, 0, False), 1_700_000_000_000)
    pack_into(">q", built, 0, offset)
    return bytes(built)


def test_open_and_hanging_transactions_are_counted(spark: SparkSession, tmp_path: Path) -> None:
    now_ms = time.time_ns() // 1_000_000
    for topic, second, batches, committed in (
        (
            "hanging",
            True,
            [in_transaction(0, 7), in_transaction(1, 8), marker(2, 8), in_transaction(3, 7), batch(4)],
            5,
        ),
        ("open-again", True, [in_transaction(0, 7), marker(1, 7, 1), in_transaction(2, 7, 1, now_ms)], 3),
        ("ended", True, [in_transaction(0, 7), batch(1), marker(2, 7)], 3),
        ("above-the-high-watermark", True, [batch(0), in_transaction(1, 7)], 1),
        ("ended-on-the-leader", False, [in_transaction(0, 7), marker(1, 7)], 2),
    ):
        replica(tmp_path, 0, topic, batches, committed)
        replica(tmp_path, 1, topic, batches if second else batches[:1], committed if second else 1)

    report = audited(spark, tmp_path)

    assert report.findings == ()
    assert [
        (each.topic, each.offset, each.producer_id, each.producer_epoch, each.held_back, each.is_hanging)
        for each in report.open_transactions
    ] == [("hanging", 0, 7, 0, 5, True), ("open-again", 2, 7, 1, 1, False)]
    assert verdict(report) == "5 topics on brokers 0, 1: all replicas are identical; 1 hanging transaction"
    assert "Open transactions" in as_html(report)


def test_left_over_files_are_named_and_not_compared(spark: SparkSession, tmp_path: Path) -> None:
    """Broker 2 has files of a partition that it no longer holds, with a high watermark that means nothing any more."""
    replica(tmp_path, 0, "orders", [batch(0, 1), batch(2, 3)], 4)
    replica(tmp_path, 1, "orders", [batch(0, 1), batch(2, 3, value=b"w")], 4)
    left = [batch(0, 1, value=b"x"), batch(2, 3, value=b"y")]
    replica(tmp_path, 2, "orders", left, 4)
    orders = TopicPartition("orders", 0)
    held = {orders: frozenset({0, 1})}

    report = audited(spark, tmp_path, assignment=Assignment("a test", "c", held, held))

    assert [(f.offset, f.kind, f.brokers) for f in report.findings] == [(2, Kind.DIFFERENT, (0, 1))]
    size = sum(map(len, left))
    assert [(each.broker, each.bytes) for each in report.left_overs] == [(2, size)]
    assert verdict(report) == f"1 topic on brokers 0, 1, 2: 1 finding; left-over files on broker 2: {size} bytes"
    assert "the replicas are on brokers 0, 1" in as_html(report)

"""Files that an audit compares, those of the cluster's replicas, and its report of the others."""

from pathlib import Path
from uuid import UUID

import pytest

from odradek.apps.pipeline.audit.assignment import UNKNOWN_ASSIGNMENT, Assignment, AuditedFiles, AuditScope
from odradek.apps.pipeline.audit.findings import Kind, LeftOver, NotCompared
from odradek.apps.pipeline.source.errors import OptionError
from odradek.model.topology import TopicPartition
from odradek.model.uuid_text import uuid_to_text

ORDERS = TopicPartition("orders", 0)
NOW, BEFORE = UUID(int=7), UUID(int=5)
SIZE = 100


def files(
    root: Path, broker: int, name: str = "orders-0", high_watermark: int | None = 5, topic_id: UUID | None = None
) -> Path:
    directory = root / f"broker-{broker}"
    partition = directory / name
    partition.mkdir(parents=True)
    (partition / f"{0:020}.log").write_bytes(b"x" * SIZE)
    (partition / f"{0:020}.index").write_bytes(b"not counted")
    (directory / "meta.properties").write_text(f"version=0\nbroker.id={broker}\ncluster.id=ours\n")
    if high_watermark is not None:
        (directory / "replication-offset-checkpoint").write_text(f"0\n1\norders 0 {high_watermark}\n")
    if topic_id is not None:
        (partition / "partition.metadata").write_text(f"version: 0\ntopic_id: {uuid_to_text(topic_id)}\n")
    return partition


def scope(
    root: Path, *replicas: int, isr: tuple[int, ...] | None = None, cluster_id: str = "ours", topics: str = ""
) -> AuditScope:
    held = {ORDERS: frozenset(replicas)}
    in_sync = held if isr is None else {ORDERS: frozenset(isr)}
    assignment = Assignment("a test", cluster_id, held, in_sync, {"orders": NOW})
    return AuditedFiles.below([str(root)], frozenset(filter(None, [topics]))).scope(assignment)


def test_files_of_another_broker_are_left_over(tmp_path: Path) -> None:
    files(tmp_path, 0)
    left = files(tmp_path, 2)
    found = scope(tmp_path, 0)
    assert [replica.broker for replica in found.replicas] == [0]
    assert found.left_overs == (LeftOver("orders", 0, 2, SIZE, str(left), "the replicas are on brokers 0"),)
    assert found.brokers == (0, 2)
    assert (found.absent, found.not_compared, found.assignment) == ((), (), "a test")


def test_files_of_a_deleted_topic_are_left_over(tmp_path: Path) -> None:
    files(tmp_path, 0)
    files(tmp_path, 0, "gone-3")
    (left,) = scope(tmp_path, 0).left_overs
    assert (left.topic, left.partition, left.reason) == ("gone", 3, "there is no such partition")


def test_files_of_an_earlier_topic_of_that_name_are_left_over(tmp_path: Path) -> None:
    files(tmp_path, 0, topic_id=NOW)
    files(tmp_path, 1, topic_id=BEFORE)
    files(tmp_path, 2)  # written before topics had ids
    found = scope(tmp_path, 0, 1, 2, isr=(0, 2))
    assert [replica.broker for replica in found.replicas] == [0, 2]
    assert [(left.broker, left.reason) for left in found.left_overs] == [(1, "of an earlier topic of that name")]


def test_strays_are_left_over_whoever_holds_the_partition(tmp_path: Path) -> None:
    files(tmp_path, 0)
    files(tmp_path, 0, "orders-0.0123456789abcdef0123456789abcdef-stray")
    files(tmp_path, 0, "orders-0.0123456789abcdef0123456789abcdef-delete")  # the broker deletes it by itself
    for found in (scope(tmp_path, 0), AuditedFiles.below([str(tmp_path)]).scope(None)):
        assert [(left.broker, left.reason) for left in found.left_overs] == [(0, "set aside by its broker as stray")]
        assert len(found.replicas) == 1


def test_an_in_sync_replica_without_files_is_a_finding(tmp_path: Path) -> None:
    files(tmp_path, 0)
    files(tmp_path, 1, "other-0")
    found = scope(tmp_path, 0, 1, topics="orders")
    assert [(f.topic, f.partition, f.kind, f.brokers) for f in found.absent] == [("orders", 0, Kind.ABSENT, (1,))]
    assert scope(tmp_path, 0, 1, isr=(0,), topics="orders").absent == ()
    assert scope(tmp_path, 0, 1, isr=(0,), topics="orders").not_compared == (
        NotCompared(1, "it has no files of them", ("orders-0",)),
    )


def test_a_replica_that_was_written_to_since_is_not_missing(tmp_path: Path) -> None:
    files(tmp_path, 0)
    files(tmp_path, 1, "other-0")
    listed = AuditedFiles.below([str(tmp_path)], frozenset({"orders"}))
    files(tmp_path, 1)
    held = {ORDERS: frozenset({0, 1})}
    found = listed.scope(Assignment("a test", "ours", held, held))
    assert (found.absent, found.not_compared) == ((), ())


def test_a_topic_that_was_deleted_since_is_no_left_over(tmp_path: Path) -> None:
    partition = files(tmp_path, 0)
    listed = AuditedFiles.below([str(tmp_path)])
    partition.rename(tmp_path / "broker-0" / "orders-0.0123456789abcdef0123456789abcdef-delete")
    assert listed.scope(Assignment("a test", "ours", {}, {})).left_overs == ()


def test_replicas_of_brokers_that_were_not_given_are_told(tmp_path: Path) -> None:
    files(tmp_path, 0)
    assert scope(tmp_path, 0, 1).not_compared == (NotCompared(1, "its directories were not given", ("orders-0",)),)


@pytest.mark.parametrize("known", [True, False])
def test_a_replica_without_a_high_watermark_is_not_passed_over_in_silence(tmp_path: Path, known: bool) -> None:
    files(tmp_path, 0, high_watermark=None)
    found = scope(tmp_path, 0) if known else AuditedFiles.below([str(tmp_path)]).scope(None)
    assert found.not_compared == (NotCompared(0, "no high watermark is checkpointed", ("orders-0",)),)


def test_without_an_assignment_everything_is_a_replica_and_the_report_says_so(tmp_path: Path) -> None:
    files(tmp_path, 0)
    files(tmp_path, 2)
    found = AuditedFiles.below([str(tmp_path)]).scope(None)
    assert [replica.broker for replica in found.replicas] == [0, 2]
    assert (found.assignment, found.left_overs) == (UNKNOWN_ASSIGNMENT, ())


def test_the_assignment_of_another_cluster_is_refused(tmp_path: Path) -> None:
    files(tmp_path, 0)
    with pytest.raises(OptionError, match="is of cluster ours, the assignment of cluster theirs"):
        scope(tmp_path, 0, cluster_id="theirs")

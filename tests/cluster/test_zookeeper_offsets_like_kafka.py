"""Offsets of clients before Kafka 0.8.2 (OffsetCommit and OffsetFetch v0): in ZooKeeper, and at any broker.

kafka-python's SimpleConsumer, kafka-node's Consumer and their contemporaries send these requests to the leader of the
partition, not to a coordinator.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kazoo.client import KazooClient

from odradek.base.errors import ErrorCode
from odradek.client.broker_client import BrokerClient
from odradek.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from odradek.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestTopic

from .conftest import unused_name
from .kafka_pair import KafkaPair
from .own_broker import STEADY, OwnBroker, running
from .test_group_requests_like_kafka import Asker

pytestmark = pytest.mark.timeout(180)

MISSING = "not.there"
TOO_LONG = "m" * 4097


def commit_of(group: str, *positions: tuple[str, int, int], metadata: str | None = "") -> OffsetCommitRequest:
    topics = [
        OffsetCommitRequestTopic(
            name=topic,
            partitions=[
                OffsetCommitRequestPartition(
                    partition_index=index, committed_offset=offset, committed_metadata=metadata
                )
            ],
        )
        for topic, index, offset in positions
    ]
    return OffsetCommitRequest(group_id=group, topics=topics)


def fetch_of(group: str, *asked: tuple[str, list[int]]) -> OffsetFetchRequest:
    topics = [OffsetFetchRequestTopic(name=topic, partition_indexes=indexes) for topic, indexes in asked]
    return OffsetFetchRequest(group_id=group, topics=topics)


def committed(answer: Any) -> list[tuple[str, int, int]]:
    return sorted((topic.name, p.partition_index, p.error_code) for topic in answer.topics for p in topic.partitions)


def fetched(answer: Any) -> list[tuple[Any, ...]]:
    return sorted(
        (topic.name, p.partition_index, p.committed_offset, p.metadata, p.error_code)
        for topic in answer.topics
        for p in topic.partitions
    )


def test_offsets_are_committed_and_fetched(pair: KafkaPair) -> None:
    group, topic = unused_name(), pair.topic
    asked = fetch_of(group, (topic, [0, 1, 7]), (MISSING, [0]))
    for request in (
        commit_of(group, (topic, 0, 17), (MISSING, 0, 3)),
        commit_of(group, (topic, 1, -1), (topic, 7, 4), metadata="lost"),
        commit_of(group, (topic, 0, 18), metadata=None),
        commit_of(group, (topic, 0, 99), metadata=TOO_LONG),
        commit_of(group),
    ):
        before = [fetched(answer) for answer in pair.ask(asked, 0)]
        assert before[0] == before[1]
        answers = [committed(answer) for answer in pair.ask(request, 0)]
        assert answers[0] == answers[1], request
    ours, theirs = (fetched(answer) for answer in pair.ask(asked, 0))
    assert ours == theirs
    assert (topic, 0, 18, "", ErrorCode.NONE) in ours


def test_other_versions_have_offsets_of_their_own(pair: KafkaPair) -> None:
    group, topic = unused_name(), pair.topic
    for client in (pair.ours, pair.theirs):
        Asker(client, topic, group).await_coordinator()
    pair.ask(commit_of(group, (topic, 0, 5)), 0)
    pair.ask(commit_of(group, (topic, 0, 6)), 2)
    for version, offset in ((0, 5), (1, 6)):
        ours, theirs = (fetched(answer) for answer in pair.ask(fetch_of(group, (topic, [0])), version))
        assert ours == theirs == [(topic, 0, offset, "", ErrorCode.NONE)]


@pytest.fixture
def own(tmp_path: Path, zookeeper: str) -> Iterator[OwnBroker]:
    with running(OwnBroker(tmp_path, zookeeper, **STEADY)) as broker:
        broker.create_topic("orders", 2)
        yield broker


def test_they_are_znodes_that_old_tools_read_and_write(own: OwnBroker, zookeeper: str, tmp_path: Path) -> None:
    with own.client() as client:
        assert committed(client.send(commit_of("readers", ("orders", 1, 12)), 0)) == [("orders", 1, 0)]
        zk = KazooClient(f"{zookeeper}/{tmp_path.name}")
        zk.start()
        try:
            assert zk.get("/consumers/readers/offsets/orders/1")[0] == b"12"
            zk.set("/consumers/readers/offsets/orders/1", b"7")
            zk.create("/consumers/readers/offsets/orders/0", b"no number")
        finally:
            zk.stop()
            zk.close()
        unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert fetched(client.send(fetch_of("readers", ("orders", [0, 1])), 0)) == [
            ("orders", 0, -1, "", unknown),
            ("orders", 1, 7, "", ErrorCode.NONE),
        ]


@pytest.mark.parametrize("group", ["", ".", "..", "a/b", "../brokers/topics", "nul\0"])
def test_a_group_that_cannot_be_a_node_is_refused(own: OwnBroker, group: str) -> None:
    client: BrokerClient
    with own.client() as client:
        refused = ErrorCode.INVALID_GROUP_ID
        assert committed(client.send(commit_of(group, ("orders", 1, 12)), 0)) == [("orders", 1, refused)]
        assert fetched(client.send(fetch_of(group, ("orders", [1])), 0))[0][-1] == refused

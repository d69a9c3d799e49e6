"""Topics made, grown and deleted at every version: Odradek's whole answers are Apache Kafka's.

What is said about errors is our own. Without an error Kafka says null, and clients tell that from an empty string.
"""

from typing import Any

import pytest

from odradek.protocol.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from odradek.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from odradek.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from odradek.protocol.primitives import ZERO_UUID

from .conftest import unused_name
from .kafka_pair import KafkaPair

SAID = "something"


def told(results: list[Any]) -> dict[str | None, Any]:
    """By name, because Kafka's order is that of a hash map."""
    for result in results:
        if getattr(result, "configs", None):
            result.configs.sort(key=lambda config: config.name)
        if result.error_code:
            result.error_message = SAID
        if getattr(result, "topic_id", ZERO_UUID) != ZERO_UUID:
            result.topic_id = SAID
    return {result.name: result for result in results}


def topic(name: str, partitions: int = 1, replicas: int = 1, **configs: str) -> CreatableTopic:
    settings = [CreatableTopicConfig(name=key.replace("_", "."), value=value) for key, value in configs.items()]
    return CreatableTopic(name=name, num_partitions=partitions, replication_factor=replicas, configs=settings)


def created(pair: KafkaPair, topics: list[CreatableTopic], version: int, validate_only: bool) -> None:
    request = CreateTopicsRequest(topics=topics, timeout_ms=30_000, validate_only=validate_only)
    ours, theirs = (told(answer.topics) for answer in pair.ask(request, version))
    assert ours.keys() == theirs.keys()
    for name, result in ours.items():
        assert result == theirs[name], name


@pytest.mark.parametrize("version", range(8))
def test_a_life_of_a_topic(pair: KafkaPair, version: int) -> None:
    name, assigned = unused_name(), unused_name()
    by_hand = topic(assigned, -1, -1)
    by_hand.assignments = [CreatableReplicaAssignment(partition_index=0, broker_ids=[0])]
    good = [topic(name, 2, cleanup_policy="compact", retention_ms="77"), by_hand]
    bad = [
        topic("not/a/name"),
        topic(pair.topic),
        topic("too-many-replicas", 1, 9),
        topic("no-partitions", 0),
        topic("bad-setting", retention_ms="x"),
        topic("unknown-setting", nope="1"),
        topic("tiered", remote_storage_enable="true"),
        topic("tiered-once", remote_log_delete_on_disable="true"),
        topic("twice"),
        topic("twice"),
    ]
    for validate_only in (True, False)[version == 0 :]:
        created(pair, [*good, *bad], version, validate_only)
    grown(pair, name, min(version, 3))
    deleted(pair, [name, assigned, "no-such-topic"], min(version, 6))


def grown(pair: KafkaPair, name: str, version: int) -> None:
    topics = [
        CreatePartitionsTopic(name=name, count=3, assignments=None),
        CreatePartitionsTopic(name=pair.topic, count=1, assignments=None),
        CreatePartitionsTopic(name="no-such-topic", count=3, assignments=None),
    ]
    for validate_only in (True, False):
        request = CreatePartitionsRequest(topics=topics, timeout_ms=30_000, validate_only=validate_only)
        ours, theirs = (told(answer.results) for answer in pair.ask(request, version))
        assert ours == theirs
    elsewhere = CreatePartitionsTopic(name=name, count=4, assignments=[CreatePartitionsAssignment(broker_ids=[7])])
    ours, theirs = (told(answer.results) for answer in pair.ask(CreatePartitionsRequest(topics=[elsewhere]), version))
    assert ours == theirs


def deleted(pair: KafkaPair, names: list[str], version: int) -> None:
    request = DeleteTopicsRequest(topic_names=names, timeout_ms=30_000)
    if version >= 6:
        request = DeleteTopicsRequest(topics=[DeleteTopicState(name=name) for name in names], timeout_ms=30_000)
    ours, theirs = (told(answer.responses) for answer in pair.ask(request, version))
    assert ours == theirs

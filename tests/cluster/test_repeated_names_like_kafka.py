"""Requests that name the same thing twice: Odradek answers what Apache Kafka answers, once or twice."""

from typing import Any

import pytest

from odradek.protocol.messages.describe_configs import (
    ConfigResourceType,
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from odradek.protocol.messages.describe_groups import DescribeGroupsRequest
from odradek.protocol.messages.describe_producers import DescribeProducersRequest, TopicRequest
from odradek.protocol.messages.describe_transactions import DescribeTransactionsRequest
from odradek.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from odradek.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from odradek.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)

from .conftest import unused_name
from .kafka_pair import KafkaPair
from .test_group_requests_like_kafka import Asker

pytestmark = pytest.mark.timeout(180)

MISSING = "not.there"


@pytest.fixture
def coordinators(pair: KafkaPair) -> KafkaPair:
    for client in (pair.ours, pair.theirs):
        Asker(client, pair.topic, unused_name()).await_coordinator()
    return pair


def test_topics_are_answered_once(pair: KafkaPair) -> None:
    names = (pair.topic, MISSING, pair.topic, MISSING, "bad name", "bad name")
    topics = [MetadataRequestTopic(name=name) for name in names]
    ours, theirs = (
        [(topic.name, topic.error_code, len(topic.partitions)) for topic in answer.topics]
        for answer in pair.ask(MetadataRequest(topics=topics, allow_auto_topic_creation=False))
    )
    assert len(ours) == 3
    assert sorted(ours) == sorted(theirs)


def test_groups_are_described_as_often_as_they_are_named(coordinators: KafkaPair) -> None:
    ours, theirs = (
        [(group.group_id, group.error_code) for group in answer.groups]
        for answer in coordinators.ask(DescribeGroupsRequest(groups=["b", "a", "b", "", ""]))
    )
    assert ours == theirs


def test_transactional_ids_are_described_as_often_as_they_are_named(coordinators: KafkaPair) -> None:
    ours, theirs = (
        [(state.transactional_id, state.error_code) for state in answer.transaction_states]
        for answer in coordinators.ask(DescribeTransactionsRequest(transactional_ids=["b", "a", "b", "", ""]))
    )
    assert ours == theirs


def test_producers_are_described_as_often_as_their_partition_is_named(pair: KafkaPair) -> None:
    asked = [(pair.topic, [0, 1, 0, 7, 7]), (MISSING, [0, 0]), (pair.topic, [1, 7]), (MISSING, [0])]
    topics = [TopicRequest(name=name, partition_indexes=indexes) for name, indexes in asked]
    ours, theirs = (
        [(topic.name, [(p.partition_index, p.error_code) for p in topic.partitions]) for topic in answer.topics]
        for answer in pair.ask(DescribeProducersRequest(topics=topics))
    )
    assert ours == theirs


def test_a_group_is_told_its_positions_as_often_as_it_is_named(coordinators: KafkaPair) -> None:
    def named(*indexes: int) -> list[OffsetFetchRequestTopics]:
        return [OffsetFetchRequestTopics(name=coordinators.topic, partition_indexes=list(indexes))]

    asked = [("x", None), ("y", named(0, 0) + named(0, 1)), ("x", None), ("y", named(0, 1)), ("y", []), ("x", named(1))]
    groups = [OffsetFetchRequestGroup(group_id=group, topics=topics) for group, topics in asked]
    ours, theirs = (
        [(group.group_id, group.error_code, _positions(group)) for group in answer.groups]
        for answer in coordinators.ask(OffsetFetchRequest(groups=groups))
    )
    assert ours == theirs


def _positions(group: Any) -> list[Any]:
    return [(topic.name, sorted(p.partition_index for p in topic.partitions)) for topic in group.topics]


def test_configurations_are_described_as_often_as_they_are_named(pair: KafkaPair) -> None:
    topic, broker = ConfigResourceType.TOPIC, ConfigResourceType.BROKER
    asked = [
        *((topic, pair.topic, keys) for keys in (None, ["retention.ms"], None)),
        *((broker, name, ["log.dir"]) for name in ("0", "", "0", "")),
        *((topic, name, None) for name in (MISSING, "bad name", MISSING)),
    ]
    resources = [
        DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=keys)
        for kind, name, keys in asked
    ]
    ours, theirs = (
        [(r.resource_type, r.resource_name, r.error_code, sorted(c.name for c in r.configs)) for r in answer.results]
        for answer in pair.ask(DescribeConfigsRequest(resources=resources))
    )
    assert ours == theirs


@pytest.mark.parametrize("version", [0, 1, 7])
def test_partitions_whose_offsets_are_asked_for_twice_are_refused(pair: KafkaPair, version: int) -> None:
    named = [(pair.topic, [0, 1]), (pair.topic, [0]), (MISSING, [0])]
    topics = [
        ListOffsetsTopic(
            name=name, partitions=[ListOffsetsPartition(partition_index=index, timestamp=5) for index in indexes]
        )
        for name, indexes in named
    ]
    ours, theirs = (
        [(topic.name, [(p.partition_index, p.error_code) for p in topic.partitions]) for topic in answer.topics]
        for answer in pair.ask(ListOffsetsRequest(topics=topics), version)
    )
    assert ours == theirs

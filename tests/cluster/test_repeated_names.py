"""Requests that name the same thing a thousand times: the answer is as long as to one that names it ten times.

A topic, a group, a broker's configuration: each is larger in an answer than its name in a request, by a factor that a
client could multiply by as many names as fit into a frame.
"""

from collections.abc import Iterator

import pytest

from odradek.base.errors import ErrorCode
from odradek.protocol.messages.describe_configs import (
    ConfigResourceType,
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from odradek.protocol.messages.describe_groups import DescribeGroupsRequest
from odradek.protocol.messages.describe_producers import DescribeProducersRequest, TopicRequest
from odradek.protocol.messages.describe_transactions import DescribeTransactionsRequest
from odradek.protocol.messages.find_coordinator import FindCoordinatorRequest
from odradek.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from odradek.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from odradek.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from odradek.protocol.schema import Request

from .own_broker import STEADY, OwnBroker, running
from .test_group_versions import until_no_error

TOPIC = "wide"
TIMES = 1000


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory, zookeeper: str) -> Iterator[OwnBroker]:
    with running(OwnBroker(tmp_path_factory.mktemp("repeated"), zookeeper, **STEADY)) as started:
        started.create_topic(TOPIC, partitions=20)
        yield started


def repeated(kind: str, times: int) -> Request:
    match kind:
        case "topics":
            topics = [MetadataRequestTopic(name=TOPIC)] * times
            return MetadataRequest(topics=topics, allow_auto_topic_creation=False)
        case "groups":
            return DescribeGroupsRequest(groups=["nobody"] * times)
        case "transactional ids":
            return DescribeTransactionsRequest(transactional_ids=["nobody"] * times)
        case "positions":
            return OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id="nobody", topics=None)] * times)
    broker_itself = DescribeConfigsResource(
        resource_type=ConfigResourceType.BROKER, resource_name="0", configuration_keys=None
    )
    return DescribeConfigsRequest(resources=[broker_itself] * times, include_documentation=True)


@pytest.mark.parametrize(
    ("kind", "answers"),
    [("topics", 1), *((kind, 10) for kind in ("groups", "transactional ids", "positions", "configurations"))],
)
def test_the_same_name_a_thousand_times_is_answered_ten_times(broker: OwnBroker, kind: str, answers: int) -> None:
    with broker.client() as client:
        few, often = (client.send(repeated(kind, times)) for times in (answers, TIMES))
    assert often == few


def test_the_same_partition_a_thousand_times_is_described_ten_times(broker: OwnBroker) -> None:
    asked = [TopicRequest(name=TOPIC, partition_indexes=[0, 1, 0])] * TIMES
    with broker.client() as client:
        topics = client.send(DescribeProducersRequest(topics=asked)).topics
    described = [partition.partition_index for topic in topics for partition in topic.partitions]
    assert sorted(described) == [0] * 10 + [1] * 10


def test_the_same_position_a_thousand_times_is_answered_ten_times(broker: OwnBroker) -> None:
    """The metadata of a position may be a thousand times as long as the question for it."""
    topics = [OffsetFetchRequestTopics(name=TOPIC, partition_indexes=[0, 1, 0])]
    asked = [OffsetFetchRequestGroup(group_id="nobody", topics=topics)] * TIMES
    with broker.client() as client:
        until_no_error(lambda: client.send(FindCoordinatorRequest(key="nobody"), 1).error_code)
        until_no_error(lambda: client.send(OffsetFetchRequest(groups=asked)).groups[0].error_code)
        groups = client.send(OffsetFetchRequest(groups=asked)).groups
    answered = [p.partition_index for group in groups for topic in group.topics for p in topic.partitions]
    assert sorted(answered) == [0] * 10 + [1] * 10


def test_a_partition_whose_offset_is_asked_for_twice_is_refused(broker: OwnBroker) -> None:
    """As Kafka does: a search by time reads batches, and there may be millions of questions in a frame."""
    asked = [ListOffsetsPartition(partition_index=index, timestamp=5) for index in (0, 1, 0)]
    with broker.client() as client:
        (topic,) = client.send(ListOffsetsRequest(topics=[ListOffsetsTopic(name=TOPIC, partitions=asked)])).topics
    refused = ErrorCode.INVALID_REQUEST
    assert [partition.error_code for partition in topic.partitions] == [refused, ErrorCode.NONE, refused]


def test_an_old_client_is_answered_ten_times(broker: OwnBroker) -> None:
    asked = [ListOffsetsPartition(partition_index=0, timestamp=5)] * TIMES
    with broker.client() as client:
        (topic,) = client.send(ListOffsetsRequest(topics=[ListOffsetsTopic(name=TOPIC, partitions=asked)]), 0).topics
    codes = [partition.error_code for partition in topic.partitions]
    assert codes == [ErrorCode.NONE] * 10 + [ErrorCode.INVALID_REQUEST] * (TIMES - 10)

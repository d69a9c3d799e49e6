"""ListOffsets v0, of clients before Kafka 0.10.1: starts of segments, as Apache Kafka lists them."""

import time

import pytest

from odradek.base.errors import ErrorCode
from odradek.client.broker_client import BrokerClient
from odradek.protocol.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from odradek.protocol.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from odradek.protocol.messages.list_offsets import (
    EARLIEST,
    LATEST,
    MAX_TIMESTAMP,
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)

from .conftest import unused_name
from .kafka_pair import KafkaPair
from .own_broker import batch_of, produce_request
from .test_group_versions import until_no_error

pytestmark = pytest.mark.timeout(180)

HOUR_MS = 3_600_000


@pytest.fixture(scope="module")
def topic(pair: KafkaPair) -> str:
    """Five segments, the first of which begins before the log does."""
    name = unused_name()
    size = CreatableTopicConfig(name="segment.bytes", value="1000")
    created = CreatableTopic(name=name, num_partitions=1, replication_factor=1, configs=[size])
    for answer in pair.ask(CreateTopicsRequest(topics=[created], timeout_ms=30_000)):
        assert answer.topics[0].error_code == ErrorCode.NONE
    for client in (pair.ours, pair.theirs):
        for _ in range(5):
            until_no_error(lambda client=client: produced(client, name))
    start = DeleteRecordsPartition(partition_index=0, offset=2)
    for answer in pair.ask(DeleteRecordsRequest(topics=[DeleteRecordsTopic(name=name, partitions=[start])])):
        assert answer.topics[0].partitions[0].error_code == ErrorCode.NONE
    return name


def produced(client: BrokerClient, topic: str) -> int:
    request = produce_request(topic, batch_of(b"v" * 200, b"v" * 200, b"v" * 200))
    return int(client.send(request, 7).responses[0].partition_responses[0].error_code)


@pytest.mark.parametrize("most", [0, 1, 2, 100])
@pytest.mark.parametrize("replica_id", [-1, -2])
def test_starts_of_segments(pair: KafkaPair, topic: str, replica_id: int, most: int) -> None:
    now_ms = int(time.time() * 1000)
    for timestamp in (LATEST, EARLIEST, MAX_TIMESTAMP, 0, now_ms - HOUR_MS, now_ms + HOUR_MS):
        asked = ListOffsetsPartition(partition_index=0, timestamp=timestamp, max_num_offsets=most)
        request = ListOffsetsRequest(replica_id=replica_id, topics=[ListOffsetsTopic(name=topic, partitions=[asked])])
        ours, theirs = (
            (answer.topics[0].partitions[0].error_code, answer.topics[0].partitions[0].old_style_offsets)
            for answer in pair.ask(request, 0)
        )
        assert ours == theirs, timestamp
    assert timestamp > now_ms
    assert len(ours[1]) == min(most, 6)

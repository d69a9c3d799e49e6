"""Asking leaders for offsets by time (ListOffsets): the same question for every tool that needs a position."""

from collections.abc import Mapping
from dataclasses import dataclass

from odradek.base.errors import ErrorCode, KafkaError
from odradek.client.cluster_client import ClusterClient
from odradek.model.topology import TopicPartition
from odradek.protocol.messages.list_offsets import (
    EARLIEST,
    LATEST,
    MAX_TIMESTAMP,
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)

SPECIAL_TIMES = {"latest": LATEST, "earliest": EARLIEST, "max-timestamp": MAX_TIMESTAMP}
_CONSUMER_REPLICA_ID = -1


@dataclass(frozen=True, slots=True)
class FoundOffset:
    offset: int | None  # None: no record at or after that time
    timestamp_ms: int | None
    leader_epoch: int | None


def parse_time(text: str) -> int:
    """`latest`, `earliest`, `max-timestamp`, their numbers -1, -2, -3, or milliseconds. ValueError for others."""
    if text in SPECIAL_TIMES:
        return SPECIAL_TIMES[text]
    try:
        time = int(text)
    except ValueError:
        time = MAX_TIMESTAMP - 1
    if time < MAX_TIMESTAMP:
        raise ValueError(f"'{text}' is not latest, earliest, max-timestamp or milliseconds since 1970")
    return time


def list_offsets(client: ClusterClient, times: Mapping[TopicPartition, int]) -> dict[TopicPartition, FoundOffset]:
    """The offset of each partition at its time. Raises for the first partition that can't tell, after retrying."""
    return client.retrying(lambda: _list_offsets_once(client, times))


def _list_offsets_once(client: ClusterClient, times: Mapping[TopicPartition, int]) -> dict[TopicPartition, FoundOffset]:
    found: dict[TopicPartition, FoundOffset] = {}
    for leader, partitions in client.leaders(times).items():
        response = client.ask_broker(leader, _request(partitions, times), ListOffsetsResponse)
        for topic in response.topics:
            for partition in topic.partitions:
                tp = TopicPartition(topic.name, partition.partition_index)
                code = ErrorCode(partition.error_code)
                if code is not ErrorCode.NONE:
                    raise KafkaError(code, f"offsets of {tp}: {code.name}")
                found[tp] = FoundOffset(
                    offset=_known(partition.offset),
                    timestamp_ms=_known(partition.timestamp),
                    leader_epoch=_known(partition.leader_epoch),
                )
    return {tp: found[tp] for tp in times}


def _request(partitions: list[TopicPartition], times: Mapping[TopicPartition, int]) -> ListOffsetsRequest:
    topics: dict[str, list[ListOffsetsPartition]] = {}
    for tp in partitions:
        topics.setdefault(tp.topic, []).append(ListOffsetsPartition(partition_index=tp.partition, timestamp=times[tp]))
    return ListOffsetsRequest(
        replica_id=_CONSUMER_REPLICA_ID,
        topics=[ListOffsetsTopic(name=name, partitions=wanted) for name, wanted in topics.items()],
    )


def _known(value: int) -> int | None:
    return None if value < 0 else value

"""ListOffsets requests to the leaders, for every tool that needs offsets by time."""

from collections.abc import Mapping

from odradek.base.errors import ErrorCode, KafkaError
from odradek.base.value_classes import dataclass
from odradek.client.cluster_client import ClusterClient
from odradek.model.topology import TopicPartition
from odradek.protocol.isolation import IsolationLevel
from odradek.protocol.messages.list_offsets import (
    CONSUMER_REPLICA_ID,
    EARLIEST,
    LATEST,
    MAX_TIMESTAMP,
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)

SPECIAL_TIMES = {"latest": LATEST, "earliest": EARLIEST, "max-timestamp": MAX_TIMESTAMP}


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


def list_offsets(
    client: ClusterClient,
    times: Mapping[TopicPartition, int],
    isolation: IsolationLevel = IsolationLevel.READ_UNCOMMITTED,
) -> dict[TopicPartition, FoundOffset]:
    """Return the offset of each partition at its time. Raises the error of the first failing partition, after
    retries."""
    return client.retrying(lambda: _list_offsets_once(client, times, isolation))


def _list_offsets_once(
    client: ClusterClient, times: Mapping[TopicPartition, int], isolation: IsolationLevel
) -> dict[TopicPartition, FoundOffset]:
    found: dict[TopicPartition, FoundOffset] = {}
    for leader, partitions in client.leaders(times).items():
        asked = {tp: times[tp] for tp in partitions}
        for tp, answer in ask_offsets(client, leader, asked, isolation=isolation).items():
            code = ErrorCode(answer.error_code)
            if code is not ErrorCode.NONE:
                raise KafkaError(code, f"offsets of {tp}: {code.name}")
            found[tp] = FoundOffset(
                offset=_known(answer.offset),
                timestamp_ms=_known(answer.timestamp),
                leader_epoch=_known(answer.leader_epoch),
            )
    return {tp: found[tp] for tp in times}


def ask_offsets(
    client: ClusterClient,
    broker: int,
    times: Mapping[TopicPartition, int],
    replica_id: int = CONSUMER_REPLICA_ID,
    isolation: IsolationLevel = IsolationLevel.READ_UNCOMMITTED,
) -> dict[TopicPartition, ListOffsetsPartitionResponse]:
    """Send one ListOffsets to one broker; errors stay in the answers."""
    request = list_offsets_request(times, replica_id, isolation)
    response = client.ask_broker(broker, request, ListOffsetsResponse)
    return {TopicPartition(t.name, p.partition_index): p for t in response.topics for p in t.partitions}


def list_offsets_request(
    times: Mapping[TopicPartition, int],
    replica_id: int = CONSUMER_REPLICA_ID,
    isolation: IsolationLevel = IsolationLevel.READ_UNCOMMITTED,
) -> ListOffsetsRequest:
    topics: dict[str, list[ListOffsetsPartition]] = {}
    for tp, time in times.items():
        topics.setdefault(tp.topic, []).append(ListOffsetsPartition(partition_index=tp.partition, timestamp=time))
    return ListOffsetsRequest(
        replica_id=replica_id,
        isolation_level=isolation,
        topics=[ListOffsetsTopic(name=name, partitions=wanted) for name, wanted in topics.items()],
    )


def _known(value: int) -> int | None:
    return None if value < 0 else value

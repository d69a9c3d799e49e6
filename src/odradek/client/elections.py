"""Elections of leaders by the controller."""

from enum import StrEnum
from functools import partial

from odradek.base.errors import ErrorCode, KafkaError
from odradek.client.cluster_client import NOT_YET_DONE, ClusterClient
from odradek.model.topology import TopicPartition
from odradek.protocol.messages import elect_leaders as elect_leaders_message
from odradek.protocol.messages.elect_leaders import ElectLeadersRequest, ElectLeadersResponse, TopicPartitions


class ElectionType(StrEnum):
    PREFERRED = "preferred"
    UNCLEAN = "unclean"


_NUMBERS = {
    ElectionType.PREFERRED: elect_leaders_message.ElectionType.PREFERRED,
    ElectionType.UNCLEAN: elect_leaders_message.ElectionType.UNCLEAN,
}


def elect_leaders(
    client: ClusterClient, election_type: ElectionType, wanted: list[TopicPartition] | None
) -> dict[TopicPartition, tuple[ErrorCode, str | None]]:
    """Elect leaders of the wanted partitions, or of all. Return the answer for each partition."""
    return client.retrying(partial(_elect, client, election_type, wanted), NOT_YET_DONE)


def _elect(
    client: ClusterClient, election_type: ElectionType, wanted: list[TopicPartition] | None
) -> dict[TopicPartition, tuple[ErrorCode, str | None]]:
    topics = None
    if wanted is not None:
        names = dict.fromkeys(tp.topic for tp in wanted)
        topics = [TopicPartitions(topic=n, partitions=[tp.partition for tp in wanted if tp.topic == n]) for n in names]
    request = ElectLeadersRequest(
        election_type=_NUMBERS[election_type], topic_partitions=topics, timeout_ms=client.request_timeout_ms
    )
    response = client.ask_controller(request, ElectLeadersResponse)
    if response.error_code:
        raise KafkaError(ErrorCode(response.error_code))
    return {
        TopicPartition(result.topic, p.partition_id): (ErrorCode(p.error_code), p.error_message)
        for result in response.replica_election_results
        for p in result.partition_result
    }

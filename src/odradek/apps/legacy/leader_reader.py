"""Reads partitions over the wire from their present leaders.

Used by one thread at a time. A partition whose leader can't be asked is left out until the leader is known again.
"""

from collections.abc import Callable, Collection, Mapping

from odradek.apps.legacy.observer import Observer
from odradek.base.errors import ErrorCode
from odradek.base.logs import get_logger
from odradek.client.broker_client import BrokerClient, ConnectionFailed, UnsupportedByBroker
from odradek.client.partition_offsets import list_offsets_request
from odradek.client.record_reader import Fetched, fetch_request, fetched_batches
from odradek.model.topology import NO_LEADER, Endpoint, TopicPartition
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.messages.fetch import FetchResponse, PartitionData
from odradek.protocol.messages.list_offsets import ListOffsetsResponse
from odradek.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from odradek.protocol.schema import Request

log = get_logger(__name__)

_FETCH_BY_NAME = 12
_TIMEOUT_MS = 30_000


class LeaderReader:
    def __init__(self, brokers: Callable[[], Mapping[int, Endpoint]], client_id: str, observer: Observer) -> None:
        self._brokers = brokers
        self._client_id = client_id
        self._observer = observer
        self._leaders: dict[TopicPartition, int] = {}
        self._addresses: dict[int, tuple[str, int]] = {}
        self._connections: dict[int, BrokerClient] = {}

    def fetch(
        self, positions: Mapping[TopicPartition, int], wait_ms: int
    ) -> tuple[list[Fetched], list[TopicPartition]]:
        """Return the records that have arrived, and the partitions that don't have the offset asked for."""
        fetched: list[Fetched] = []
        lost: list[TopicPartition] = []
        by_leader = self._by_leader(positions)
        for leader, partitions in by_leader.items():
            leader_wait_ms = 0 if fetched else wait_ms // len(by_leader)
            request = fetch_request({tp: positions[tp] for tp in sorted(partitions)}, {}, leader_wait_ms)
            answer = self._ask(leader, request, partitions, version_max=_FETCH_BY_NAME)
            if isinstance(answer, FetchResponse):
                found = [
                    (TopicPartition(t.topic, p.partition_index), p) for t in answer.responses for p in t.partitions
                ]
                lost += [tp for tp, data in found if data.error_code == ErrorCode.OFFSET_OUT_OF_RANGE]
                fetched += [item for tp, data in found if (item := self._take(tp, positions[tp], data)) is not None]
        return fetched, lost

    def boundaries(self, partitions: Collection[TopicPartition], mark: int) -> dict[TopicPartition, int]:
        """Return the first or the end offsets of the partitions; partitions of silent leaders are left out."""
        offsets: dict[TopicPartition, int] = {}
        for leader, led in self._by_leader(partitions).items():
            request = list_offsets_request(dict.fromkeys(sorted(led), mark))
            answer = self._ask(leader, request, led)
            if isinstance(answer, ListOffsetsResponse):
                found = ((TopicPartition(t.name, p.partition_index), p) for t in answer.topics for p in t.partitions)
                for tp, listed in found:
                    if listed.error_code:
                        self._leaders.pop(tp, None)
                    else:
                        offsets[tp] = listed.offset
        return offsets

    def close(self) -> None:
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()

    def _by_leader(self, partitions: Collection[TopicPartition]) -> dict[int, list[TopicPartition]]:
        if unknown := {tp.topic for tp in partitions if tp not in self._leaders}:
            self._find_leaders(sorted(unknown))
        by_leader: dict[int, list[TopicPartition]] = {}
        for tp in partitions:
            if (leader := self._leaders.get(tp)) is not None:
                by_leader.setdefault(leader, []).append(tp)
        return by_leader

    def _find_leaders(self, topics: list[str]) -> None:
        self._addresses = {n: (endpoint.host, endpoint.port) for n, endpoint in self._brokers().items()}
        request = MetadataRequest(
            topics=[MetadataRequestTopic(name=topic) for topic in topics], allow_auto_topic_creation=False
        )
        for broker_id in list(self._addresses):
            answer = self._ask(broker_id, request, ())
            if isinstance(answer, MetadataResponse):
                for topic in answer.topics:
                    for partition in topic.partitions:
                        if partition.leader_id != NO_LEADER and partition.leader_id in self._addresses:
                            tp = TopicPartition(topic.name or "", partition.partition_index)
                            self._leaders[tp] = partition.leader_id
                return

    def _take(self, tp: TopicPartition, position: int, data: PartitionData) -> Fetched | None:
        if data.error_code:
            self._leaders.pop(tp, None)
            return None
        return fetched_batches(tp, position, data)

    def _ask(
        self, broker_id: int, request: Request, concerned: Collection[TopicPartition], version_max: int | None = None
    ) -> object:
        """Return the answer; None without one, and then the leaders are looked up again."""
        try:
            connection = self._connections.get(broker_id)
            if connection is None:
                connection = BrokerClient(*self._addresses[broker_id], self._client_id, _TIMEOUT_MS)
                self._connections[broker_id] = connection
            version = connection.best_version(ApiKey(request.KEY))
            self._observer.asked_broker()
            answer: object = connection.send(request, version if version_max is None else min(version, version_max))
            return answer
        except (ConnectionFailed, UnsupportedByBroker) as error:
            log.debug("broker can't be asked", broker=broker_id, error=str(error))
            if (broken := self._connections.pop(broker_id, None)) is not None:
                broken.close()
            for tp in concerned:
                self._leaders.pop(tp, None)
            return None

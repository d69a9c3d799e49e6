"""Reading partitions from given positions: long polls to their leaders, without a fetch session.

`poll` returns raw batches, so that tools that only count need no decoding; `records_in` decodes.
"""

from collections.abc import Iterable, Iterator, Mapping
from uuid import UUID

from odradek.base.errors import ErrorCode, KafkaError
from odradek.base.value_classes import dataclass
from odradek.client.broker_client import ConnectionFailed
from odradek.client.cluster_client import ClusterClient
from odradek.model.topology import TopicPartition
from odradek.protocol.aborted_batches import committed_batches
from odradek.protocol.isolation import IsolationLevel
from odradek.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic, PartitionData
from odradek.protocol.primitives import ZERO_UUID
from odradek.protocol.record_batch import BatchHeader, batches, check_crc
from odradek.protocol.records import Record, read_records


@dataclass(frozen=True, slots=True)
class FetchOptions:
    """Limits and isolation of fetches; the defaults are those of Kafka's consumer."""

    max_wait_ms: int = 500
    max_bytes: int = 50 * 1024 * 1024
    partition_max_bytes: int = 1024 * 1024
    isolation: IsolationLevel = IsolationLevel.READ_UNCOMMITTED


DEFAULT_OPTIONS = FetchOptions()


@dataclass(frozen=True, slots=True)
class Fetched:
    """Whole batches of one partition. The first may begin before `from_offset`, which is where reading stood."""

    tp: TopicPartition
    from_offset: int
    data: memoryview
    batches: tuple[tuple[int, BatchHeader], ...]
    aborted: tuple[tuple[int, int], ...] = ()
    """Producer id and first offset of the aborted transactions in it; none unless committed records are read."""

    @property
    def next_offset(self) -> int:
        return self.batches[-1][1].next_offset


def records_in(fetched: Fetched) -> Iterator[Record]:
    """The records that someone asked for, each batch checked against its CRC; control records are left out, and
    records of aborted transactions where committed ones are read."""
    return (record for _, record in records_with_batches(fetched))


def records_with_batches(fetched: Fetched) -> Iterator[tuple[BatchHeader, Record]]:
    """Records of `records_in`, each with the header of its batch."""
    placed: Iterable[tuple[int, BatchHeader]] = fetched.batches
    if fetched.aborted:
        placed = committed_batches(fetched.data, placed, fetched.aborted)
    for position, header in placed:
        if header.is_control:
            continue
        check_crc(fetched.data, position, header)
        for record in read_records(fetched.data, position, header):
            if record.offset >= fetched.from_offset:
                yield header, record


def fetch_request(
    positions: Mapping[TopicPartition, int],
    topic_ids: Mapping[str, UUID],
    max_wait_ms: int,
    options: FetchOptions = DEFAULT_OPTIONS,
) -> FetchRequest:
    """Fetch of these partitions from these offsets, without a session. Versions from 13 on need the topics' ids.
    `max_wait_ms`: of this request, in place of that of the options."""
    topics: dict[str, FetchTopic] = {}
    for tp, offset in positions.items():
        if tp.topic not in topics:
            topics[tp.topic] = FetchTopic(topic=tp.topic, topic_id=topic_ids.get(tp.topic, ZERO_UUID), partitions=[])
        topics[tp.topic].partitions.append(
            FetchPartition(partition=tp.partition, fetch_offset=offset, partition_max_bytes=options.partition_max_bytes)
        )
    return FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=1,
        max_bytes=options.max_bytes,
        isolation_level=options.isolation,
        topics=list(topics.values()),
    )


def fetched_batches(tp: TopicPartition, from_offset: int, answer: PartitionData) -> Fetched | None:
    """Batches of an answer without an error; None if there are none. KafkaError if the first is not whole."""
    data = answer.records
    if not data:
        return None
    assert isinstance(data, memoryview), "decoded records are a view of the response"
    whole = tuple(batches(data, partial_tail=True))
    if not whole:
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"partition {tp}: no whole batch at {from_offset}")
    aborted = tuple((each.producer_id, each.first_offset) for each in answer.aborted_transactions or ())
    return Fetched(tp, from_offset, data, whole, aborted)


class RecordReader:
    def __init__(
        self,
        client: ClusterClient,
        positions: Mapping[TopicPartition, int],
        options: FetchOptions = DEFAULT_OPTIONS,
    ) -> None:
        self.positions = dict(positions)
        self._client = client
        self._options = options
        self._leaders: dict[int, list[TopicPartition]] = {}
        self._topic_ids: dict[str, UUID] = {}

    def poll(self) -> list[Fetched]:
        """Return the records that have arrived, none when the wait is over, and move the positions past them."""
        fetched = self._client.retrying(self._attempt)
        for item in fetched:
            self.positions[item.tp] = item.next_offset
        self._rotate()
        return fetched

    @property
    def is_finished(self) -> bool:
        """Every partition has been stopped."""
        return not self.positions

    def stop(self, tp: TopicPartition) -> None:
        """Stop reading the partition."""
        self.positions.pop(tp)
        self._leaders.clear()

    def _attempt(self) -> list[Fetched]:
        fetched: list[Fetched] = []
        try:
            if not self._leaders:
                self._find_leaders()
            for leader, partitions in self._leaders.items():
                # Each leader may wait only for its share of the time, and not at all when there are records.
                wait_ms = 0 if fetched else self._options.max_wait_ms // len(self._leaders)
                answer = self._client.ask_broker(leader, self._request(partitions, wait_ms), FetchResponse)
                fetched.extend(self._take(answer))
        except (KafkaError, ConnectionFailed):
            self._leaders.clear()
            if not fetched:
                raise
        return fetched

    def _find_leaders(self) -> None:
        topics = self._client.topics(sorted({tp.topic for tp in self.positions}))
        self._topic_ids = {name: state.topic_id for name, state in topics.items()}
        self._leaders = self._client.leaders(self.positions)

    def _request(self, partitions: list[TopicPartition], wait_ms: int) -> FetchRequest:
        positions = {tp: self.positions[tp] for tp in partitions}
        return fetch_request(positions, self._topic_ids, wait_ms, self._options)

    def _take(self, answer: FetchResponse) -> list[Fetched]:
        if answer.error_code:
            raise KafkaError(ErrorCode(answer.error_code))
        names = {topic_id: name for name, topic_id in self._topic_ids.items()}
        fetched: list[Fetched] = []
        for topic in answer.responses:
            for partition in topic.partitions:
                # From version 13 on a topic comes by its id alone.
                tp = TopicPartition(topic.topic or names[topic.topic_id], partition.partition_index)
                item = self._take_partition(tp, partition)
                if item is not None:
                    fetched.append(item)
        return fetched

    def _take_partition(self, tp: TopicPartition, partition: PartitionData) -> Fetched | None:
        code = ErrorCode(partition.error_code)
        if code is ErrorCode.OFFSET_OUT_OF_RANGE:
            raise KafkaError(
                code, f"partition {tp} has no offset {self.positions[tp]}; see: odradek offsets --topic {tp.topic}"
            )
        if code is not ErrorCode.NONE:
            raise KafkaError(code, f"partition {tp}: {code.name}")
        return fetched_batches(tp, self.positions[tp], partition)

    def _rotate(self) -> None:
        """The next answer begins with another partition, so that the byte limit starves none."""
        for partitions in self._leaders.values():
            partitions.append(partitions.pop(0))

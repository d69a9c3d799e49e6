"""Records of transactions on the wire and on disk: the same history on Apache Kafka and here, seen the same way."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka import TopicPartition as Position

from apache_kafka import KafkaPeer
from odradek.base.errors import ErrorCode
from odradek.format.transaction_index import AbortedTransaction, read_entries
from odradek.protocol.isolation import IsolationLevel
from odradek.protocol.messages.describe_producers import DescribeProducersRequest, TopicRequest
from odradek.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from odradek.protocol.messages.list_offsets import (
    EARLIEST,
    LATEST,
    MAX_TIMESTAMP,
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from odradek.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from odradek.testing import OdradekCluster
from waiting import eventually

from .conftest import JavaTool, Run, TopicMaker, unused_name
from .kafka_pair import KafkaPair

pytestmark = pytest.mark.timeout(300)

PATIENCE_S = 60
COMMITTED, UNCOMMITTED = IsolationLevel.READ_COMMITTED, IsolationLevel.READ_UNCOMMITTED
FETCH_WITH_NAMES = 12
TIME_MS = int(time.time() * 1000) - 60_000


class History:
    """Three producers with transactions that overlap, end well, badly, and not at all."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self._topic = topic
        self._written = self._end = 0
        watching = {"group.id": topic, "isolation.level": "read_uncommitted", "log_level": 0}
        self._watcher = Consumer({"bootstrap.servers": bootstrap, **watching})
        self._producers = [self._producer(bootstrap, f"{topic}-{number}") for number in range(3)]

    def _producer(self, bootstrap: str, name: str) -> Producer:
        made = Producer({"bootstrap.servers": bootstrap, "transactional.id": name, "linger.ms": 0, "log_level": 0})
        made.init_transactions(PATIENCE_S)
        return made

    def begin(self, number: int) -> None:
        self._producers[number].begin_transaction()

    def put(self, number: int) -> None:
        """One record, acknowledged before the next one is written."""
        self._written += 1
        value, timestamp = f"{number}/{self._written}", TIME_MS + self._written
        self._producers[number].produce(self._topic, value=value, partition=0, timestamp=timestamp)
        assert self._producers[number].flush(PATIENCE_S) == 0
        self._end += 1

    def commit(self, number: int) -> None:
        self._producers[number].commit_transaction(PATIENCE_S)
        self._await_marker()

    def abort(self, number: int) -> None:
        self._producers[number].abort_transaction(PATIENCE_S)
        self._await_marker()

    def _await_marker(self) -> None:
        """The producer is answered before its marker is written."""
        self._end += 1
        partition = Position(self._topic, 0)
        eventually(lambda: self._watcher.get_watermark_offsets(partition, PATIENCE_S)[1] == self._end, PATIENCE_S)


def tell(history: History) -> None:
    for number in range(3):
        history.begin(number)
    for number in (0, 1, 2, 1, 0):
        history.put(number)
    history.abort(2)
    history.put(1)
    history.abort(1)
    history.commit(0)
    history.begin(1)
    history.put(1)
    history.put(1)
    history.commit(1)
    history.begin(2)
    history.put(2)
    history.begin(0)
    history.put(0)
    history.abort(0)


@pytest.fixture(scope="module")
def told(pair: KafkaPair, odradek_cluster: OdradekCluster, kafka_peer: KafkaPeer) -> Iterator[list[History]]:
    """The producers live as long as the tests: a transaction of one of them stays open."""
    histories = []
    for bootstrap in (odradek_cluster.bootstrap_servers, kafka_peer.bootstrap_servers):
        history = History(bootstrap, pair.topic)
        tell(history)
        histories.append(history)
    yield histories
    for history in histories:
        history.abort(2)


def fetched(pair: KafkaPair, offset: int, isolation: IsolationLevel) -> list[tuple[Any, ...]]:
    """High watermark, stable offset, first offsets of aborted transactions, and bytes, of each of the two."""
    topic = FetchTopic(
        topic=pair.topic,
        partitions=[FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 20)],
    )
    request = FetchRequest(max_wait_ms=0, min_bytes=0, isolation_level=isolation, topics=[topic])
    seen = []
    for answer in pair.ask(request, FETCH_WITH_NAMES):
        found = answer.responses[0].partitions[0]
        assert found.error_code == ErrorCode.NONE
        stable = found.last_stable_offset
        aborted = found.aborted_transactions
        firsts = None if aborted is None else [each.first_offset for each in aborted]
        if firsts is not None:
            if not seen:
                assert firsts == sorted(firsts), "ours are in this order, Kafka's in that of the markers"
            # Kafka also names transactions behind what it sends.
            firsts = sorted(first for first in firsts if first < stable)
        size = len(found.records or b"")
        seen.append((found.high_watermark, stable, firsts, size))
    return seen


def test_fetches_see_the_same(pair: KafkaPair, told: list[History]) -> None:
    for isolation in (COMMITTED, UNCOMMITTED):
        for offset in range(16):
            ours, theirs = fetched(pair, offset, isolation)
            assert ours == theirs, (isolation, offset)
    ours, _ = fetched(pair, 0, COMMITTED)
    assert ours[:3] == (15, 12, [1, 2])


def test_offsets_by_end_and_by_time_are_bounded_the_same_way(pair: KafkaPair, told: list[History]) -> None:
    def offsets(time_ms: int, isolation: IsolationLevel) -> list[tuple[int, int]]:
        asked = ListOffsetsPartition(partition_index=0, timestamp=time_ms, current_leader_epoch=-1)
        topic = ListOffsetsTopic(name=pair.topic, partitions=[asked])
        request = ListOffsetsRequest(replica_id=-1, isolation_level=isolation, topics=[topic])
        found = [answer.topics[0].partitions[0] for answer in pair.ask(request)]
        return [(each.error_code, each.offset) for each in found]

    # Markers have the time of their writing, so what is asked for is either of the records or in the far future.
    for asked_ms in (LATEST, EARLIEST, TIME_MS, TIME_MS + 4, TIME_MS + 9, 2**60):
        for isolation in (COMMITTED, UNCOMMITTED):
            ours, theirs = offsets(asked_ms, isolation)
            assert ours == theirs, (asked_ms, isolation)
    assert offsets(LATEST, COMMITTED)[0] == (0, 12)
    assert offsets(MAX_TIMESTAMP, COMMITTED)[0] == offsets(MAX_TIMESTAMP, COMMITTED)[1]


def test_producers_are_described_the_same_way(pair: KafkaPair, told: list[History]) -> None:
    request = DescribeProducersRequest(topics=[TopicRequest(name=pair.topic, partition_indexes=[0])])
    seen = []
    for answer in pair.ask(request):
        found = answer.topics[0].partitions[0].active_producers
        seen.append(
            sorted((p.current_txn_start_offset, p.last_sequence, p.producer_epoch, p.coordinator_epoch) for p in found)
        )
    ours, theirs = seen
    assert ours == theirs
    assert [row[0] for row in ours] == [-1, -1, 12]


def test_markers_of_coordinators_are_refused_the_same_way(pair: KafkaPair, told: list[History]) -> None:
    def end(producer_id: int, epoch: int, coordinator_epoch: int, partition: int = 1, topic: str = "") -> list[int]:
        marker = WritableTxnMarker(
            producer_id=producer_id,
            producer_epoch=epoch,
            transaction_result=False,
            coordinator_epoch=coordinator_epoch,
            topics=[WritableTxnMarkerTopic(name=topic or pair.topic, partition_indexes=[partition])],
        )
        answers = pair.ask(WriteTxnMarkersRequest(markers=[marker]))
        return [answer.markers[0].topics[0].partitions[0].error_code for answer in answers]

    assert end(4_000, 5, 7) == [ErrorCode.NONE] * 2
    assert end(4_000, 5, 7) == [ErrorCode.NONE] * 2, "a repeated one"
    assert end(4_000, 4, 7) == [ErrorCode.INVALID_PRODUCER_EPOCH] * 2
    assert end(4_000, 5, 6) == [ErrorCode.TRANSACTION_COORDINATOR_FENCED] * 2
    assert end(4_000, 6, 8) == [ErrorCode.NONE] * 2
    assert end(4_000, 6, 8, partition=9) == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION] * 2
    assert end(4_000, 6, 8, topic="no-such-topic") == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION] * 2


def directories(pair: KafkaPair, cluster: OdradekCluster, peer: KafkaPeer) -> list[Path]:
    (ours,) = cluster.data_dir.glob(f"broker-*/**/{pair.topic}-0")
    return [ours, peer.data_dir / f"{pair.topic}-0"]


def test_the_transaction_index_is_the_same(
    pair: KafkaPair, told: list[History], odradek_cluster: OdradekCluster, kafka_peer: KafkaPeer
) -> None:
    def without_ids(directory: Path) -> list[tuple[int, int, int]]:
        data = (directory / f"{0:020}.txnindex").read_bytes()
        found: list[AbortedTransaction] = list(read_entries(data))
        assert len(data) == 34 * len(found)
        return [(each.first_offset, each.last_offset, each.last_stable_offset) for each in found]

    ours, theirs = (without_ids(each) for each in directories(pair, odradek_cluster, kafka_peer))
    assert ours == theirs
    assert ours == [(2, 5, 0), (1, 7, 0), (13, 14, 12)]


def test_kafkas_own_tools_read_markers_and_index(
    pair: KafkaPair, told: list[History], odradek_cluster: OdradekCluster, kafka_peer: KafkaPeer, java_tool: JavaTool
) -> None:
    def dumped(directory: Path, suffix: str) -> list[list[str]]:
        text = java_tool("kafka-dump-log", "--deep-iteration", "--files", directory / f"{0:020}{suffix}")
        words = [line.split() for line in text.splitlines() if "endTxnMarker" in line or "lastStableOffset" in line]
        volatile = {"producerId:", "CreateTime:", "timestamp:"}
        return [[word for at, word in enumerate(line) if not (at and line[at - 1] in volatile)] for line in words]

    ours, theirs = directories(pair, odradek_cluster, kafka_peer)
    for suffix in (".log", ".txnindex"):
        assert dumped(ours, suffix) == dumped(theirs, suffix)
        assert dumped(ours, suffix)


def test_consumers_of_every_kind_see_committed_records_alone(
    pair: KafkaPair, told: list[History], odradek: Run, odradek_cluster: OdradekCluster, java_tool: JavaTool
) -> None:
    committed = ["0/1", "0/5", "1/7", "1/8"]
    consume = ("consume", "--topic", pair.topic, "--from-beginning", "--exit-at-end")
    assert odradek(*consume, "--isolation", "read_committed").stdout.split() == committed
    assert len(odradek(*consume).stdout.split()) == 10
    java = java_tool(
        *("kafka-console-consumer", "--bootstrap-server", odradek_cluster.bootstrap_servers, "--topic", pair.topic),
        *("--from-beginning", "--isolation-level", "read_committed", "--max-messages", "4", "--timeout-ms", "60000"),
    )
    assert java.split() == committed


def test_a_java_producer_with_transactions(
    odradek: Run, odradek_cluster: OdradekCluster, java_tool: JavaTool, new_topic: TopicMaker
) -> None:
    topic = new_topic()
    java_tool(
        *("kafka-producer-perf-test", "--topic", topic, "--num-records", "2000", "--record-size", "100"),
        *("--throughput", "4000", "--transactional-id", unused_name(), "--transaction-duration-ms", "50"),
        *("--producer-props", f"bootstrap.servers={odradek_cluster.bootstrap_servers}"),
    )
    read = odradek(
        *("consume", "--topic", topic, "--from-beginning", "--exit-at-end", "--isolation", "read_committed"),
        *("--format", "json"),
    )
    assert len(read.stdout.splitlines()) == 2000

"""Replica fetchers of a simulated broker, without their threads: the story says when they fetch.

A fetch loop's work between two fetches is done here in its order: ask from the log's end, take the answer if the log is
still the one that was asked for, reset when the leader doesn't have that end.
"""

from collections.abc import Iterable, Mapping
from types import SimpleNamespace
from typing import Any

from odradek.base.errors import KafkaError
from odradek.broker.replication.follower import fetch_answers
from odradek.broker.replication.follower.fetch_answers import CopyOutcome
from odradek.broker.replication.follower.fetch_assignment import FetchAssignment, Progress
from odradek.broker.replication.leader.fetch_reader import FetchOutcome, FetchTarget
from odradek.broker.replication.partition_table import PartitionTable
from odradek.model.topology import TopicPartition
from odradek.protocol.messages.fetch import EpochEndOffset, PartitionData
from odradek.protocol.messages.list_offsets import (
    LATEST,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)


class ReplicaFetchers:
    def __init__(self, broker_id: int, replicas: PartitionTable) -> None:
        self._broker_id = broker_id
        self._replicas = replicas
        self._progress: dict[TopicPartition, Progress] = {}
        self._asked: dict[TopicPartition, FetchTarget] = {}  # the fetches that are under way

    # ---- orders of ReplicaManager

    def follow(self, orders: Mapping[TopicPartition, FetchAssignment]) -> None:
        for tp, order in orders.items():
            known = self._progress.get(tp)
            if known is None or known.following != order:
                self._progress[tp] = Progress(order, must_truncate=False)
                self._asked.pop(tp, None)

    def unfollow(self, tps: Iterable[TopicPartition]) -> None:
        for tp in tps:
            self._progress.pop(tp, None)
            self._asked.pop(tp, None)

    # ---- fetches

    def leaders(self) -> list[int]:
        """Return the leaders of partitions that are not being fetched."""
        return sorted({p.following.leader_id for tp, p in self._progress.items() if tp not in self._asked})

    def next_fetch(self, leader_id: int, max_bytes: int) -> list[FetchTarget]:
        """Return the next fetch for the leader: all partitions followed there that are not being fetched."""
        targets = []
        for tp, progress in self._progress.items():
            partition = self._replicas.partitions.get(tp)
            if progress.following.leader_id != leader_id or tp in self._asked or partition is None:
                continue
            own, order = partition.log, progress.following
            self._asked[tp] = FetchTarget(
                tp,
                order.topic_id,
                own.log_end_offset,
                max_bytes,
                order.leader_epoch,
                own.epochs.latest_epoch,
                log_start_offset=own.log_start_offset,
            )
            targets.append(self._asked[tp])
        return targets

    def give_up(self, targets: Iterable[FetchTarget]) -> None:
        """No answer will come."""
        for target in targets:
            if self._asked.get(target.partition) is target:
                del self._asked[target.partition]

    def take(self, target: FetchTarget, data: PartitionData, leader: PartitionTable | None) -> None:
        """Take the answer. `leader` has the replicas of the broker that answered, if it lives."""
        tp = target.partition
        progress, partition = self._progress.get(tp), self._replicas.partitions.get(tp)
        if self._asked.get(tp) is not target:
            return
        del self._asked[tp]
        if progress is None or partition is None or target.fetch_offset != partition.log.log_end_offset:
            return
        outcome = fetch_answers.take(partition, tp, progress, data)
        if outcome is CopyOutcome.OVER:
            self._progress.pop(tp, None)
        elif outcome is CopyOutcome.OUT_OF_RANGE and leader is not None and _leads(leader, tp):
            peer: Any = SimpleNamespace(send=lambda request: _list_offsets(leader, request))
            try:
                fetch_answers.reset_after_out_of_range(peer, self._broker_id, partition, tp, progress.following)
            except KafkaError as error:
                if fetch_answers.failed(tp, error) is CopyOutcome.OVER:
                    self._progress.pop(tp, None)


def wire_data(outcome: FetchOutcome) -> PartitionData:
    """The outcome of a follower's fetch as it goes over the wire."""
    data = PartitionData(partition_index=0, error_code=outcome.error)
    if outcome.diverging is not None:
        data.diverging_epoch = EpochEndOffset(epoch=outcome.diverging.epoch, end_offset=outcome.diverging.end_offset)
    if outcome.found is not None:
        data.high_watermark = outcome.found.high_watermark
        data.log_start_offset = outcome.found.log_start_offset
        records = outcome.found.records
        data.records = memoryview(b"" if records is None else records.read())
    return data


def _leads(replicas: PartitionTable, tp: TopicPartition) -> bool:
    partition = replicas.partitions.get(tp)
    return partition is not None and partition.is_leader


def _list_offsets(replicas: PartitionTable, request: ListOffsetsRequest) -> ListOffsetsResponse:
    topic = request.topics[0]
    wanted = topic.partitions[0]
    own = replicas.partitions[TopicPartition(topic.name, wanted.partition_index)].leader_log()
    offset = own.log_end_offset if wanted.timestamp == LATEST else own.log_start_offset
    found = ListOffsetsPartitionResponse(partition_index=wanted.partition_index, offset=offset)
    return ListOffsetsResponse(topics=[ListOffsetsTopicResponse(name=topic.name, partitions=[found])])

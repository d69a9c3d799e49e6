"""Thousands of transactions of one thread, open at the same time.

The requests are those of producers, each on connections of its own; the cost of a client library and its pauses before
retries are left out. Producers that are answered together first send their requests together, then receive the answers
one by one.
"""

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any, Final, Self

from odradek.apps.lab.bench.many_members import ASK_AGAIN, WAIT_S_MAX, connected
from odradek.apps.lab.bench.systems import BenchError, System
from odradek.base.errors import ErrorCode
from odradek.client.broker_client import BrokerClient, ConnectionFailed
from odradek.client.partition_offsets import list_offsets_request
from odradek.model.topology import TopicPartition
from odradek.protocol.isolation import IsolationLevel
from odradek.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from odradek.protocol.messages.end_txn import EndTxnRequest
from odradek.protocol.messages.find_coordinator import FindCoordinatorRequest
from odradek.protocol.messages.init_producer_id import InitProducerIdRequest
from odradek.protocol.messages.list_offsets import LATEST
from odradek.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from odradek.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from odradek.protocol.record_batch import build_batch
from odradek.protocol.records import Record
from odradek.protocol.schema import Request

Address = tuple[str, int]
TRANSACTIONAL: Final = 1
TIMEOUT_MS: Final = 600_000
LOOK_S: Final = 0.005
RECORD_BYTES: Final = 1024
# Versions that Kafka 3.9 and its clients have: both systems get the same requests.
PRODUCE_VERSION, ADD_VERSION, END_VERSION = 11, 3, 4
_TRY_AGAIN: Final = ASK_AGAIN | {ErrorCode.CONCURRENT_TRANSACTIONS}


class Producer:
    """A transactional id, its partition, and its connections to the coordinator and to the partition's leader."""

    def __init__(self, name: str, topic: str, partition: int, coordinator: BrokerClient, leader: BrokerClient) -> None:
        self.name, self.topic, self.partition = name, topic, partition
        self.coordinator, self.leader = coordinator, leader
        self.id = self.epoch = -1
        self.sequence = 0

    def init(self) -> InitProducerIdRequest:
        return InitProducerIdRequest(transactional_id=self.name, transaction_timeout_ms=TIMEOUT_MS)

    def add(self) -> AddPartitionsToTxnRequest:
        return AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.name,
            v3_and_below_producer_id=self.id,
            v3_and_below_producer_epoch=self.epoch,
            v3_and_below_topics=[AddPartitionsToTxnTopic(name=self.topic, partitions=[self.partition])],
        )

    def write(self) -> ProduceRequest:
        record = Record(0, round(time.time() * 1000), None, bytes(RECORD_BYTES))
        batch = build_batch(
            [record],
            producer_id=self.id,
            producer_epoch=self.epoch,
            base_sequence=self.sequence,
            transactional=True,
        )
        self.sequence += 1
        data = PartitionProduceData(index=self.partition, records=batch)
        return ProduceRequest(
            transactional_id=self.name,
            acks=-1,
            timeout_ms=TIMEOUT_MS,
            topic_data=[TopicProduceData(name=self.topic, partition_data=[data])],
        )

    def end(self) -> EndTxnRequest:
        return EndTxnRequest(transactional_id=self.name, producer_id=self.id, producer_epoch=self.epoch, committed=True)


class ManyTransactions:
    """Producers with transactional ids, each with one partition of the topic."""

    def __init__(self, system: System, topic: str, partitions: int, names: Sequence[str]) -> None:
        self._system, self._topic = system, topic
        self._leaders = leaders_of(system, topic, partitions)
        _, coordinator = transaction_coordinator(system, names[0])  # of them all: the topic has one partition
        with ExitStack() as stack:
            self._producers: list[Producer] = []
            for number, name in enumerate(names):
                partition = number % partitions
                to_coordinator = stack.enter_context(connected(coordinator))
                address = self._leaders[partition]
                to_leader = to_coordinator if address == coordinator else stack.enter_context(connected(address))
                self._producers.append(Producer(name, topic, partition, to_coordinator, to_leader))
            self._stack = stack.pop_all()
        for producer, answer in zip(self._producers, self._ask(Producer.init, _code), strict=True):
            producer.id, producer.epoch = answer.producer_id, answer.producer_epoch

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def open(self) -> None:
        """A transaction of each producer, with one record."""
        self._ask(Producer.add, _added)
        for producer in self._producers:
            producer.leader.submit(producer.write(), PRODUCE_VERSION)
        _check("write", [_written(producer.leader.receive()) for producer in self._producers])

    def end(self) -> None:
        """Commit them all; returns when readers of committed records see all of them."""
        self._ask(Producer.end, _code)
        self.await_stable()

    def end_one_elsewhere(self) -> None:
        """Commit one of the transactions at the next coordinator, as soon as that accepts it."""
        self._end_elsewhere(self._producers[-1:])

    def end_others_elsewhere(self) -> None:
        self._end_elsewhere(self._producers[:-1])

    def _end_elsewhere(self, producers: Sequence[Producer]) -> None:
        waiting = list(producers)
        deadline = time.monotonic() + WAIT_S_MAX
        while waiting and time.monotonic() < deadline:
            try:
                with connected(transaction_coordinator(self._system, waiting[0].name)[1]) as client:
                    for producer in waiting:
                        client.submit(producer.end(), END_VERSION)
                    waiting = [producer for producer in waiting if _is_refused_for_now(_code(client.receive()))]
            except ConnectionFailed:
                pass  # after a lost answer the request is repeated: the end is then known
            if waiting:
                time.sleep(LOOK_S)
        if waiting:
            raise BenchError(f"{len(waiting)} transactions were not ended within {WAIT_S_MAX:.0f} s")

    def await_stable(self) -> None:
        """Return when the last stable offset of each partition is its end."""
        deadline = time.monotonic() + WAIT_S_MAX
        for partition, address in self._leaders.items():
            with connected(address) as client:
                while _end_offset(client, self._topic, partition, IsolationLevel.READ_COMMITTED) < _end_offset(
                    client, self._topic, partition, IsolationLevel.READ_UNCOMMITTED
                ):
                    if time.monotonic() > deadline:
                        raise BenchError(f"an open transaction in {self._topic}-{partition}")
                    time.sleep(LOOK_S)

    def _ask(self, request: Callable[[Producer], Request], error_of: Callable[[Any], ErrorCode]) -> list[Any]:
        """Send a request of each until none has to be retried; return the answers in the order of the producers."""
        answers: dict[str, Any] = {}
        waiting = self._producers
        deadline = time.monotonic() + WAIT_S_MAX
        while waiting and time.monotonic() < deadline:
            for producer in waiting:
                producer.coordinator.submit(*_versioned(request(producer)))
            answers.update((producer.name, producer.coordinator.receive()) for producer in waiting)
            waiting = [producer for producer in waiting if _is_refused_for_now(error_of(answers[producer.name]))]
            if waiting:
                time.sleep(LOOK_S)
        if waiting:
            raise BenchError(f"{len(waiting)} producers were refused for {WAIT_S_MAX:.0f} s")
        return [answers[producer.name] for producer in self._producers]


def transaction_coordinator(system: System, name: str) -> tuple[int, Address]:
    """Return id and address of the coordinator, as soon as any live broker knows it."""
    deadline = time.monotonic() + WAIT_S_MAX
    while time.monotonic() < deadline:
        for port in system.ports:
            try:
                with connected(("127.0.0.1", port)) as client:
                    request = FindCoordinatorRequest(key_type=TRANSACTIONAL, coordinator_keys=[name])
                    (found,) = client.send(request).coordinators
            except ConnectionFailed:
                continue
            if not found.error_code:
                return found.node_id, (found.host, found.port)
        time.sleep(LOOK_S)
    raise BenchError(f"no coordinator for {name} within {WAIT_S_MAX:.0f} s")


def leaders_of(system: System, topic: str, partitions: int) -> dict[int, Address]:
    """Address of the leader by partition, when all have one."""
    deadline = time.monotonic() + WAIT_S_MAX
    while time.monotonic() < deadline:
        with connected(("127.0.0.1", system.port)) as client:
            answer = client.send(MetadataRequest(topics=[MetadataRequestTopic(name=topic)]))
        brokers = {broker.node_id: (broker.host, broker.port) for broker in answer.brokers}
        found = {each.partition_index: brokers.get(each.leader_id) for each in answer.topics[0].partitions}
        known = {partition: address for partition, address in found.items() if address is not None}
        if len(known) == partitions:
            return known
        time.sleep(LOOK_S)
    raise BenchError(f"not every partition of {topic} got a leader")


def _versioned(request: Request) -> tuple[Request, int | None]:
    if isinstance(request, AddPartitionsToTxnRequest):
        return request, ADD_VERSION
    return request, END_VERSION if isinstance(request, EndTxnRequest) else None


def _code(answer: Any) -> ErrorCode:
    return ErrorCode(answer.error_code)


def _added(answer: Any) -> ErrorCode:
    return ErrorCode(answer.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code)


def _written(answer: Any) -> ErrorCode:
    return ErrorCode(answer.responses[0].partition_responses[0].error_code)


def _is_refused_for_now(error: ErrorCode) -> bool:
    if error and error not in _TRY_AGAIN:
        raise BenchError(f"a transaction: {error.name}")
    return bool(error)


def _check(what: str, errors: Sequence[ErrorCode]) -> None:
    if wrong := {error.name for error in errors if error}:
        raise BenchError(f"{what}: {', '.join(sorted(wrong))}")


def _end_offset(client: BrokerClient, topic: str, partition: int, isolation: IsolationLevel) -> int:
    answer = client.send(list_offsets_request({TopicPartition(topic, partition): LATEST}, isolation=isolation))
    found: int = answer.topics[0].partitions[0].offset
    return found

"""Verification of a transaction by its coordinator, for leaders of partitions before the first append (KIP-890).

In version 2 of transactions the coordinator adds the partitions. The former transaction of the producer may still be
ending then, so that CONCURRENT_TRANSACTIONS is retried here for a while: for the producer the answer would mean to send
its records again. The coordinator of the id may be this broker, which is asked directly, or another one, which is asked
by AddPartitionsToTxn: requests that wait for the same broker are sent together.
"""

from collections import deque
from collections.abc import Callable, Collection
from functools import partial
from itertools import groupby
from typing import Final, TypeAlias

from odradek.base.clock import Clock
from odradek.base.errors import ErrorCode, KafkaError
from odradek.base.logs import get_logger
from odradek.broker.coordinator.transactions.batch_channel import BatchChannels, Connect
from odradek.broker.coordinator.transactions.core.decisions import Producer
from odradek.broker.coordinator.transactions.core.transaction import EPOCH_BUMP_VERSION
from odradek.broker.coordinator.transactions.marker_sender import later
from odradek.broker.coordinator.transactions.transaction_coordinator import TransactionCoordinator
from odradek.broker.purgatory.reaper import ExpirationReaper
from odradek.client.broker_client import BrokerClient, UnsupportedByBroker
from odradek.model.metadata_image import MetadataCache
from odradek.model.topic_names import TRANSACTIONS_TOPIC
from odradek.model.topology import TopicPartition
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.messages.add_partitions_to_txn import (
    BATCHED_SINCE,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)

log = get_logger(__name__)

Verified: TypeAlias = Callable[[dict[TopicPartition, ErrorCode]], None]

_RECENT_MAX: Final = 1_000
_RETRY_BACKOFF_MS: Final = 5
_RETRY_MS_MAX: Final = 100


class _Question:
    __slots__ = ("add", "answer", "partitions", "producer", "started_ms", "transactional_id")

    def __init__(
        self,
        transactional_id: str,
        producer: Producer,
        partitions: tuple[TopicPartition, ...],
        answer: Verified,
        started_ms: int,
        *,
        add: bool,
    ) -> None:
        self.add = add
        self.transactional_id = transactional_id
        self.producer = producer
        self.partitions = partitions
        self.answer = answer
        self.started_ms = started_ms


class PartitionVerifier:
    def __init__(
        self,
        broker_id: int,
        metadata: MetadataCache,
        reaper: ExpirationReaper,
        clock: Clock,
        connect: Connect,
    ) -> None:
        self._broker_id = broker_id
        self._coordinator: TransactionCoordinator | None = None
        self._metadata = metadata
        self._reaper = reaper
        self._clock = clock
        self._channels: BatchChannels[_Question] = BatchChannels(
            "transaction-verifier", connect, self._exchange, self._failed
        )
        metadata.on_publish.append(lambda image: self._channels.hang_up_on_others(image.brokers))
        self.failures = 0
        self.count = 0
        self.recent_ns: deque[int] = deque(maxlen=_RECENT_MAX)

    def start(self, coordinator: TransactionCoordinator) -> None:
        """Verify with the coordinator of this broker, whose log is in partitions that are verified here themselves."""
        self._coordinator = coordinator

    def stop(self) -> None:
        self._channels.stop()

    def verify(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: Collection[TopicPartition],
        callback: Verified,
        *,
        add: bool,
    ) -> None:
        """`callback` is called once, now or later, with an error for each partition. `add`: partitions that are not in
        the transaction are added to it.
        """
        producer, now_ms = Producer(producer_id, producer_epoch), self._clock.monotonic_ms()
        self._ask(_Question(transactional_id, producer, tuple(partitions), callback, now_ms, add=add))

    def _ask(self, question: _Question) -> None:
        coordinator = self._coordinator
        if coordinator is None:
            self._answer_all(question, ErrorCode.COORDINATOR_NOT_AVAILABLE)
            return
        tp = TopicPartition(TRANSACTIONS_TOPIC, coordinator.partition_for(question.transactional_id))
        state = self._metadata.image.partition(tp)
        leader = -1 if state is None else state.leader
        if leader == self._broker_id:
            self._ask_here(question, coordinator)
        elif leader not in self._metadata.image.brokers or not self._channels.put(leader, question):
            self._answer_all(question, ErrorCode.COORDINATOR_NOT_AVAILABLE)

    def _ask_here(self, question: _Question, coordinator: TransactionCoordinator) -> None:
        if question.add:
            self._add_here(question, coordinator)
            return
        errors = coordinator.verify(question.transactional_id, question.producer, question.partitions)
        self._answer(question, errors)

    def _add_here(self, question: _Question, coordinator: TransactionCoordinator) -> None:
        """Add partitions that the coordinator knows, as it does for other brokers. It looks up the leaders for the
        markers later, and this broker may lead a partition before it has its metadata."""
        image = self._metadata.image
        unknown = [tp for tp in question.partitions if image.partition(tp) is None]
        if unknown:
            others = dict.fromkeys(question.partitions, ErrorCode.OPERATION_NOT_ATTEMPTED)
            self._answer(question, others | dict.fromkeys(unknown, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
            return
        try:
            coordinator.add_partitions(
                question.transactional_id,
                question.producer,
                question.partitions,
                partial(self._answer_all, question),
                client_version=EPOCH_BUMP_VERSION,
            )
        except KafkaError as error:
            self._answer_all(question, error.code)

    # ---- other brokers

    def _exchange(self, client: BrokerClient, asked: list[_Question]) -> None:
        """Answered questions leave the list: if a later request fails, `_failed` gets the others."""
        version = client.best_version(ApiKey.ADD_PARTITIONS_TO_TXN)
        if version < BATCHED_SINCE:
            raise UnsupportedByBroker(f"the broker at {client.address} can't verify transactions")
        while asked:
            together = _once_each(asked)
            request = AddPartitionsToTxnRequest(transactions=[_asked(question) for question in together])
            answer = client.send(request, version)
            results = {
                (result.transactional_id, TopicPartition(topic.name, each.partition_index)): each.partition_error_code
                for result in answer.results_by_transaction
                for topic in result.topic_results
                for each in topic.results_by_partition
            }
            for question in together:
                asked.remove(question)  # answered once, whatever the results of the others
                errors = {
                    tp: ErrorCode(answer.error_code or results.get((question.transactional_id, tp), -1))
                    for tp in question.partitions
                }
                self._answer(question, errors)

    def _failed(self, questions: list[_Question], error: Exception) -> None:
        log.info("transactions can't be verified", error=str(error), count=len(questions))
        code = ErrorCode.NETWORK_EXCEPTION
        if isinstance(error, UnsupportedByBroker):
            code = ErrorCode.INVALID_TXN_STATE
        for question in questions:
            self._answer_all(question, code)

    # ---- answers

    def _answer_all(self, question: _Question, error: ErrorCode) -> None:
        self._answer(question, dict.fromkeys(question.partitions, error))

    def _answer(self, question: _Question, errors: dict[TopicPartition, ErrorCode]) -> None:
        if question.add and ErrorCode.CONCURRENT_TRANSACTIONS in errors.values() and self._may_retry(question):
            later(self._reaper, _RETRY_BACKOFF_MS, partial(self._ask, question))
            return
        self.count += 1
        self.failures += sum(map(bool, errors.values()))
        self.recent_ns.append((self._clock.monotonic_ms() - question.started_ms) * 1_000_000)
        question.answer({tp: _as_writers_know_it(error) for tp, error in errors.items()})

    def _may_retry(self, question: _Question) -> bool:
        waited_ms = self._clock.monotonic_ms() - question.started_ms
        return waited_ms < _RETRY_MS_MAX and not self._channels.is_stopped


def _once_each(questions: list[_Question]) -> list[_Question]:
    """A request contains each transactional id once; the rest is sent with the next request."""
    together: dict[str, _Question] = {}
    for each in questions:
        together.setdefault(each.transactional_id, each)
    return list(together.values())


def _asked(question: _Question) -> AddPartitionsToTxnTransaction:
    by_topic = groupby(sorted(question.partitions), key=lambda tp: tp.topic)
    return AddPartitionsToTxnTransaction(
        transactional_id=question.transactional_id,
        producer_id=question.producer.id,
        producer_epoch=question.producer.epoch,
        verify_only=not question.add,
        topics=[
            AddPartitionsToTxnTopic(name=topic, partitions=[tp.partition for tp in tps]) for topic, tps in by_topic
        ],
    )


def _as_writers_know_it(error: ErrorCode) -> ErrorCode:
    """Errors of verification as Produce answers them: a fenced producer gets INVALID_PRODUCER_EPOCH."""
    return ErrorCode.INVALID_PRODUCER_EPOCH if error is ErrorCode.PRODUCER_FENCED else error

"""Writing records to one topic: sends batches to their leaders and retries, so that each record is written once.

With idempotence (the default) a batch has a producer id and a sequence, so sending it again after a lost answer doesn't
write it twice. One request per leader is in flight at a time.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from odradek.base.clock import SYSTEM_CLOCK, Clock
from odradek.base.errors import ErrorCode, KafkaError
from odradek.client.broker_client import ConnectionFailed
from odradek.client.cluster_client import ClusterClient
from odradek.client.producer_transaction import ProducerId, ProducerTransaction
from odradek.model.topology import TopicPartition
from odradek.protocol.compression import Codec
from odradek.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from odradek.protocol.messages.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData
from odradek.protocol.record_batch import MAX_SEQUENCE, NO_PRODUCER_EPOCH, NO_PRODUCER_ID, NO_SEQUENCE, build_batch
from odradek.protocol.records import Record

ACKS_ALL = -1

Headers = tuple[tuple[str, bytes | None], ...]


class NewRecord(NamedTuple):
    """Record to write; its batch gives it the offset."""

    key: bytes | None
    value: bytes | None
    headers: Headers = ()


NOT_IDEMPOTENT = ProducerId(NO_PRODUCER_ID, NO_PRODUCER_EPOCH)


def new_producer_id(client: ClusterClient) -> ProducerId:
    return client.retrying(lambda: _ask_producer_id(client))


def _ask_producer_id(client: ClusterClient) -> ProducerId:
    request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=MAX_SEQUENCE)
    answer = client.ask_any(request, InitProducerIdResponse)
    if answer.error_code:
        code = ErrorCode(answer.error_code)
        raise KafkaError(code, f"no producer id: {code.name}")
    return ProducerId(answer.producer_id, answer.producer_epoch)


class RecordSender:
    def __init__(
        self,
        client: ClusterClient,
        topic: str,
        *,
        acks: int = ACKS_ALL,
        compression: Codec = Codec.NONE,
        idempotent: bool = True,
        transaction: ProducerTransaction | None = None,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        """`transaction`: the one that the records are part of; its end is its owner's business."""
        self._client = client
        self._topic = topic
        self._acks = acks
        self._compression = compression
        self._clock = clock
        self._transaction = transaction
        if transaction is not None:
            self._producer = transaction.producer
        else:
            self._producer = new_producer_id(client) if idempotent else NOT_IDEMPOTENT
        self._sequences: dict[int, int] = {}
        self._leaders: dict[int, int] = {}

    def send(self, records: Mapping[int, Sequence[NewRecord]]) -> dict[int, int]:
        """Send one batch to each partition; returns the first offset of each when all are written, -1 with acks=0."""
        pending = {partition: self._batch(partition, batch) for partition, batch in records.items()}
        offsets: dict[int, int] = {}
        if self._transaction is not None:
            self._transaction.add([TopicPartition(self._topic, partition) for partition in records])
        self._client.retrying(lambda: self._attempt(pending, offsets))
        for partition, batch in records.items():
            self._sequences[partition] = (self._sequences.get(partition, 0) + len(batch)) & MAX_SEQUENCE
        return offsets

    def _batch(self, partition: int, records: Sequence[NewRecord]) -> bytes:
        now = self._clock.now_ms()
        idempotent = self._producer is not NOT_IDEMPOTENT
        return build_batch(
            [Record(n, now, record.key, record.value, record.headers) for n, record in enumerate(records)],
            compression=self._compression,
            producer_id=self._producer.id,
            producer_epoch=self._producer.epoch,
            base_sequence=self._sequences.get(partition, 0) if idempotent else NO_SEQUENCE,
            transactional=self._transaction is not None,
        )

    def _attempt(self, pending: dict[int, bytes], offsets: dict[int, int]) -> None:
        """Send the pending batches; a written one leaves `pending` and enters `offsets`."""
        try:
            for leader, partitions in self._by_leader(pending).items():
                request = self._request({partition: pending[partition] for partition in partitions})
                if self._acks == 0:
                    self._client.tell_broker(leader, request)
                    self._written(pending, offsets, dict.fromkeys(partitions, -1))
                else:
                    answer = self._client.ask_broker(leader, request, ProduceResponse)
                    self._take(answer, pending, offsets)
        except (KafkaError, ConnectionFailed):
            self._leaders.clear()
            raise

    def _by_leader(self, pending: Mapping[int, bytes]) -> dict[int, list[int]]:
        if not pending.keys() <= self._leaders.keys():
            wanted = [TopicPartition(self._topic, partition) for partition in pending]
            for leader, partitions in self._client.leaders(wanted).items():
                self._leaders.update((tp.partition, leader) for tp in partitions)
        by_leader: dict[int, list[int]] = {}
        for partition in pending:
            by_leader.setdefault(self._leaders[partition], []).append(partition)
        return by_leader

    def _request(self, batches: Mapping[int, bytes]) -> ProduceRequest:
        data = [PartitionProduceData(index=partition, records=batch) for partition, batch in batches.items()]
        return ProduceRequest(
            transactional_id=None if self._transaction is None else self._transaction.transactional_id,
            acks=self._acks,
            timeout_ms=self._client.request_timeout_ms,
            topic_data=[TopicProduceData(name=self._topic, partition_data=data)],
        )

    def _take(self, answer: ProduceResponse, pending: dict[int, bytes], offsets: dict[int, int]) -> None:
        failure: KafkaError | None = None
        for topic in answer.responses:
            for result in topic.partition_responses:
                code = ErrorCode(result.error_code)
                # A duplicate means that an earlier attempt was written and only its answer was lost.
                if code in (ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER):
                    self._written(pending, offsets, {result.index: result.base_offset})
                else:
                    failure = produce_error(code, TopicPartition(self._topic, result.index), result.error_message)
        if failure is not None:
            raise failure

    def _written(self, pending: dict[int, bytes], offsets: dict[int, int], written: Mapping[int, int]) -> None:
        for partition in written:
            del pending[partition]
        offsets.update(written)


def produce_error(code: ErrorCode, tp: TopicPartition, message: str | None) -> KafkaError:
    if code is ErrorCode.MESSAGE_TOO_LARGE:
        message = "a record or batch is larger than the topic's max.message.bytes; try a smaller --batch-size"
    return KafkaError(code, f"partition {tp}: {message or code.name}")

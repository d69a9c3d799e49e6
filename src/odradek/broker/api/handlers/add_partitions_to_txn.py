"""AddPartitionsToTxn (key 24): partitions that a transaction is about to write to.

Versions 0-5. Clients send up to v3, one transaction each; v2 has PRODUCER_FENCED. From v4 brokers ask for many at once:
to verify that partitions are part of an open transaction (TRANSACTION_ABORTABLE says that one is not), or to add those
to which a producer writes whose transactions are of version 2. Not done: nothing.
"""

import threading
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TypeAlias

from odradek.base.errors import ErrorCode, KafkaError
from odradek.broker.api.authorization import authorized, authorized_on_cluster, denied_topics
from odradek.broker.api.context import RequestContext
from odradek.broker.api.registry import LATER, Outcome, handles
from odradek.broker.api.transactional_errors import as_known_to
from odradek.broker.coordinator.transactions.core.decisions import Producer
from odradek.broker.coordinator.transactions.core.transaction import CLASSIC, EPOCH_BUMP_VERSION
from odradek.model.acls import AclOperation, ResourceType
from odradek.model.topic_names import INTERNAL
from odradek.model.topology import TopicPartition
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.messages.add_partitions_to_txn import (
    BATCHED_SINCE,
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
)

Errors: TypeAlias = dict[TopicPartition, ErrorCode]


@handles(ApiKey.ADD_PARTITIONS_TO_TXN, versions="0-5", may_block=False)
def add_partitions_to_txn(request: AddPartitionsToTxnRequest, ctx: RequestContext) -> Outcome:
    if ctx.version < BATCHED_SINCE:
        single = AddPartitionsToTxnTransaction(
            transactional_id=request.v3_and_below_transactional_id,
            producer_id=request.v3_and_below_producer_id,
            producer_epoch=request.v3_and_below_producer_epoch,
            topics=request.v3_and_below_topics,
        )
        _add(single, ctx, ctx.reply_with(_single_response))
        return LATER
    if not authorized_on_cluster(ctx, AclOperation.CLUSTER_ACTION):
        ctx.reply(AddPartitionsToTxnResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED))
        return LATER
    gathered = _Gathered(len(request.transactions), ctx.reply_with(_response))
    for index, transaction in enumerate(request.transactions):
        if transaction.verify_only:
            gathered.put(index, transaction.transactional_id, _verified(transaction, ctx))
        else:
            _add(transaction, ctx, partial(gathered.put, index, transaction.transactional_id))
    return LATER


def _verified(transaction: AddPartitionsToTxnTransaction, ctx: RequestContext) -> Errors:
    producer = Producer(transaction.producer_id, transaction.producer_epoch)
    return ctx.broker.transactions.verify(transaction.transactional_id, producer, _partitions(transaction.topics))


def _add(
    transaction: AddPartitionsToTxnTransaction,
    ctx: RequestContext,
    done: Callable[[Errors], None],
) -> None:
    partitions = _partitions(transaction.topics)
    if refused := _refused(transaction, partitions, ctx):
        done(dict.fromkeys(partitions, ErrorCode.OPERATION_NOT_ATTEMPTED) | refused)
        return

    def answer(error: ErrorCode) -> None:
        done(dict.fromkeys(partitions, as_known_to(error, ctx.version, fenced_since=2)))

    producer = Producer(transaction.producer_id, transaction.producer_epoch)
    try:
        ctx.broker.transactions.add_partitions(
            transaction.transactional_id,
            producer,
            partitions,
            answer,
            client_version=CLASSIC if ctx.version < BATCHED_SINCE else EPOCH_BUMP_VERSION,
        )
    except KafkaError as error:
        answer(error.code)


def _refused(
    transaction: AddPartitionsToTxnTransaction, partitions: Iterable[TopicPartition], ctx: RequestContext
) -> Errors:
    """Partitions that can't be added; then none is. A broker asks for its clients, and has asked whether they may. No
    client may add an internal topic: its transaction would end with markers there."""
    denied: frozenset[str] = frozenset()
    if ctx.version < BATCHED_SINCE:
        denied = INTERNAL
        if ctx.broker.authorizer is not None:
            if not authorized(ctx, AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID, transaction.transactional_id):
                return dict.fromkeys(partitions, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
            denied |= denied_topics(ctx, AclOperation.WRITE, [tp.topic for tp in partitions])
    image = ctx.broker.metadata.image
    refused: Errors = {tp: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION for tp in partitions if image.partition(tp) is None}
    return refused | {tp: ErrorCode.TOPIC_AUTHORIZATION_FAILED for tp in partitions if tp.topic in denied}


class _Gathered:
    """The answers to all transactions of a request, given together."""

    def __init__(self, count: int, done: Callable[[list[tuple[str, Errors]]], None]) -> None:
        self._missing = count
        self._results: list[tuple[str, Errors]] = [("", {})] * count
        self._done = done
        self._lock = threading.Lock()
        if not count:
            done([])

    def put(self, index: int, transactional_id: str, errors: Errors) -> None:
        with self._lock:
            self._results[index] = (transactional_id, errors)
            self._missing -= 1
            is_last = not self._missing
        if is_last:
            self._done(self._results)


def _partitions(topics: Iterable[AddPartitionsToTxnTopic]) -> list[TopicPartition]:
    return [TopicPartition(topic.name, index) for topic in topics for index in topic.partitions]


def _single_response(errors: Errors) -> AddPartitionsToTxnResponse:
    return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=_topics(errors))


def _response(results: list[tuple[str, Errors]]) -> AddPartitionsToTxnResponse:
    return AddPartitionsToTxnResponse(
        results_by_transaction=[
            AddPartitionsToTxnResult(transactional_id=transactional_id, topic_results=_topics(errors))
            for transactional_id, errors in results
        ]
    )


def _topics(errors: Mapping[TopicPartition, ErrorCode]) -> list[AddPartitionsToTxnTopicResult]:
    by_topic: dict[str, list[AddPartitionsToTxnPartitionResult]] = {}
    for tp in sorted(errors):
        result = AddPartitionsToTxnPartitionResult(partition_index=tp.partition, partition_error_code=errors[tp])
        by_topic.setdefault(tp.topic, []).append(result)
    return [AddPartitionsToTxnTopicResult(name=topic, results_by_partition=each) for topic, each in by_topic.items()]

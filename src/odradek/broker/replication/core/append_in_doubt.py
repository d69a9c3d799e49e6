"""Decision about a batch that the log refused where leadership may have moved: an earlier batch may still arrive."""

from collections.abc import Callable

from odradek.base.errors import ErrorCode, KafkaError
from odradek.broker.log.core.producer_state import ProducerStates
from odradek.broker.replication.core.outcomes import Appended
from odradek.broker.replication.core.refused_batches import RefusedBatches
from odradek.model.topology import TopicPartition
from odradek.protocol.batch_survey import idempotent_producer


def append_in_doubt(
    tp: TopicPartition,
    records: memoryview,
    error: KafkaError,
    states: ProducerStates | None,
    refused: RefusedBatches,
    append: Callable[[], Appended],
) -> Appended | KafkaError:
    """The answer to a batch that was refused. Where leadership may have moved, and only there `states` is given, a gap
    gets the benefit of the doubt, and so does a producer that is not known and may have been: what it sent before may
    still be on its way."""
    if states is None or not _may_continue(records, error, states):
        return refused.explain(tp, records, error, states)
    if (in_doubt := refused.doubt(tp, records)) is not None:
        return in_doubt
    try:
        return append()
    except KafkaError as second:
        return second


def _may_continue(records: memoryview, error: KafkaError, states: ProducerStates) -> bool:
    """Return whether the batch is out of order only because its producer's state may have been lost."""
    producer = idempotent_producer(records)
    return (
        error.code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        and producer is not None
        and states.may_begin_at(producer.id, producer.epoch, producer.sequence)
    )

"""Produce (key 0): append batches to the partitions that this broker leads.

Versions 0-12. v0-2 carry the older message sets, which are converted; v3+ carry exactly one batch v2 per partition;
v5 adds the log start offset, v8 error messages and which records were at fault, v10 the current leader. acks 0 has no
answer: a failure closes the connection, so that the client looks again for the leader; acks -1 is answered when the
whole ISR has the records. A transactional batch waits for the coordinator of its transaction the first time (KIP-890);
v11 may answer TRANSACTION_ABORTABLE, v12 makes the partition part of the transaction (part 2). Not done: nothing.
"""

from collections.abc import Sequence
from functools import partial

from odradek.base.errors import ErrorCode, KafkaError
from odradek.base.logs import get_logger
from odradek.broker.api.authorization import NONE_DENIED, authorized, denial, denied_topics
from odradek.broker.api.context import RequestContext
from odradek.broker.api.current_leader import current_leader, leader_node
from odradek.broker.api.registry import LATER, Outcome, handles
from odradek.broker.log.core.append_result import AppendResult
from odradek.broker.log.core.check_budget import CheckBudget, TakesLong
from odradek.broker.log.core.refused_records import RecordsRefused
from odradek.broker.network.connection import Connection
from odradek.broker.replication.core.refused_batches import RefusedBatches
from odradek.broker.replication.leader.delayed_produce import AppendOutcome
from odradek.broker.replication.leader.transactional_appends import TransactionalProduce
from odradek.broker.replication.partition_table import Batch
from odradek.model.acls import AclOperation, ResourceType
from odradek.model.topic_names import INTERNAL, is_internal
from odradek.model.topology import TopicPartition
from odradek.native.load import compiled
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.batch_survey import BatchSurvey, idempotent_producer, is_transactional, survey_batches
from odradek.protocol.messages.produce import (
    BatchIndexAndErrorMessage,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)

log = get_logger(__name__)

FIRST_WITH_LEADER = 10
FIRST_THAT_ADDS = 12
VALID_ACKS = frozenset({-1, 0, 1})
# Far more than clients send at once, and a few hundredths of a second of work.
QUICK_RECORDS_MAX = 20_000
# Of so many compressed batches the budget of a network thread pays for all, if they are of the size that clients send:
# a millisecond. Of more, or larger ones, it may pay for some in vain.
QUICK_COMPRESSED_MAX = 32
QUICK_COMPRESSED_BYTES_MAX = 512 << 10
ALWAYS_QUICK_COMPRESSED_MAX = 4
LOGGED_REFUSALS_MAX = 20


def takes_long(survey: BatchSurvey, frame_bytes: int) -> bool:
    """Return whether reading the records could delay other clients: the size alone does not tell, because a small batch
    may decompress to a large one."""
    records, compressed, _, older = survey
    if records > QUICK_RECORDS_MAX or older:
        return True
    if compressed <= ALWAYS_QUICK_COMPRESSED_MAX:
        return False
    return compressed > QUICK_COMPRESSED_MAX or frame_bytes > QUICK_COMPRESSED_BYTES_MAX


@handles(ApiKey.PRODUCE, versions="0-12", may_block=False)
def produce(request: ProduceRequest, ctx: RequestContext) -> Outcome:
    """Raises TakesLong on a network thread, before anything is changed but for the quota, which is charged once."""
    broker, survey = ctx.broker, survey_batches(request.topic_data)
    if broker.quotas.is_limiting and not ctx.was_put_off:
        ctx.throttle_ms = broker.quotas.produce.charge(ctx.user, ctx.client_id, len(ctx.request.frame))
    if not ctx.may_block and takes_long(survey, len(ctx.request.frame)):
        raise TakesLong
    denied = NONE_DENIED if broker.authorizer is None else _denied(request, ctx)
    transaction, refused = None, _refused(request, ctx)
    if survey.transactional and refused is None:
        transaction, refused = _transaction(request, ctx)
    written: list[TopicPartition] = []
    outcomes = broker.replicas.append(
        _batches(request, refused, denied),
        acks=request.acks,
        timeout_ms=request.timeout_ms,
        api_version=ctx.header.api_version,
        budget=CheckBudget(is_quick=not ctx.may_block, topics=len(request.topic_data)),
        refused=_refused_batches(ctx.connection),
        done=partial(_answer_later, request, ctx),
        transaction=transaction,
        written=written,
    )
    if outcomes is None:
        return LATER
    try:  # the producer first: its answer takes a fraction of the time of the answers to waiting fetches
        if request.acks:
            ctx.reply(_response(request, ctx, outcomes))
        else:
            _close_if_failed(ctx, outcomes)
            ctx.reply(None)
    finally:
        broker.replicas.complete_fetches(written)
    return LATER


def _answer_later(request: ProduceRequest, ctx: RequestContext, outcomes: list[AppendOutcome]) -> None:
    if request.acks:
        ctx.reply_with(partial(_response, request, ctx))(outcomes)
    else:
        _close_if_failed(ctx, outcomes)
        ctx.reply(None)


def _close_if_failed(ctx: RequestContext, outcomes: list[AppendOutcome]) -> None:
    if any(isinstance(outcome, KafkaError) for outcome in outcomes):
        ctx.close("a produce without acknowledgement failed")


def _response(request: ProduceRequest, ctx: RequestContext, outcomes: list[AppendOutcome]) -> ProduceResponse | bytes:
    if compiled is not None and not ctx.broker.quotas.is_limiting:  # else the time to wait has to be put into it
        correlation_id, version = ctx.header.correlation_id, ctx.header.api_version
        frame = compiled.produce_response(request.topic_data, outcomes, AppendResult, correlation_id, version)
        if frame is not None:
            return frame
    response = ProduceResponse()
    at_wrong_leader: list[tuple[TopicPartition, PartitionProduceResponse]] = []
    in_order = iter(outcomes)
    refused = 0
    for topic in request.topic_data:
        answers = []
        for data in topic.partition_data:
            outcome = next(in_order)
            if isinstance(outcome, KafkaError):
                answer = _refusal(data.index, outcome)
                refused += 1
                if refused <= LOGGED_REFUSALS_MAX:
                    code, why = outcome.code.name, str(outcome)
                    log.info("produce refused", topic=topic.name, partition=data.index, code=code, why=why)
                if outcome.code is ErrorCode.NOT_LEADER_OR_FOLLOWER:
                    at_wrong_leader.append((TopicPartition(topic.name, data.index), answer))
            else:
                answer = PartitionProduceResponse(
                    index=data.index,
                    base_offset=outcome.first_offset,
                    log_append_time_ms=outcome.log_append_time_ms,
                    log_start_offset=outcome.log_start_offset,
                )
            answers.append(answer)
        response.responses.append(TopicProduceResponse(name=topic.name, partition_responses=answers))
    if refused > LOGGED_REFUSALS_MAX:
        log.info("produce refused", more=refused - LOGGED_REFUSALS_MAX, client=ctx.connection.id)
    if at_wrong_leader and ctx.version >= FIRST_WITH_LEADER:
        _tell_leaders(at_wrong_leader, response, ctx)
    return response


def _tell_leaders(
    at_wrong_leader: list[tuple[TopicPartition, PartitionProduceResponse]],
    response: ProduceResponse,
    ctx: RequestContext,
) -> None:
    nodes = {}
    for tp, answer in at_wrong_leader:
        leader = current_leader(tp, ctx)
        answer.current_leader = LeaderIdAndEpoch(leader_id=leader.id, leader_epoch=leader.epoch)
        nodes[leader.id] = leader_node(leader, ctx)
    response.node_endpoints = [
        NodeEndpoint(node_id=node.id, host=node.host, port=node.port, rack=node.rack) for node in nodes.values() if node
    ]


def _refused_batches(connection: Connection) -> RefusedBatches:
    memory = connection.producer_memory
    if not isinstance(memory, RefusedBatches):
        memory = connection.producer_memory = RefusedBatches()
    return memory


def _denied(request: ProduceRequest, ctx: RequestContext) -> frozenset[str]:
    return denied_topics(ctx, AclOperation.WRITE, [topic.name for topic in request.topic_data])


def _batches(request: ProduceRequest, refused_whole: KafkaError | None, denied: frozenset[str]) -> Sequence[Batch]:
    if compiled is not None and refused_whole is None and not denied:
        found = compiled.flat_batches(TopicPartition, request.topic_data, INTERNAL)
        if found is not None:
            return found
    batches: list[Batch] = []
    new, partition_type = tuple.__new__, TopicPartition  # past the Python-level constructor of NamedTuple
    for topic in request.topic_data:
        name = topic.name
        refused = refused_whole
        if name in denied and (refused is None or refused.code is not ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED):
            refused = denial(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        elif refused is None and is_internal(name):
            refused = KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Cannot append to internal topic {name}")
        for data in topic.partition_data:
            records = data.records
            given: memoryview | KafkaError
            if refused is not None:
                given = refused
            elif isinstance(records, memoryview):
                given = records
            else:
                given = KafkaError(ErrorCode.INVALID_RECORD, "The request has no records for this partition.")
            batches.append((new(partition_type, (name, data.index)), given))
    return batches


def _refused(request: ProduceRequest, ctx: RequestContext) -> KafkaError | None:
    """Return the error that refuses the whole request."""
    if request.acks not in VALID_ACKS:
        return KafkaError(ErrorCode.INVALID_REQUIRED_ACKS)
    if ctx.connection.peer_closed and request.acks and _is_idempotent(request):
        # The request was unread in the socket of a frozen broker. The client may have sent the records again since,
        # under another epoch, so that duplicates can't be recognised.
        return KafkaError(ErrorCode.NETWORK_EXCEPTION, "The client closed the connection before the request was read.")
    return None


def _transaction(request: ProduceRequest, ctx: RequestContext) -> tuple[TransactionalProduce | None, KafkaError | None]:
    """Return the producer of the transactional batches, or the error of the whole request.

    The batches decide: a request with a transactional id may have batches outside of a transaction (KAFKA-14916).
    """
    if request.transactional_id is None:
        why = "Records of a transaction come without a transactional id."
        return None, KafkaError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, why)
    if not authorized(ctx, AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID, request.transactional_id):
        return None, denial(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    producers: set[tuple[int, int]] = set()
    for topic in request.topic_data:
        for data in topic.partition_data:
            records = data.records
            if is_transactional(records) and (found := idempotent_producer(records)) is not None:
                producers.add(found[:2])
    if not producers:
        return None, KafkaError(ErrorCode.INVALID_PRODUCER_ID_MAPPING, "Transactional records without a producer ID")
    if len(producers) > 1:
        why = "Transactional records contained more than one producer ID"
        return None, KafkaError(ErrorCode.INVALID_PRODUCER_ID_MAPPING, why)
    ((producer_id, epoch),) = producers
    adds = ctx.version >= FIRST_THAT_ADDS
    return TransactionalProduce(request.transactional_id, producer_id, epoch, ctx.version, adds), None


def _is_idempotent(request: ProduceRequest) -> bool:
    batches = (data.records for topic in request.topic_data for data in topic.partition_data)
    return any(isinstance(batch, memoryview) and idempotent_producer(batch) is not None for batch in batches)


def _refusal(index: int, error: KafkaError) -> PartitionProduceResponse:
    refused = error.why if isinstance(error, RecordsRefused) else {}
    return PartitionProduceResponse(
        index=index,
        error_code=error.code,
        base_offset=-1,
        log_append_time_ms=-1,
        log_start_offset=-1,
        record_errors=[
            BatchIndexAndErrorMessage(batch_index=place, batch_index_error_message=why)
            for place, why in refused.items()
        ],
        error_message=error.message or None,
    )

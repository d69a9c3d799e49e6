"""Answers of brokers to the controller, as events. Refusals are logged."""

from odradek.base.errors import ErrorCode
from odradek.base.logs import get_logger
from odradek.broker.controller.core.events import Event, LeaderAndIsrAnswered, StopReplicaAnswered
from odradek.model.topology import TopicPartition
from odradek.protocol.messages.leader_and_isr import LeaderAndIsrRequest, LeaderAndIsrResponse
from odradek.protocol.messages.stop_replica import StopReplicaRequest, StopReplicaResponse
from odradek.protocol.schema import Request, Response

log = get_logger(__name__)


def event_of(broker_id: int, request: Request, response: Response) -> Event | None:
    """Return the event of an answer; None for metadata, replicas that were only stopped, a request refused
    as a whole."""
    match request, response:
        case LeaderAndIsrRequest(), LeaderAndIsrResponse():
            return _led(broker_id, request, response)
        case StopReplicaRequest(), StopReplicaResponse():
            return _stopped(broker_id, request, response)
    _warn_if_refused(broker_id, request, getattr(response, "error_code", 0))
    return None


def _led(broker_id: int, request: LeaderAndIsrRequest, response: LeaderAndIsrResponse) -> Event | None:
    if response.error_code:
        _warn_if_refused(broker_id, request, response.error_code)
        return None
    names = {topic.topic_id: topic.topic_name for topic in request.topic_states}
    errors = {TopicPartition(e.topic_name, e.partition_index): code_of(e.error_code) for e in response.partition_errors}
    for topic in response.topics:
        if (name := names.get(topic.topic_id)) is not None:
            for error in topic.partition_errors:
                errors[TopicPartition(name, error.partition_index)] = code_of(error.error_code)
    return LeaderAndIsrAnswered(broker_id, errors)


def _stopped(broker_id: int, request: StopReplicaRequest, response: StopReplicaResponse) -> Event | None:
    """Results of the replicas to delete. A refusal of the whole request is a refusal of each of them.

    STALE_BROKER_EPOCH is the answer of a broker that has registered again since. The deletion is repeated for the new
    registration, and a late answer to the former one must not complete it.
    """
    _warn_if_refused(broker_id, request, response.error_code)
    errors = {TopicPartition(e.topic_name, e.partition_index): code_of(e.error_code) for e in response.partition_errors}
    refusal = code_of(response.error_code)
    if refusal is ErrorCode.STALE_BROKER_EPOCH:
        return None
    deleted = [
        TopicPartition(topic.topic_name, state.partition_index)
        for topic in request.topic_states
        for state in topic.partition_states
        if state.delete_partition
    ]
    if not deleted:
        return None
    return StopReplicaAnswered(broker_id, {tp: refusal or errors.get(tp, ErrorCode.NONE) for tp in deleted})


def code_of(number: int) -> ErrorCode:
    """Return the error; a broker of another version may send unknown codes."""
    try:
        return ErrorCode(number)
    except ValueError:
        return ErrorCode.UNKNOWN_SERVER_ERROR


def _warn_if_refused(broker_id: int, request: Request, error_code: int) -> None:
    if error_code:
        log.warning(
            "controller request refused by broker",
            broker=broker_id,
            request=type(request).__name__,
            error=code_of(error_code).name,
        )

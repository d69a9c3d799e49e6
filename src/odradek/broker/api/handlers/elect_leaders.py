"""ElectLeaders (key 43): runs preferred or unclean leader elections of partitions. Served by the controller.

Versions 0-2. v1 adds unclean elections. The request is answered when this broker's metadata shows the new leaders. If
the request names no partitions, the answer omits those that needed no election. Not done: nothing.
"""

from collections.abc import Callable

from odradek.base.errors import ErrorCode, KafkaError
from odradek.broker.api.authorization import authorized_on_cluster, denial
from odradek.broker.api.context import RequestContext
from odradek.broker.api.registry import LATER, Outcome, handles
from odradek.broker.controller.core.events import ElectionAsked
from odradek.model.acls import AclOperation
from odradek.model.metadata_image import MetadataImage
from odradek.model.topology import TopicPartition
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.messages.elect_leaders import (
    ElectionType,
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)

Results = dict[TopicPartition, KafkaError | None]


@handles(ApiKey.ELECT_LEADERS, versions="0-2", may_block=False)
def elect_leaders(request: ElectLeadersRequest, ctx: RequestContext) -> Outcome:
    wanted = None
    if request.topic_partitions is not None:
        wanted = frozenset(TopicPartition(t.topic, number) for t in request.topic_partitions for number in t.partitions)
    election_type = request.election_type if ctx.version >= 1 else ElectionType.PREFERRED
    reply = ctx.reply_with(_response)
    if not authorized_on_cluster(ctx, AclOperation.ALTER):
        refusal = denial(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
        reply(dict.fromkeys(sorted(wanted or ()), refusal), refusal.code)
        return LATER
    if election_type not in (ElectionType.PREFERRED, ElectionType.UNCLEAN):
        unknown = KafkaError(ErrorCode.INVALID_REQUEST, f"There is no election of type {election_type}.")
        reply(dict.fromkeys(sorted(wanted or ()), unknown), unknown.code)
        return LATER

    def elected(results: Results | KafkaError) -> None:
        if isinstance(results, KafkaError):
            reply(dict.fromkeys(sorted(wanted or ()), results), results.code)
            return
        if wanted is None:
            results = {tp: e for tp, e in results.items() if e is None or e.code is not ErrorCode.ELECTION_NOT_NEEDED}
        _when_led(results, election_type, request.timeout_ms, ctx, reply)

    ctx.broker.controller.submit(ElectionAsked(wanted, election_type, elected))
    return LATER


def _when_led(
    results: Results,
    election_type: int,
    timeout_ms: int,
    ctx: RequestContext,
    reply: Callable[[Results, ErrorCode], None],
) -> None:
    """Answer once the leaders are visible; partitions without theirs within the time get an error."""
    won = [tp for tp, error in results.items() if error is None]

    def missing(image: MetadataImage) -> set[TopicPartition]:
        return {tp for tp in won if not _is_led(image, tp, election_type)}

    def answer(late: set[TopicPartition]) -> None:
        error = KafkaError(ErrorCode.REQUEST_TIMED_OUT, "The election took longer than the request may.")
        reply(results | dict.fromkeys(late, error), ErrorCode.NONE)

    ctx.broker.topics.when_shown(missing, timeout_ms, answer)


def _is_led(image: MetadataImage, tp: TopicPartition, election_type: int) -> bool:
    partition = image.partition(tp)
    if partition is None or election_type != ElectionType.PREFERRED:
        return partition is None or partition.leader >= 0
    return partition.leader == partition.replicas[0]


def _response(results: Results, code: ErrorCode) -> ElectLeadersResponse:
    topics: dict[str, ReplicaElectionResult] = {}
    for tp, error in results.items():
        topic = topics.setdefault(tp.topic, ReplicaElectionResult(topic=tp.topic))
        topic.partition_result.append(
            PartitionResult(
                partition_id=tp.partition,
                error_code=error.code if error else ErrorCode.NONE,
                error_message=(error.message or None) if error else None,
            )
        )
    return ElectLeadersResponse(error_code=code, replica_election_results=list(topics.values()))

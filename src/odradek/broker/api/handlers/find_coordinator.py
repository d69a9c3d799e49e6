"""FindCoordinator (key 10): which broker coordinates a group or a transactional id.

Versions 0-6. v1 names the kind of key, v4 asks for many at once, v6 knows share groups. The topic that their state is
kept in is created by the first question, in the background; until it exists the client has to try again.
"""

from odradek.base.errors import ErrorCode, KafkaError
from odradek.broker.api.authorization import authorized, authorized_on_cluster, denial
from odradek.broker.api.context import RequestContext
from odradek.broker.api.registry import handles
from odradek.model.acls import AclOperation, ResourceType
from odradek.model.topic_names import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from odradek.model.topology import Endpoint, TopicPartition
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.messages.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse

GROUP, TRANSACTION, SHARE = 0, 1, 2


@handles(ApiKey.FIND_COORDINATOR, versions="0-6", may_block=False)
def find_coordinator(request: FindCoordinatorRequest, ctx: RequestContext) -> FindCoordinatorResponse:
    if ctx.version >= 4:
        return FindCoordinatorResponse(
            coordinators=[_coordinator(key, request.key_type, ctx) for key in request.coordinator_keys]
        )
    found = _coordinator(request.key, request.key_type, ctx)
    return FindCoordinatorResponse(
        error_code=found.error_code,
        error_message=found.error_message or "NONE",  # Kafka says so, and clients may print it
        node_id=found.node_id,
        host=found.host,
        port=found.port,
    )


def _coordinator(key: str, key_type: int, ctx: RequestContext) -> Coordinator:
    try:
        node_id, endpoint = _find(key, key_type, ctx)
    except KafkaError as error:
        return Coordinator(
            key=key, node_id=-1, host="", port=-1, error_code=error.code, error_message=error.message or None
        )
    return Coordinator(key=key, node_id=node_id, host=endpoint.host, port=endpoint.port)


def _find(key: str, key_type: int, ctx: RequestContext) -> tuple[int, Endpoint]:
    if key_type == GROUP and not authorized(ctx, AclOperation.DESCRIBE, ResourceType.GROUP, key):
        raise denial(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    if key_type == TRANSACTION and not authorized(ctx, AclOperation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, key):
        raise denial(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    if key_type == SHARE and not authorized_on_cluster(ctx, AclOperation.CLUSTER_ACTION):
        raise denial(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    if key_type == SHARE and ctx.version >= 6:
        raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, "ZooKeeper mode has no share groups.")
    if key_type not in (GROUP, TRANSACTION):
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Coordinators of type {key_type} are not known.")
    broker = ctx.broker
    image = broker.metadata.image
    topic = OFFSETS_TOPIC if key_type == GROUP else TRANSACTIONS_TOPIC
    if topic not in image.topics:
        broker.topics.create_soon(topic)
        raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, "The coordinator is not available.")
    coordinator = broker.groups if key_type == GROUP else broker.transactions
    partition = image.partition(TopicPartition(topic, coordinator.partition_for(key)))
    leader = image.brokers.get(partition.leader) if partition else None
    endpoint = leader.endpoint(ctx.connection.listener_name) if leader else None
    if leader is None or endpoint is None:
        raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, "The coordinator is not available.")
    return leader.id, endpoint

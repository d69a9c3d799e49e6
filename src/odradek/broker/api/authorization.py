"""Authorization of requests, as handlers ask for it. Without an authorizer everything is allowed.

On the paths of records a handler tests `ctx.broker.authorizer` itself first, so that its absence costs nothing. An
action that was allowed to the connection before is found in its `allowed_names`, unless allowed decisions are logged.
"""

from collections import Counter
from collections.abc import Collection, Iterable

from odradek.base.errors import ErrorCode, KafkaError
from odradek.broker.api.context import RequestContext
from odradek.broker.security.authorizer.acl_authorizer import AclAuthorizer, Requester
from odradek.broker.security.authorizer.allowed_names import AllowedNames, action, remember
from odradek.model.acls import (
    CLUSTER_NAME,
    SUPPORTED_OPERATIONS,
    AclOperation,
    ResourceType,
    operation_bits,
)
from odradek.model.topology import TopicPartition
from odradek.protocol.api_keys import ApiKey

NONE_DENIED: frozenset[str] = frozenset()
DENIED_MESSAGES = {
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: "Topic authorization failed.",
    ErrorCode.GROUP_AUTHORIZATION_FAILED: "Group authorization failed.",
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: "Cluster authorization failed.",
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "Transactional Id authorization failed.",
}


NOT_ASKED = -(2**31)
"""The value of authorized operations for a client that didn't ask for them."""


def denial(code: ErrorCode) -> KafkaError:
    return KafkaError(code, DENIED_MESSAGES[code])


def requester_of(ctx: RequestContext) -> Requester:
    return Requester(ctx.principal, ctx.client_host, ApiKey(ctx.header.api_key).name)


def authorized(
    ctx: RequestContext,
    operation: AclOperation,
    kind: ResourceType,
    name: str,
    *,
    log_allowed: bool = True,
    log_denied: bool = True,
) -> bool:
    authorizer = ctx.broker.authorizer
    if authorizer is None:
        return True
    known = _allowed_before(ctx, authorizer, operation, kind)
    if name in known and not authorizer.logs_allowed:
        return True
    allowed = authorizer.authorize(
        requester_of(ctx), operation, kind, name, log_allowed=log_allowed, log_denied=log_denied
    )
    if allowed:
        remember(known, (name,))
    return allowed


def _allowed_before(
    ctx: RequestContext, authorizer: AclAuthorizer, operation: AclOperation, kind: ResourceType
) -> set[str]:
    """Names to which the operation was allowed on this connection, by the present ACLs."""
    connection = ctx.request.connection
    memory, version = connection.allowed_names, authorizer.version
    if memory is None or memory.version != version or memory.principal is not connection.principal:
        memory = connection.allowed_names = AllowedNames(version, connection.principal)
    return memory[action(operation, kind)]


def authorized_on_cluster(ctx: RequestContext, operation: AclOperation, *, log_denied: bool = True) -> bool:
    return authorized(ctx, operation, ResourceType.CLUSTER, CLUSTER_NAME, log_denied=log_denied)


def require_on_cluster(ctx: RequestContext, operation: AclOperation) -> None:
    """Raise KafkaError CLUSTER_AUTHORIZATION_FAILED unless the operation on the cluster is allowed."""
    if not authorized_on_cluster(ctx, operation):
        raise denial(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)


def denied_names(
    ctx: RequestContext,
    operation: AclOperation,
    kind: ResourceType,
    names: Collection[str],
    *,
    log_denied: bool = True,
) -> frozenset[str]:
    """Return the names on which the principal may not perform the operation; each is authorized once."""
    authorizer = ctx.broker.authorizer
    if authorizer is None:
        return NONE_DENIED
    known = _allowed_before(ctx, authorizer, operation, kind)
    if known.issuperset(names) and not authorizer.logs_allowed:
        return NONE_DENIED
    requester, counts = requester_of(ctx), Counter(iter(names))
    denied = frozenset(
        name
        for name, count in counts.items()
        if not authorizer.authorize(requester, operation, kind, name, count=count, log_denied=log_denied)
    )
    remember(known, counts.keys() - denied)
    return denied


_ON_TOPICS = [action(operation, ResourceType.TOPIC) for operation in AclOperation]


def denied_topics(
    ctx: RequestContext, operation: AclOperation, names: Collection[str], *, log_denied: bool = True
) -> frozenset[str]:
    authorizer = ctx.broker.authorizer
    if authorizer is None:
        return NONE_DENIED
    connection = ctx.request.connection
    memory = connection.allowed_names
    if (  # as `denied_names` finds out, without its calls: Produce and Fetch come here
        memory is not None
        and memory.version == authorizer.version
        and memory.principal is connection.principal
        and memory[_ON_TOPICS[operation]].issuperset(names)
        and not authorizer.logs_allowed
    ):
        return NONE_DENIED
    return denied_names(ctx, operation, ResourceType.TOPIC, names, log_denied=log_denied)


def authorized_for_some(ctx: RequestContext, operation: AclOperation, kind: ResourceType) -> bool:
    """Decide whether the principal may perform the operation on at least one resource of the type."""
    authorizer = ctx.broker.authorizer
    return authorizer is None or authorizer.authorize_by_resource_type(requester_of(ctx), operation, kind)


def authorized_operations(ctx: RequestContext, kind: ResourceType, name: str) -> int:
    """Authorized operations as bits, for descriptions."""
    authorizer = ctx.broker.authorizer
    if authorizer is None:
        return operation_bits(SUPPORTED_OPERATIONS[kind])
    return authorizer.authorized_operations(requester_of(ctx), kind, name)


def operations_on_cluster(ctx: RequestContext) -> int:
    """Return the operations that the principal may do; none if it may not describe the cluster."""
    if not authorized_on_cluster(ctx, AclOperation.DESCRIBE):
        return 0
    return authorized_operations(ctx, ResourceType.CLUSTER, CLUSTER_NAME)


def refused_commits(
    ctx: RequestContext, group_id: str, topics: Collection[str], commits: Iterable[TopicPartition]
) -> dict[TopicPartition, ErrorCode]:
    """Partitions whose offsets the principal may not commit, or all if it may not use the group."""
    if not authorized(ctx, AclOperation.READ, ResourceType.GROUP, group_id):
        return dict.fromkeys(commits, ErrorCode.GROUP_AUTHORIZATION_FAILED)
    denied = denied_topics(ctx, AclOperation.READ, topics)
    return {tp: ErrorCode.TOPIC_AUTHORIZATION_FAILED for tp in commits if tp.topic in denied}

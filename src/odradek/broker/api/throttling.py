"""Throttling of a client that has used more than its quota: its response has a throttle time, for which it is not read.

The response itself leaves at once. Requests between brokers are not throttled, unless a stranger sends them.
"""

from copy import copy
from time import monotonic_ns

from odradek.base.errors import ErrorCode
from odradek.broker.api.context import Answer, RequestContext
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.framing import FixedResponse

BETWEEN_BROKERS = frozenset(
    {
        ApiKey.LEADER_AND_ISR,
        ApiKey.STOP_REPLICA,
        ApiKey.UPDATE_METADATA,
        ApiKey.CONTROLLED_SHUTDOWN,
        ApiKey.ALTER_PARTITION,
        ApiKey.ALLOCATE_PRODUCER_IDS,
    }
)
_PERCENT_PER_NS = 100 / 1e9


def throttled(ctx: RequestContext, answer: Answer | None) -> Answer | None:
    """The answer with the time that the client has to wait, if it has to; its connection is muted by then."""
    is_denied = getattr(answer, "error_code", ErrorCode.NONE) == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    if ctx.is_from_broker or (ctx.header.api_key in BETWEEN_BROKERS and not is_denied):
        return answer
    quotas = ctx.broker.quotas
    used_ns = (ctx.handled_ns or monotonic_ns()) - ctx.started_ns
    wait_ms = max(ctx.throttle_ms, quotas.request.charge(ctx.user, ctx.client_id, used_ns * _PERCENT_PER_NS))
    if not wait_ms:
        return answer
    quotas.throttles += 1
    quotas.throttled_ms += wait_ms
    ctx.request.mute_connection(wait_ms)
    if answer is None:
        return None
    if isinstance(answer, FixedResponse):
        answer = copy(answer.response)
    if hasattr(answer, "throttle_time_ms"):
        answer.throttle_time_ms = wait_ms
    return answer

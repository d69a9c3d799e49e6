"""ExpireDelegationToken (key 40): a token's end is brought forward, or it ends at once.

Versions 0-2. Not done: nothing.
"""

from odradek.base.errors import KafkaError
from odradek.broker.api.context import RequestContext
from odradek.broker.api.registry import handles
from odradek.broker.api.token_requests import token_admin
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.messages.expire_delegation_token import (
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
)


@handles(ApiKey.EXPIRE_DELEGATION_TOKEN, versions="0-2", may_block=True)
def expire_delegation_token(
    request: ExpireDelegationTokenRequest, ctx: RequestContext
) -> ExpireDelegationTokenResponse:
    try:
        ends_ms = token_admin(ctx).expire(ctx.principal, bytes(request.hmac), request.expiry_time_period_ms)
    except KafkaError as error:
        return ExpireDelegationTokenResponse(error_code=error.code, expiry_timestamp_ms=-1)
    return ExpireDelegationTokenResponse(expiry_timestamp_ms=ends_ms)

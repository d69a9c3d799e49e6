"""RenewDelegationToken (key 39): extends the validity of a token, up to its maximum lifetime.

Versions 0-2. Not done: nothing.
"""

from odradek.base.errors import KafkaError
from odradek.broker.api.context import RequestContext
from odradek.broker.api.registry import handles
from odradek.broker.api.token_requests import token_admin
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.messages.renew_delegation_token import RenewDelegationTokenRequest, RenewDelegationTokenResponse


@handles(ApiKey.RENEW_DELEGATION_TOKEN, versions="0-2", may_block=True)
def renew_delegation_token(request: RenewDelegationTokenRequest, ctx: RequestContext) -> RenewDelegationTokenResponse:
    try:
        ends_ms = token_admin(ctx).renew(ctx.principal, bytes(request.hmac), request.renew_period_ms)
    except KafkaError as error:
        return RenewDelegationTokenResponse(error_code=error.code, expiry_timestamp_ms=-1)
    return RenewDelegationTokenResponse(expiry_timestamp_ms=ends_ms)

"""SaslAuthenticate (key 36): one token of a SASL exchange.

Versions 0-2. On SASL listeners `sasl_gate` answers it before any handler is asked. It comes here on other listeners,
and from clients that are authenticated for good: ILLEGAL_SASL_STATE, as in Kafka. Not done: nothing.
"""

from odradek.base.errors import ErrorCode
from odradek.broker.api.context import RequestContext
from odradek.broker.api.registry import handles
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse


@handles(ApiKey.SASL_AUTHENTICATE, versions="0-2", may_block=False)
def sasl_authenticate(request: SaslAuthenticateRequest, ctx: RequestContext) -> SaslAuthenticateResponse:
    return SaslAuthenticateResponse(
        error_code=ErrorCode.ILLEGAL_SASL_STATE,
        error_message="SaslAuthenticate request received after successful authentication",
    )

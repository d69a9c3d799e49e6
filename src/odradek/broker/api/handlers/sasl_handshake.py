"""SaslHandshake (key 17): a client names its SASL mechanism.

Versions 0-1. On SASL listeners `sasl_gate` answers it before any handler is asked. It comes here on other listeners,
and from clients that are authenticated for good: ILLEGAL_SASL_STATE, as in Kafka. Not done: nothing.
"""

from odradek.base.errors import ErrorCode
from odradek.broker.api.context import RequestContext
from odradek.broker.api.registry import handles
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse


@handles(ApiKey.SASL_HANDSHAKE, versions="0-1", may_block=False)
def sasl_handshake(request: SaslHandshakeRequest, ctx: RequestContext) -> SaslHandshakeResponse:
    return SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE)

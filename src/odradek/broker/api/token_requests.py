"""Rules that the four requests about delegation tokens share."""

from odradek.base.errors import ErrorCode, KafkaError
from odradek.broker.admin.token_admin import TokenAdmin
from odradek.broker.api.context import RequestContext
from odradek.broker.security.principal import ANONYMOUS


def check_connection(ctx: RequestContext) -> None:
    """Raise KafkaError if the connection doesn't allow such requests.

    A token must not create tokens, and a connection without an identity has no owner for one.
    """
    protocol = ctx.connection.security_protocol
    if (
        ctx.principal.token_authenticated
        or protocol == "PLAINTEXT"
        or (protocol == "SSL" and ctx.principal == ANONYMOUS)
    ):
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)


def token_admin(ctx: RequestContext) -> TokenAdmin:
    """Return the token administration. KafkaError if the connection or the configuration doesn't allow such
    requests."""
    check_connection(ctx)
    if ctx.broker.security.tokens is None:
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED)
    return ctx.broker.security.tokens

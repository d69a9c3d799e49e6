"""CreateDelegationToken (key 38): a token for the requester, or in the name of another owner.

Versions 0-3. v3 names the owner, which needs CreateTokens on that user. Not done: nothing.
"""

from odradek.base.errors import ErrorCode, KafkaError
from odradek.broker.api.authorization import authorized
from odradek.broker.api.context import RequestContext
from odradek.broker.api.registry import handles
from odradek.broker.api.token_requests import check_connection, token_admin
from odradek.broker.security.principal import USER_TYPE, KafkaPrincipal
from odradek.model.acls import AclOperation, ResourceType
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.messages.create_delegation_token import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)


@handles(ApiKey.CREATE_DELEGATION_TOKEN, versions="0-3", may_block=True)
def create_delegation_token(
    request: CreateDelegationTokenRequest, ctx: RequestContext
) -> CreateDelegationTokenResponse:
    owner = ctx.principal
    if request.owner_principal_name:
        owner = KafkaPrincipal(request.owner_principal_type or "", request.owner_principal_name)
    response = CreateDelegationTokenResponse(
        principal_type=owner.type,
        principal_name=owner.name,
        token_requester_principal_type=ctx.principal.type,
        token_requester_principal_name=ctx.principal.name,
        issue_timestamp_ms=-1,
        expiry_timestamp_ms=-1,
        max_timestamp_ms=-1,
    )
    try:
        check_connection(ctx)
        renewers = _renewers(owner, request, ctx)
        admin = token_admin(ctx)
        token = admin.create(owner, ctx.principal, renewers, request.max_lifetime_ms)
    except KafkaError as error:
        response.error_code = error.code
        return response
    response.issue_timestamp_ms, response.expiry_timestamp_ms = token.issue_ms, token.expiry_ms
    response.max_timestamp_ms, response.token_id = token.max_ms, token.id
    response.hmac = admin.known.hmac_of(token)
    return response


def _renewers(
    owner: KafkaPrincipal, request: CreateDelegationTokenRequest, ctx: RequestContext
) -> tuple[KafkaPrincipal, ...]:
    """KafkaError where the requester may not act for the owner, or a renewer is not a user."""
    if owner != ctx.principal and not authorized(ctx, AclOperation.CREATE_TOKENS, ResourceType.USER, str(owner)):
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED)
    renewers = tuple(KafkaPrincipal(each.principal_type, each.principal_name) for each in request.renewers)
    if any(renewer.type != USER_TYPE for renewer in renewers):
        raise KafkaError(ErrorCode.INVALID_PRINCIPAL_TYPE)
    return renewers

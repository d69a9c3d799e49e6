"""DescribeDelegationToken (key 41): tokens of given owners, or all that the requester may see, with their secrets.

Versions 0-3. v3 adds the requester of each token. Owners and renewers see their own tokens; others need Describe on the
token or DescribeTokens on its owner. Not done: nothing.
"""

from odradek.base.errors import KafkaError
from odradek.broker.admin.token_admin import TokenAdmin
from odradek.broker.api.authorization import authorized
from odradek.broker.api.context import RequestContext
from odradek.broker.api.registry import handles
from odradek.broker.api.token_requests import token_admin
from odradek.broker.security.core.delegation_tokens import DelegationToken
from odradek.broker.security.principal import KafkaPrincipal
from odradek.model.acls import AclOperation, ResourceType
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.messages.describe_delegation_token import (
    DescribedDelegationToken,
    DescribedDelegationTokenRenewer,
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)


@handles(ApiKey.DESCRIBE_DELEGATION_TOKEN, versions="0-3", may_block=True)
def describe_delegation_token(
    request: DescribeDelegationTokenRequest, ctx: RequestContext
) -> DescribeDelegationTokenResponse:
    try:
        admin = token_admin(ctx)
    except KafkaError as error:
        return DescribeDelegationTokenResponse(error_code=error.code)
    owners = None
    if request.owners is not None:
        owners = [KafkaPrincipal(owner.principal_type, owner.principal_name) for owner in request.owners]
    return DescribeDelegationTokenResponse(
        tokens=[_described(token, admin) for token in admin.known.all() if _is_shown(token, owners, ctx)]
    )


def _is_shown(token: DelegationToken, owners: list[KafkaPrincipal] | None, ctx: RequestContext) -> bool:
    if owners is not None and not any(map(token.belongs_to, owners)):
        return False
    return (
        token.belongs_to(ctx.principal)
        or authorized(ctx, AclOperation.DESCRIBE, ResourceType.DELEGATION_TOKEN, token.id)
        or authorized(ctx, AclOperation.DESCRIBE_TOKENS, ResourceType.USER, str(token.owner))
    )


def _described(token: DelegationToken, admin: TokenAdmin) -> DescribedDelegationToken:
    return DescribedDelegationToken(
        principal_type=token.owner.type,
        principal_name=token.owner.name,
        token_requester_principal_type=token.requester.type,
        token_requester_principal_name=token.requester.name,
        issue_timestamp=token.issue_ms,
        expiry_timestamp=token.expiry_ms,
        max_timestamp=token.max_ms,
        token_id=token.id,
        hmac=admin.known.hmac_of(token),
        renewers=[
            DescribedDelegationTokenRenewer(principal_type=renewer.type, principal_name=renewer.name)
            for renewer in token.renewers
        ],
    )

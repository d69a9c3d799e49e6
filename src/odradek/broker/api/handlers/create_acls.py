"""CreateAcls (key 30): ACLs are written to ZooKeeper, obeyed here at once and by every broker a moment later.

Versions 0-3. v1 adds pattern types. Unknown elements are refused ACL by ACL, where Kafka closes the connection.
Not done: nothing.
"""

from odradek.base.errors import KafkaError
from odradek.broker.api.acl_messages import binding_of, no_authorizer
from odradek.broker.api.authorization import require_on_cluster
from odradek.broker.api.context import RequestContext
from odradek.broker.api.registry import handles
from odradek.model.acls import AclOperation
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.messages.create_acls import AclCreationResult, CreateAclsRequest, CreateAclsResponse


@handles(ApiKey.CREATE_ACLS, versions="0-3", may_block=True)
def create_acls(request: CreateAclsRequest, ctx: RequestContext) -> CreateAclsResponse:
    try:
        require_on_cluster(ctx, AclOperation.ALTER)
        if ctx.broker.security.acls is None:
            raise no_authorizer()
        errors = ctx.broker.security.acls.create([binding_of(wanted) for wanted in request.creations])
    except KafkaError as error:
        errors = [error] * len(request.creations)
    return CreateAclsResponse(results=[_result(error) for error in errors])


def _result(error: KafkaError | None) -> AclCreationResult:
    if error is None:
        return AclCreationResult(error_message="")
    return AclCreationResult(error_code=error.code, error_message=error.message)

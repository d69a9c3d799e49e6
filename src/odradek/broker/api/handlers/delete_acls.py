"""DeleteAcls (key 31): the ACLs that filters match are removed, and answered filter by filter.

Versions 0-3. v1 adds pattern types. Not done: nothing.
"""

from odradek.base.errors import KafkaError
from odradek.broker.admin.acl_admin import AclAdmin, DeletedAcl
from odradek.broker.api.acl_messages import filter_of, no_authorizer
from odradek.broker.api.authorization import require_on_cluster
from odradek.broker.api.context import RequestContext
from odradek.broker.api.registry import handles
from odradek.model.acls import AclFilter, AclOperation
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.messages.delete_acls import (
    DeleteAclsFilterResult,
    DeleteAclsMatchingAcl,
    DeleteAclsRequest,
    DeleteAclsResponse,
)


@handles(ApiKey.DELETE_ACLS, versions="0-3", may_block=True)
def delete_acls(request: DeleteAclsRequest, ctx: RequestContext) -> DeleteAclsResponse:
    try:
        require_on_cluster(ctx, AclOperation.ALTER)
        if ctx.broker.security.acls is None:
            raise no_authorizer()
    except KafkaError as error:
        return DeleteAclsResponse(filter_results=[_refused(error) for _ in request.filters])
    return DeleteAclsResponse(filter_results=_delete(request, ctx.broker.security.acls))


def _delete(request: DeleteAclsRequest, acls: AclAdmin) -> list[DeleteAclsFilterResult]:
    results: list[DeleteAclsFilterResult] = []
    wanted: list[AclFilter] = []
    places: list[int] = []
    for number, fields in enumerate(request.filters):
        results.append(DeleteAclsFilterResult(error_message=""))
        try:
            wanted.append(filter_of(fields))
            places.append(number)
        except KafkaError as error:
            results[number] = _refused(error)
    for number, deleted in zip(places, acls.delete(wanted), strict=True):
        results[number].matching_acls = [_matching(acl) for acl in deleted]
    return results


def _refused(error: KafkaError) -> DeleteAclsFilterResult:
    return DeleteAclsFilterResult(error_code=error.code, error_message=error.message)


def _matching(deleted: DeletedAcl) -> DeleteAclsMatchingAcl:
    pattern, entry, error = deleted.binding.pattern, deleted.binding.entry, deleted.error
    return DeleteAclsMatchingAcl(
        error_code=0 if error is None else error.code,
        error_message="" if error is None else error.message,
        resource_type=pattern.type,
        resource_name=pattern.name,
        pattern_type=pattern.pattern,
        principal=entry.principal,
        host=entry.host,
        operation=entry.operation,
        permission_type=entry.permission,
    )

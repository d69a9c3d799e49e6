"""AlterClientQuotas (key 49): quotas of users, client ids and addresses are set and removed; every broker obeys.

Versions 0-1. Invalid rates are refused, where Kafka takes NaN and negative percentages. Not done: nothing.
"""

from odradek.base.errors import ErrorCode, KafkaError
from odradek.broker.admin.quota_entities import node_of, quota_text
from odradek.broker.api.authorization import authorized_on_cluster, denial
from odradek.broker.api.context import BrokerServices, RequestContext
from odradek.broker.api.registry import handles
from odradek.model.acls import AclOperation
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    EntityData,
    EntryData,
    EntryResult,
)


@handles(ApiKey.ALTER_CLIENT_QUOTAS, versions="0-1", may_block=True)
def alter_client_quotas(request: AlterClientQuotasRequest, ctx: RequestContext) -> AlterClientQuotasResponse:
    refusal = None
    if not authorized_on_cluster(ctx, AclOperation.ALTER_CONFIGS):
        refusal = denial(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    results = {}
    for entry in request.entries:
        entity = {part.entity_type: part.entity_name for part in entry.entity}
        results[frozenset(entity.items())] = _result(
            entry, entity, ctx.broker, refusal, validate_only=request.validate_only
        )
    return AlterClientQuotasResponse(entries=list(results.values()))


def _result(
    entry: EntryData,
    entity: dict[str, str | None],
    broker: BrokerServices,
    refusal: KafkaError | None,
    *,
    validate_only: bool,
) -> EntryResult:
    result = EntryResult(
        error_message=None,
        entity=[EntityData(entity_type=kind, entity_name=name) for kind, name in entity.items()],
    )
    try:
        if refusal is not None:
            raise refusal
        _alter(entry, entity, broker, validate_only=validate_only)
    except KafkaError as error:
        result.error_code, result.error_message = error.code, error.message or None
    return result


def _alter(entry: EntryData, entity: dict[str, str | None], broker: BrokerServices, *, validate_only: bool) -> None:
    node = node_of(entity)
    config = broker.configs.load(node.entity_type, node.name)
    for op in entry.ops:
        if op.remove:
            config.pop(op.key, None)
        else:
            config[op.key] = quota_text(op.key, op.value, node.bits)
    if not validate_only:
        broker.configs.replace(node.entity_type, node.name, config)

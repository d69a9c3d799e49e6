"""DescribeClientQuotas (key 48): the quotas that are set for the entities that a filter names.

Versions 0-1. A component of the filter asks for one name, for the default of its kind, or for any name; kinds that it
doesn't name may be there too, unless it is strict. Not done: nothing.
"""

from collections.abc import Iterable, Mapping
from enum import IntEnum

from odradek.base.errors import ErrorCode, KafkaError
from odradek.broker.admin.quota_entities import CLIENT_ID, IP, KINDS, USER, Entity, entity_of, quotas_in
from odradek.broker.api.authorization import require_on_cluster
from odradek.broker.api.context import RequestContext
from odradek.broker.api.registry import handles
from odradek.model.acls import AclOperation
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.messages.describe_client_quotas import (
    ComponentData,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
    EntityData,
    EntryData,
    ValueData,
)


class Match(IntEnum):
    """Numbers fixed by the Kafka protocol."""

    EXACTLY = 0
    DEFAULT = 1
    ANY = 2


@handles(ApiKey.DESCRIBE_CLIENT_QUOTAS, versions="0-1", may_block=True)
def describe_client_quotas(request: DescribeClientQuotasRequest, ctx: RequestContext) -> DescribeClientQuotasResponse:
    try:
        require_on_cluster(ctx, AclOperation.DESCRIBE_CONFIGS)
        components = _components(request.components)
        entries = [
            _entry(entity, quotas)
            for entity_type in _types(components)
            for entity, quotas in _set_for(entity_type, ctx)
            if quotas and all(_matches(kind, entity, components, strict=request.strict) for kind in KINDS)
        ]
    except KafkaError as error:
        return DescribeClientQuotasResponse(error_code=error.code, error_message=error.message or None, entries=None)
    return DescribeClientQuotasResponse(error_message=None, entries=entries)


def _components(named: Iterable[ComponentData]) -> dict[str, ComponentData]:
    components: dict[str, ComponentData] = {}
    for component in named:
        kind = component.entity_type
        if not kind:
            raise _invalid("Unexpected empty filter component entity type")
        if kind not in KINDS:
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, f"Custom entity type '{kind}' not supported")
        if kind in components:
            raise _invalid(f"Duplicate {kind} filter component entity type")
        if component.match_type not in set(Match):
            raise _invalid(f"Unexpected match type {component.match_type}")
        if component.match_type == Match.EXACTLY and component.match is None:
            raise _invalid(f"The {kind} that is asked for has no name")
        components[kind] = component
    if IP in components and len(components) > 1:
        raise _invalid("A filter can't ask for an address together with a user or a client id.")
    return components


def _types(components: Mapping[str, ComponentData]) -> list[str]:
    """The kinds of nodes in which something may match."""
    types = [] if IP in components else ["users", "clients"]
    return types if components.keys() & {USER, CLIENT_ID} else [*types, "ips"]


def _set_for(entity_type: str, ctx: RequestContext) -> Iterable[tuple[Entity, dict[str, float]]]:
    for name, config in ctx.broker.configs.load_all(entity_type).items():
        yield entity_of(entity_type, name), quotas_in(entity_type, config)


def _matches(kind: str, entity: Entity, components: Mapping[str, ComponentData], *, strict: bool) -> bool:
    component = components.get(kind)
    if component is None:
        return kind not in entity or not strict
    if kind not in entity:
        return False
    match component.match_type:
        case Match.EXACTLY:
            return entity[kind] == component.match
        case Match.DEFAULT:
            return entity[kind] is None
        case _:
            return True


def _entry(entity: Entity, quotas: Mapping[str, float]) -> EntryData:
    return EntryData(
        entity=[EntityData(entity_type=kind, entity_name=name) for kind, name in entity.items()],
        values=[ValueData(key=key, value=value) for key, value in quotas.items()],
    )


def _invalid(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, message)

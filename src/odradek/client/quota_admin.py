"""Client quotas of users, clients and addresses, for the tools: read them, set them, remove them."""

from collections.abc import Mapping, Sequence
from functools import partial

from odradek.base.errors import ErrorCode, KafkaError
from odradek.base.value_classes import dataclass
from odradek.client.cluster_client import NOT_YET_DONE, ClusterClient
from odradek.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    EntityData,
    EntryData,
    OpData,
)
from odradek.protocol.messages.describe_client_quotas import (
    ComponentData,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)

_EXACT, _DEFAULT, _ANY = 0, 1, 2
# in the order in which Kafka's tool names them
_KINDS = {"user": "user-principal", "client-id": "client-id", "ip": "ip"}

# Names by kind ("user", "client-id", "ip"); None is the default of that kind.
Entity = Mapping[str, str | None]


@dataclass(frozen=True, slots=True)
class Quotas:
    entity: dict[str, str | None]
    values: dict[str, float]

    def __str__(self) -> str:
        return entity_as_text(self.entity)


def entity_as_text(entity: Entity) -> str:
    named = {kind: entity[kind] for kind in _KINDS if kind in entity}
    return ", ".join(
        f"the default {_KINDS[kind]}" if name is None else f"{_KINDS[kind]} '{name}'" for kind, name in named.items()
    )


def describe_quotas(
    client: ClusterClient, entity: Entity, kinds: Sequence[str] = (), *, strict: bool = True
) -> list[Quotas]:
    """Quotas of entities with these names, and with any name of the kinds; `strict`: and with no other kind beside."""
    components = [
        ComponentData(entity_type=kind, match_type=_DEFAULT if name is None else _EXACT, match=name)
        for kind, name in entity.items()
    ]
    components += [ComponentData(entity_type=kind, match_type=_ANY, match=None) for kind in kinds]
    request = DescribeClientQuotasRequest(components=components, strict=strict)
    answer = client.ask_any(request, DescribeClientQuotasResponse)
    _raise_for(entity, answer.error_code, answer.error_message)
    found = [
        Quotas(
            {part.entity_type: part.entity_name for part in entry.entity},
            {value.key: value.value for value in entry.values},
        )
        for entry in answer.entries or []
    ]
    return sorted(found, key=str)


def alter_quotas(
    client: ClusterClient,
    entity: Entity,
    changes: Mapping[str, float],
    deletions: Sequence[str] = (),
    *,
    validate_only: bool = False,
) -> None:
    named = [EntityData(entity_type=kind, entity_name=name) for kind, name in entity.items()]
    ops = [OpData(key=key, value=value, remove=False) for key, value in changes.items()]
    ops += [OpData(key=key, value=0.0, remove=True) for key in deletions]
    request = AlterClientQuotasRequest(entries=[EntryData(entity=named, ops=ops)], validate_only=validate_only)
    client.retrying(partial(_alter, client, entity, request), NOT_YET_DONE)


def _alter(client: ClusterClient, entity: Entity, request: AlterClientQuotasRequest) -> None:
    for result in client.ask_controller(request, AlterClientQuotasResponse).entries:
        _raise_for(entity, result.error_code, result.error_message)


def _raise_for(entity: Entity, code: int, message: str | None) -> None:
    if code:
        error = ErrorCode(code)
        raise KafkaError(error, f"{entity_as_text(entity) or 'quotas'}: {message or error.name}", message)
